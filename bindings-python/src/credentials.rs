//! Credentials that a callable of the program gives. A thread of the core puts a question into a queue and waits without the
//! interpreter; a daemon thread of Python's (see `_credentials.py`) answers it. So a program that holds the interpreter delays a new
//! password, but no renewal.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use locktender::host::{PerProcess, Process};
use locktender::{CredentialsFuture, CredentialsProvider};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arguments::{seconds, text};
use crate::causes::Raised;
use crate::clients;
use crate::garbage::during_a_visit;
use crate::guarded::{Awaited, Guarded};
use crate::own;
use crate::visit::{Visit, park};

/// How long the thread that answers waits at a time.
const A_WHILE: Duration = Duration::from_secs(3600);

/// Whether any client has such a callable.
static NEEDED: AtomicBool = AtomicBool::new(false);

/// The process whose thread was started. Locked only by threads that hold the interpreter.
static SERVES: Guarded<Option<Process>> = Guarded::new(None);

static QUEUE: PerProcess<Awaited<Waiting>> = PerProcess::new();

#[derive(Default)]
struct Waiting {
    asked: VecDeque<Question>,
    stopped: bool,
}

type Answer = Result<locktender::Credentials, Raised>;

/// The question of the client with a number, for the server at an address.
struct Question {
    client: u64,
    server: String,
    reply: Sender<Answer>,
}

/// A user and a password for a server, and how long they are good: what a client's ``credentials`` may return.
///
///     client = Client("rediss://db.example", credentials=lambda: Credentials("token", user="billing", expires_in=900))
///
/// ``password``
///     The password, or a token.
/// ``user``
///     The user. Default: the server's default user.
/// ``expires_in``
///     For how many seconds from now they are good. When two thirds of that are over, ``credentials`` is called for the next ones; less
///     than a second counts as a second. Default unknown: it is called again after 5 minutes.
#[pyclass(module = "locktender", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct Credentials {
    user: Option<String>,
    password: String,
    life: Option<Duration>,
}

#[pymethods]
impl Credentials {
    #[new]
    #[pyo3(signature = (password, *, user=None, expires_in=None), text_signature = "(password, *, user=None, expires_in=None)")]
    fn new(
        password: &Bound<'_, PyAny>,
        user: Option<&Bound<'_, PyAny>>,
        expires_in: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let password = password.extract().or_else(|_| text("password", password.get_type().as_any()))?;
        let user = user.map(|user| text("user", user)).transpose()?;
        let life = expires_in.map(|life| seconds("expires_in", life)).transpose()?;
        Ok(Self { user, password, life })
    }

    /// The user; ``None`` for the server's default user.
    #[getter]
    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password.
    #[getter]
    fn password(&self) -> &str {
        &self.password
    }

    /// For how many seconds they are good; ``None`` if that is unknown.
    #[getter]
    fn expires_in(&self) -> Option<f64> {
        self.life.map(|life| life.as_secs_f64())
    }

    /// Without the password.
    fn __repr__(&self) -> String {
        let user = self.user.as_ref().map_or("None".to_owned(), |user| format!("{user:?}"));
        let life = self.life.map_or("None".to_owned(), |life| life.as_secs_f64().to_string());
        format!("Credentials('***', user={user}, expires_in={life})")
    }
}

/// What a thread is asked to find out.
#[pyclass(module = "locktender._native", name = "_Asked", frozen)]
pub(crate) struct Asked {
    /// The server's address, without credentials.
    #[pyo3(get)]
    server: String,
    /// The client's callable; ``None`` if the client is gone.
    #[pyo3(get)]
    credentials: Option<Py<PyAny>>,
    reply: Guarded<Option<Sender<Answer>>>,
}

/// Answers with these.
#[pyfunction(name = "_give_credentials")]
#[pyo3(signature = (asked, credentials, /))]
pub(crate) fn give_credentials(asked: &Asked, credentials: &Credentials) {
    let Credentials { user, password, life } = credentials;
    let answer = locktender::Credentials::new(password);
    let answer = user.iter().fold(answer, locktender::Credentials::user);
    asked.reply(Ok(life.iter().copied().fold(answer, locktender::Credentials::expires_in)));
}

/// Answers that the callable has failed.
#[pyfunction(name = "_fail_credentials")]
#[pyo3(signature = (asked, error, text, /))]
pub(crate) fn fail_credentials(asked: &Asked, error: Py<PyAny>, text: String) {
    let (error, garbage) = Raised::new(error, text);
    // The answer first: from the exit on no visit begins.
    asked.reply(Err(error));
    during_a_visit(|_| drop(garbage));
}

impl Asked {
    fn reply(&self, answer: Answer) {
        // The core may have cancelled the wait.
        self.reply.take().map(|reply| reply.send(answer));
    }
}

/// The provider of a client in the core.
pub(crate) struct Provider {
    pub(crate) client: u64,
}

impl CredentialsProvider for Provider {
    fn credentials<'a>(&'a self, server: &'a str) -> CredentialsFuture<'a> {
        let (reply, answer) = channel();
        let question = Question { client: self.client, server: server.to_owned(), reply };
        let queue = queue();
        queue.with(|waiting| {
            if !waiting.stopped {
                waiting.asked.push_back(question);
            }
        });
        queue.notify();
        // It blocks this thread, which is there for that.
        Box::pin(async move { Ok(answer.recv().map_err(|_| Raised::of_text("the interpreter ends"))??) })
    }
}

/// This process's queue: in a forked child the parent's may have been copied while locked.
fn queue() -> Arc<Awaited<Waiting>> {
    QUEUE.get_or_make(Awaited::default)
}

/// Has the thread started that answers in this process, from the first client with such a callable on.
pub(crate) fn serve(py: Python<'_>) -> PyResult<()> {
    NEEDED.store(true, Ordering::Relaxed);
    refresh(py)
}

/// Starts it again in a forked child. Called before every operation.
pub(crate) fn refresh(py: Python<'_>) -> PyResult<()> {
    let here = Some(Process::current());
    if !NEEDED.load(Ordering::Relaxed) || SERVES.replace(here) == here {
        return Ok(());
    }
    match own::call(py, "_credentials", "start", ()) {
        Ok(_) => Ok(()),
        Err(error) => {
            _ = SERVES.take();
            // The system has no thread left. The next operation tries again.
            if error.is_instance_of::<PyRuntimeError>(py) { Ok(()) } else { Err(error) }
        }
    }
}

/// Waits for a question. From the exit on it sleeps: to come back the thread would need the interpreter, which ends.
#[pyfunction(name = "_next_credentials")]
pub(crate) fn next_credentials(py: Python<'_>) -> Asked {
    let queue = queue();
    let next = |waiting: &mut Waiting| match waiting.asked.pop_front() {
        Some(question) => Some(Some((question, Visit::count()))),
        None => waiting.stopped.then_some(None),
    };
    let (Question { client, server, reply }, _visit) = py.detach(|| {
        loop {
            if let Some(found) = queue.wait(A_WHILE, next) {
                return found.unwrap_or_else(|| park());
            }
        }
    });
    Asked { server, credentials: clients::credentials(py, client), reply: Guarded::new(Some(reply)) }
}

/// Has the thread sleep: who asks from now on gets no answer.
pub(crate) fn stop() {
    let queue = queue();
    drop(queue.with(|waiting| {
        waiting.stopped = true;
        std::mem::take(&mut waiting.asked)
    }));
    queue.notify();
}
