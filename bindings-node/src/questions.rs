//! Questions for credentials that JavaScript has not answered, and its errors.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use locktender::host::milliseconds;
use locktender::host::sync::Mutex;
use locktender::{Credentials, Error};

/// The error of the function, which JavaScript keeps under the number of the question.
#[derive(Debug)]
pub(crate) struct Raised {
    question: Option<i64>,
    text: String,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

impl Raised {
    pub(crate) fn over() -> Self {
        Self { question: None, text: "the client is gone, or its environment ends".to_owned() }
    }
}

/// The number of the question whose error is behind this one.
pub(crate) fn cause(error: &Error) -> Option<f64> {
    let raised = std::error::Error::source(error)?.downcast_ref::<Raised>()?;
    raised.question.map(|question| question as f64)
}

/// The answer to a question.
type Answer = Result<Credentials, Raised>;

/// The questions that JavaScript has not answered, by their numbers, with the numbers of their clients.
#[derive(Default)]
pub(crate) struct Questions(Mutex<HashMap<i64, (u32, Sender<Answer>)>>);

impl Questions {
    pub(crate) fn add(&self, client: u32) -> (i64, Receiver<Answer>) {
        static NUMBERS: AtomicI64 = AtomicI64::new(0);
        let (number, (reply, answer)) = (NUMBERS.fetch_add(1, Ordering::Relaxed), channel());
        self.0.lock().insert(number, (client, reply));
        (number, answer)
    }

    /// Answers with credentials.
    pub(crate) fn give(&self, question: i64, user: Option<String>, password: String, life_ms: Option<f64>) -> Result<(), Error> {
        let life = life_ms.map(|life| milliseconds("expiresInMs", life)).transpose()?;
        let credentials = user.into_iter().fold(Credentials::new(password), Credentials::user);
        self.reply(question, Ok(life.into_iter().fold(credentials, Credentials::expires_in)));
        Ok(())
    }

    /// Answers that the function has failed.
    pub(crate) fn fail(&self, question: i64, text: String) {
        self.reply(question, Err(Raised { question: Some(question), text }));
    }

    fn reply(&self, question: i64, answer: Answer) {
        let asked = self.0.lock().remove(&question);
        // Nobody may wait any more.
        asked.map(|(_, reply)| reply.send(answer));
    }

    /// Forgets the questions of a client that is gone, or all of them: who waits for an answer gets none.
    pub(crate) fn forget(&self, gone: impl Fn(u32) -> bool) {
        self.0.lock().retain(|_, (client, _)| !gone(*client));
    }
}
