//! Conversation: the commands and the answers on one socket after its handshake.

use redis::{PushKind, RedisResult, Value};

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::server::redis::commands::codec::{self, Form};
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::pipeline::{Job, Pipeline};
use crate::server::redis::connection::subscriber::Question;

/// One socket whose server knows this client.
pub(crate) struct Conversation {
    pub(crate) buffers: Buffers,
    pub(crate) pipeline: Pipeline,
    /// Whether the client goes, and may have no time to send anything again.
    pub(crate) is_last: bool,
}

/// A reply or a message of the server.
pub(crate) enum Said {
    /// An answer to the oldest question. A push that was asked for is an answer, too.
    Answer(RedisResult<Value>),
    /// A message that the client did not ask for.
    Unasked(Value),
}

impl Conversation {
    /// Sends an operation after those before it. The first extension is sent as text: on a slow link its hold could end while a
    /// server asks for the script. So is the last release.
    pub(crate) fn send(&mut self, job: Job, form: Form, now: Tick) {
        let op = &job.request.op;
        let is_urgent = op.counts_late() && !mutant!(FirstExtensionByHash) || self.is_last && !mutant!(LastReleaseByHash);
        let form = if is_urgent && !self.pipeline.knows_script(op) { Form::ByText } else { form };
        codec::command(op, self.pipeline.peer(), form).write(self.buffers.output.end());
        self.pipeline.push(job, form, now);
    }

    /// Asks questions for the subscriber.
    pub(crate) fn ask(&mut self, questions: &[Question], channel: &str, now: Tick) {
        for question in questions {
            self.buffers.output.end().extend(question.command(channel));
            self.pipeline.push_question(*question, now);
        }
    }

    /// The next reply or message of the server, if all of it is there.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let reply = self.buffers.replies.next()?;
        self.pipeline.arrived();
        Some(match reply {
            Ok(Value::Push { kind, data }) if !is_answer(&kind) => Said::Unasked(Value::Push { kind, data }),
            answer => Said::Answer(answer),
        })
    }
}

/// Whether a server pushes this as an answer to a subscription or to the end of one.
fn is_answer(kind: &PushKind) -> bool {
    use PushKind::{PSubscribe, PUnsubscribe, SSubscribe, SUnsubscribe, Subscribe, Unsubscribe};
    matches!(kind, Subscribe | PSubscribe | SSubscribe | Unsubscribe | PUnsubscribe | SUnsubscribe)
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
