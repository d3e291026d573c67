//! Credentials that a function of JavaScript gives. A thread of the core puts a question into the queue and waits. So a blocked event
//! loop delays a new password, but no renewal.

use std::sync::Weak;

use locktender::{CredentialsFuture, CredentialsProvider};

use crate::item::Item;
use crate::questions::Raised;
use crate::queue::Queue;

/// The provider of a client in the core.
pub(crate) struct Provider {
    pub(crate) queue: Weak<Queue>,
    pub(crate) client: u32,
}

impl CredentialsProvider for Provider {
    fn credentials<'a>(&'a self, server: &'a str) -> CredentialsFuture<'a> {
        let answer = self.queue.upgrade().map(|queue| {
            let (question, answer) = queue.questions.add(self.client);
            queue.push(Item::Asked(self.client, question, server.to_owned()));
            answer
        });
        // It blocks this thread, which is there for that.
        Box::pin(async move {
            let answer = answer.ok_or_else(Raised::over)?;
            Ok(answer.recv().map_err(|_| Raised::over())??)
        })
    }
}
