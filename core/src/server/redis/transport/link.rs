//! One live connection of a lane that runs as a task.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use redis::{PushInfo, PushKind, RedisError, RedisResult, Value};
use tokio::io::AsyncWrite;

use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::commands::codec::{self, Form};
use crate::server::redis::commands::replies::Replies;
use crate::server::redis::connection::connection::Wire;
use crate::server::redis::connection::listener::Audience;
use crate::server::redis::connection::outbox::Outbox;
use crate::server::redis::connection::pipeline::{Job, Sent};
use crate::server::redis::connection::subscriber::Word;
use crate::server::redis::transport::handshake::Greeted;
use crate::server::redis::transport::socket::{Pulse, Socket};

/// What happens on a connection.
pub(crate) enum Event {
    /// The command with this number is answered.
    Landed(u64, RedisResult<Value>),
    /// The connection is closed, or as good as that.
    Broken(Option<RedisError>),
}

/// One connection.
pub(crate) struct Link {
    socket: Socket,
    pulse: Pulse,
    replies: Replies,
    /// The number of the command whose answer comes next.
    next: u64,
    sent: Sent,
    outbox: Outbox,
    /// What was written may still be on its way through TLS.
    unflushed: bool,
    /// Why nothing can be written any more. The server may have said its last before.
    mute: Option<io::Error>,
    /// Who hears what the server says unasked.
    audience: Option<Audience>,
}

impl Link {
    pub(crate) fn new(greeted: Greeted, response_timeout: Duration, audience: Option<Audience>) -> Self {
        let pulse = Pulse::default();
        Self {
            socket: greeted.socket,
            replies: Replies::default(),
            next: 0,
            sent: Sent::new(pulse.clone(), greeted.run_id, response_timeout),
            pulse,
            outbox: Outbox::default(),
            unflushed: false,
            mute: None,
            audience,
        }
    }

    /// Writes what was sent, and waits for the next event. Cancel safe: what was read or not yet written stays.
    pub(crate) async fn next(&mut self) -> Event {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if self.mute.is_none()
            && let Poll::Ready(Err(error)) = self.poll_write(context)
        {
            self.mute = Some(error);
        }
        loop {
            while let Some(reply) = self.replies.next() {
                self.pulse.beat();
                if let Some(reply) = self.heard(reply) {
                    self.next += 1;
                    return Poll::Ready(Event::Landed(self.next - 1, reply));
                }
            }
            match self.replies.poll_fill(Pin::new(&mut self.socket), context) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Event::Broken(None)),
                Poll::Ready(Ok(_)) => (),
                Poll::Ready(Err(error)) => return Poll::Ready(Event::Broken(Some(error.into()))),
                Poll::Pending => match self.mute.take() {
                    Some(error) => return Poll::Ready(Event::Broken(Some(error.into()))),
                    None => return Poll::Pending,
                },
            }
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outbox.is_empty() {
            let count = ready!(Pin::new(&mut self.socket).poll_write(context, self.outbox.rest()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outbox.took(count);
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.socket).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Passes on what was said unasked, and gives back what is an answer: also what is pushed because it was asked for.
    fn heard(&self, reply: RedisResult<Value>) -> Option<RedisResult<Value>> {
        match reply {
            Ok(Value::Push { kind, data }) if !is_answer(&kind) => {
                if let Some(hearing) = self.audience.as_ref().and_then(|audience| audience.get()) {
                    hearing.pushed(PushInfo { kind, data });
                }
                None
            }
            answer => Some(answer),
        }
    }
}

/// Whether a server pushes this when it was asked to subscribe, or not to any more.
fn is_answer(kind: &PushKind) -> bool {
    use PushKind::{PSubscribe, PUnsubscribe, SSubscribe, SUnsubscribe, Subscribe, Unsubscribe};
    matches!(kind, Subscribe | PSubscribe | SSubscribe | Unsubscribe | PUnsubscribe | SUnsubscribe)
}

impl Wire for Link {
    type Attempt = Pin<Box<dyn Future<Output = Result<Self, Failure>> + Send>>;

    /// The write happens when the lane waits next, together with those of others.
    fn send(&mut self, job: Job, form: Form, now: Tick) {
        codec::command(&job.request.op, self.sent.run_id(), form).write(self.outbox.end());
        self.sent.push(job, form, now);
    }

    fn say(&mut self, word: Word, channel: &str, now: Tick) {
        self.outbox.end().extend(word.command(channel));
        self.sent.push_word(word, now);
    }

    fn sent(&self) -> &Sent {
        &self.sent
    }

    fn sent_mut(&mut self) -> &mut Sent {
        &mut self.sent
    }
}
