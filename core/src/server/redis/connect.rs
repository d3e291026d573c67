//! The first words on a new connection: who we are, which database, what server this is.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, RedisError, RedisResult, Value};

use super::codec::{self, Form};
#[cfg(unix)]
use super::dial::dial_plain;
use super::dial::{Limit, dial};
use super::info;
use super::link::Link;
#[cfg(unix)]
use super::plain;
#[cfg(unix)]
use super::resp;
use super::stream::{Pulse, Watched};
use super::url::Target;
#[cfg(unix)]
use super::wire::Wire;
use crate::server::{Failure, FailureKind, Fleet, Op, Verdict};

/// Commands that may wait for the connection's writer. The lane bounds nothing: what is submitted is sent.
const WRITER_QUEUE: usize = 16 * 1024;

/// Bytes gathered before a write. Ten times what fifty renewals need: they leave in one write.
const WRITE_BOUNDARY: usize = 256 * 1024;

/// What connecting needs to know, fixed for a server's life.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) target: Target,
    pub(super) fleet: Option<Fleet>,
    pub(super) connect_timeout: Duration,
    pub(super) response_timeout: Duration,
}

/// Connects, and asks what has to be known before the first operation, in one round trip.
pub(super) async fn connect(settings: &Settings) -> Result<Link, Failure> {
    let limit = Limit::new(settings.connect_timeout);
    let pulse = Pulse::default();
    let stream = Watched { socket: dial(&settings.target, limit).await?, pulse: pulse.clone() };
    // Credentials and database are sent below, not by the crate, which takes any error for a wrong password.
    let silent = RedisConnectionInfo::default().set_skip_set_lib_name();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(WRITER_QUEUE)
        .set_write_backpressure_boundary(WRITE_BOUNDARY);
    let (connection, driver) = MultiplexedConnection::new_with_config(&silent, stream, config)
        .await
        .map_err(|error| Failure { maybe_applied: false, ..codec::failure(&error, false) })?;
    let mut link = Link::new(connection.clone(), tokio::spawn(driver), pulse, settings.response_timeout);
    let questions = questions(settings);
    let answers = questions.iter().map(|(_, command)| {
        let mut connection = connection.clone();
        async move { connection.send_packed_command(command).await }
    });
    let answers = limit.keep(FailureKind::Timeout, "connected, but no answer", join_all(answers)).await?;
    let steps = questions.iter().map(|(step, _)| *step);
    link.set_run_id(judge(steps.zip(answers), settings)?);
    Ok(link)
}

/// [`connect`] for whoever drives the connection without a task.
#[cfg(unix)]
pub(super) async fn connect_plain(settings: &Settings) -> Result<Wire, Failure> {
    let limit = Limit::new(settings.connect_timeout);
    let stream = dial_plain(&settings.target, limit).await?;
    let questions = questions(settings);
    let commands: Vec<u8> = questions.iter().flat_map(|(_, command)| command.get_packed_command()).collect();
    let asked = ask(&stream, &commands, questions.len());
    let answers = limit.keep(FailureKind::Timeout, "connected, but no answer", asked).await?;
    let steps = questions.iter().map(|(step, _)| *step);
    let run_id = judge(steps.zip(answers), settings)?;
    let failed = |error: std::io::Error| codec::failure(&error.into(), false);
    Ok(Wire::new(stream.into_plain().map_err(failed)?, run_id))
}

/// The answers to `count` commands; after a broken connection nothing but that.
#[cfg(unix)]
async fn ask(stream: &plain::Watched, mut commands: &[u8], count: usize) -> Vec<RedisResult<Value>> {
    let mut answers = Vec::with_capacity(count);
    let mut unread = Vec::new();
    while answers.len() < count {
        match exchange(stream, &mut commands, &mut unread).await.and_then(|()| resp::first(&unread)) {
            Ok(None) => {}
            Ok(Some((value, taken))) => {
                unread.drain(..taken);
                answers.push(Ok(value));
            }
            Err(error) => answers.push(Err(error)),
        }
    }
    answers
}

/// Sends what is left of `commands`, else reads, unless a whole answer is there.
#[cfg(unix)]
async fn exchange(stream: &plain::Watched, commands: &mut &[u8], unread: &mut Vec<u8>) -> RedisResult<()> {
    if !commands.is_empty() {
        let sent = stream.write(commands).await?;
        *commands = &commands[sent..];
    } else if resp::first(unread)?.is_none() {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await?;
        if count == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        unread.extend_from_slice(&bytes[..count]);
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Credentials,
    Database,
    Name,
    RunId,
    Greeting,
}

fn questions(settings: &Settings) -> Vec<(Step, Cmd)> {
    let mut questions = Vec::with_capacity(4);
    let target = &settings.target;
    if target.user.is_some() || target.password.is_some() {
        let mut command = redis::cmd("AUTH");
        if let Some(user) = &target.user {
            command.arg(user);
        }
        command.arg(target.password.as_deref().unwrap_or_default());
        questions.push((Step::Credentials, command));
    }
    if target.database != 0 {
        questions.push((Step::Database, redis::cmd("SELECT").arg(target.database).take()));
    }
    questions.push((Step::Name, redis::cmd("CLIENT").arg("SETNAME").arg("locktender").take()));
    questions.push(match settings.fleet {
        Some(_) => (Step::RunId, redis::cmd("INFO").arg("server").take()),
        // As text: one round trip, whatever the server's script cache holds.
        None => (Step::Greeting, codec::command(&Op::Greet { fleet: None }, None, Form::ByText)),
    });
    questions
}

/// The run id, where it was asked for, or why there is no connection. A server that hangs up says why first.
fn judge(answers: impl Iterator<Item = (Step, RedisResult<Value>)>, settings: &Settings) -> Result<Option<String>, Failure> {
    let mut said = None;
    let mut run_id = None;
    for (step, answer) in answers {
        let value = match answer.and_then(Value::extract_error) {
            Ok(value) => value,
            Err(error) if is_transport(&error) => return Err(said.unwrap_or_else(|| hung_up(&error))),
            Err(error) => {
                let failure = refused(step, &error, settings);
                match step {
                    // Nice to have: nothing depends on it. But if the server hangs up next, this is the reason.
                    Step::Name => said = said.or(Some(failure)),
                    Step::RunId | Step::Greeting if error.code() == Some("NOPERM") => {}
                    _ => return Err(said.unwrap_or(failure)),
                }
                continue;
            }
        };
        match step {
            Step::RunId => run_id = find_run_id(&value),
            Step::Greeting => greeted(value)?,
            Step::Credentials | Step::Database | Step::Name => {}
        }
    }
    Ok(run_id)
}

fn is_transport(error: &RedisError) -> bool {
    error.is_io_error() || matches!(error.kind(), redis::ErrorKind::Parse | redis::ErrorKind::Client)
}

fn hung_up(error: &RedisError) -> Failure {
    let failure = codec::failure(error, true);
    // A server that wants a client certificate says so only after the handshake, in the place of an answer.
    let alert = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>())
        .and_then(|shared| shared.downcast_ref::<std::io::Error>())
        .and_then(std::io::Error::get_ref)
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match alert {
        Some(alert) => Failure::not_applied(FailureKind::Tls, format!("the server ended TLS: {alert}")),
        None => Failure::not_applied(failure.kind, format!("no Redis answered: {}", failure.message)),
    }
}

fn refused(step: Step, error: &RedisError, settings: &Settings) -> Failure {
    let failure = codec::failure(error, true);
    let kind = match (step, failure.kind) {
        // "ERR AUTH … called without any password configured" and the like; "ERR max number of clients reached" is none.
        (Step::Credentials, FailureKind::Other) if error.to_string().contains("AUTH") => FailureKind::Denied,
        (_, kind) => kind,
    };
    let message = match step {
        Step::Database => format!("database {} can't be used: {}", settings.target.database, failure.message),
        _ => failure.message,
    };
    Failure::not_applied(kind, message)
}

fn greeted(value: Value) -> Result<(), Failure> {
    let reply =
        codec::reply(&Op::Greet { fleet: None }, value).map_err(|failure| Failure::not_applied(failure.kind, failure.message))?;
    if reply.verdict == Verdict::Mismatch {
        let theirs = reply.holder.unwrap_or_default();
        let message = format!("this client has one server, but the server belongs to a quorum: {theirs}");
        return Err(Failure::not_applied(FailureKind::Mismatch, message));
    }
    Ok(())
}

fn find_run_id(info: &Value) -> Option<String> {
    let text: String = redis::from_redis_value_ref(info).ok()?;
    info::field(&text, "run_id")
}
