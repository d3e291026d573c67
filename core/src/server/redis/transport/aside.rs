//! A second connection that only subscribes, for a peer whose RESP2 can't carry messages beside answers.
//!
//! What arrives on it is no sequence of answers, so it is read value by value.

use std::sync::Arc;
use std::time::Duration;

use redis::{RedisResult, Value};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep_until, timeout};

use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::refusal;
use crate::server::redis::commands::replies::Replies;
use crate::server::redis::connection::failure::{disconnected, no_answer};
use crate::server::redis::connection::listener::Hearing;
use crate::server::redis::connection::subscriber::{LOOK, LOOKS, SUBSCRIBE, Word};
use crate::server::redis::connection::subscription::Subscription;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::dial::{Limit, dial};
use crate::server::redis::transport::handshake::{Step, judge, questions};
use crate::server::redis::transport::socket::Socket;

/// How it ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// There was no connection.
    Unconnected(Failure),
    /// The peer doesn't let us listen, or hangs up when asked to.
    Refused(Failure),
    /// It was a subscription; `useful` if it lived long enough for the next to follow at once.
    Broken { failure: Failure, useful: bool },
}

/// Connects, subscribes and listens as long as that lasts.
pub(crate) async fn listen_aside(settings: Arc<Settings>, hearing: Arc<Hearing>) -> Ending {
    let mut wire = match connect(&settings).await {
        Ok(wire) => wire,
        Err(failure) => return Ending::Unconnected(failure),
    };
    match timeout(settings.response_timeout, wire.subscribe(&hearing)).await {
        Ok(Ok(())) => hearing.listening(),
        Ok(Err(failure)) => return Ending::Refused(failure),
        Err(_) => return Ending::Refused(no_answer(settings.response_timeout)),
    }
    let begun = Instant::now();
    let failure = wire.listen(&hearing, settings.response_timeout).await;
    Ending::Broken { failure, useful: begun.elapsed() > LOOK * LOOKS }
}

async fn connect(settings: &Settings) -> Result<Wire, Failure> {
    let limit = Limit::new(settings.connect_timeout);
    let mut wire = Wire { socket: dial(&settings.target, limit).await?, replies: Replies::default() };
    let first = questions(settings).into_iter().filter(|(step, _)| matches!(step, Step::Credentials | Step::Name));
    let (steps, commands): (Vec<Step>, Vec<Vec<u8>>) = first.unzip();
    let answers = async {
        let mut answers = Vec::with_capacity(commands.len());
        let written = wire.write(&commands).await;
        for _ in &commands {
            answers.push(match &written {
                Ok(()) => wire.read().await,
                Err(error) => Err(error.clone()),
            });
        }
        answers
    };
    let answers = limit.keep(FailureKind::Timeout, "connected, but no answer", answers).await?;
    judge(steps.into_iter().zip(answers), settings)?;
    Ok(wire)
}

/// A socket and what was read of the next value.
struct Wire {
    socket: Socket,
    replies: Replies,
}

impl Wire {
    async fn write(&mut self, commands: &[Vec<u8>]) -> RedisResult<()> {
        self.socket.write_all(&commands.concat()).await?;
        Ok(self.socket.flush().await?)
    }

    /// Reads the next value. Cancel safe: what was read of it stays.
    async fn read(&mut self) -> RedisResult<Value> {
        self.replies.read(&mut self.socket).await
    }

    async fn subscribe(&mut self, hearing: &Hearing) -> Result<(), Failure> {
        let broken = |error| refusal::failure(&error, true);
        let commands: Vec<_> = SUBSCRIBE.iter().map(|word| word.command(&hearing.channel)).collect();
        self.write(&commands).await.map_err(broken)?;
        let mut subscription = Subscription::default();
        let mut words = SUBSCRIBE.iter();
        loop {
            let refusal = match self.read().await.map_err(broken)? {
                Value::ServerError(error) => Some(refusal::failure(&error.into(), true)),
                value if is_message(&value) => {
                    hearing.sent(value);
                    continue;
                }
                _ => None,
            };
            let Some(Word::Subscribe(kind)) = words.next() else { return Err(disconnected()) };
            if let Some(outcome) = subscription.answered(*kind, refusal) {
                return outcome;
            }
        }
    }

    /// Passes messages on until the connection breaks. Asks something when nothing came for a while.
    async fn listen(&mut self, hearing: &Hearing, patience: Duration) -> Failure {
        let mut asked = false;
        let mut until = Instant::now() + LOOK * LOOKS;
        loop {
            tokio::select! {
                biased;
                value = self.read() => match value {
                    Ok(value) => {
                        hearing.sent(value);
                        asked = false;
                        until = Instant::now() + LOOK * LOOKS;
                    }
                    Err(error) => return refusal::failure(&error, true),
                },
                () = sleep_until(until) => {
                    if asked || hearing.is_over() {
                        return no_answer(patience);
                    }
                    if let Err(error) = self.write(&[Word::Ping.command(&hearing.channel)]).await {
                        return refusal::failure(&error, true);
                    }
                    asked = true;
                    until = Instant::now() + patience;
                }
            }
        }
    }
}

/// Whether this was published, and is no answer.
fn is_message(value: &Value) -> bool {
    let Value::Array(words) = value else { return false };
    matches!(words.first(), Some(Value::BulkString(kind)) if kind == b"message" || kind == b"smessage")
}
