//! Conversation: what is said on one socket after its handshake, in both directions.

use redis::{PushKind, RedisResult, Value};

use crate::clock::Tick;
use crate::server::redis::commands::codec::{self, Form};
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::pipeline::{Job, Pipeline};
use crate::server::redis::connection::subscriber::Question;

/// One socket whose server knows us.
pub(crate) struct Conversation {
    pub(crate) buffers: Buffers,
    pub(crate) pipeline: Pipeline,
}

/// What a server says.
pub(crate) enum Said {
    /// An answer to the oldest question: also what is pushed because it was asked for.
    Answer(RedisResult<Value>),
    /// Something that nobody asked for.
    Unasked(Value),
}

impl Conversation {
    /// Sends an operation after those before it.
    pub(crate) fn send(&mut self, job: Job, form: Form, now: Tick) {
        codec::command(&job.request.op, self.pipeline.run_id(), form).write(self.buffers.output.end());
        self.pipeline.push(job, form, now);
    }

    /// Asks something for the sake of listening.
    pub(crate) fn ask(&mut self, questions: &[Question], channel: &str, now: Tick) {
        for question in questions {
            self.buffers.output.end().extend(question.command(channel));
            self.pipeline.push_question(*question, now);
        }
    }

    /// The next thing that the server said, if all of it is there.
    pub(crate) fn next(&mut self) -> Option<Said> {
        let reply = self.buffers.replies.next()?;
        self.pipeline.arrived();
        Some(match reply {
            Ok(Value::Push { kind, data }) if !is_answer(&kind) => Said::Unasked(Value::Push { kind, data }),
            answer => Said::Answer(answer),
        })
    }
}

/// Whether a server pushes this when it was asked to subscribe, or not to any more.
fn is_answer(kind: &PushKind) -> bool {
    use PushKind::{PSubscribe, PUnsubscribe, SSubscribe, SUnsubscribe, Subscribe, Unsubscribe};
    matches!(kind, Subscribe | PSubscribe | SSubscribe | Unsubscribe | PUnsubscribe | SUnsubscribe)
}
