//! The first words on a new connection: who we are, which database, what server this is.

use std::sync::Arc;
use std::time::Duration;

use redis::{RedisError, RedisResult, Value};
use tokio::io::AsyncWriteExt;

use super::codec::{self, Form};
use super::dial::{Limit, dial};
use super::hearing::Audience;
use super::info;
use super::link::Link;
use super::replies::Replies;
use super::stream::Socket;
use super::url::Target;
use crate::server::{Failure, FailureKind, Fleet, Op, Verdict};

/// What connecting needs to know, fixed for a server's life.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) target: Target,
    pub(super) fleet: Option<Fleet>,
    pub(super) connect_timeout: Duration,
    pub(super) response_timeout: Duration,
}

/// A socket whose server knows us, and the run id if it was asked for.
pub(super) struct Greeted {
    pub(super) socket: Socket,
    pub(super) run_id: Option<String>,
}

/// Connects a lane that runs as a task. With an `audience`, messages can be heard on the connection once it was told to speak
/// RESP3.
pub(super) async fn connect(settings: &Settings, audience: Option<Audience>) -> Result<Link, Failure> {
    Ok(Link::new(greet(settings).await?, settings.response_timeout, audience))
}

/// Connects, and asks what has to be known before the first operation, in one round trip.
pub(super) async fn greet(settings: &Settings) -> Result<Greeted, Failure> {
    let limit = Limit::new(settings.connect_timeout);
    let mut socket = dial(&settings.target, limit).await?;
    let questions = questions(settings);
    let answers = limit.keep(FailureKind::Timeout, "connected, but no answer", ask(&mut socket, &questions)).await?;
    let steps = questions.iter().map(|(step, _)| *step);
    let run_id = judge(steps.zip(answers), settings)?;
    Ok(Greeted { socket, run_id })
}

/// The answers, up to the first that doesn't come.
async fn ask(socket: &mut Socket, questions: &[(Step, Vec<u8>)]) -> Vec<RedisResult<Value>> {
    let bytes: Vec<u8> = questions.iter().flat_map(|(_, command)| command).copied().collect();
    let mut replies = Replies::default();
    let mut answers = Vec::with_capacity(questions.len());
    // A server that doesn't read may still have said why: then the error is the end of what it said.
    if socket.write_all(&bytes).await.is_ok() {
        let _ = socket.flush().await;
    }
    for _ in questions {
        let answer = replies.read(socket).await;
        let ended = answer.is_err();
        answers.push(answer);
        if ended {
            break;
        }
    }
    answers
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Credentials,
    Database,
    Name,
    RunId,
    Greeting,
}

/// What is asked first, as bytes.
pub(super) fn questions(settings: &Settings) -> Vec<(Step, Vec<u8>)> {
    let mut questions = Vec::with_capacity(4);
    let target = &settings.target;
    if target.user.is_some() || target.password.is_some() {
        let mut command = redis::cmd("AUTH");
        if let Some(user) = &target.user {
            command.arg(user);
        }
        command.arg(target.password.as_deref().unwrap_or_default());
        questions.push((Step::Credentials, command.get_packed_command()));
    }
    if target.database != 0 {
        questions.push((Step::Database, redis::cmd("SELECT").arg(target.database).get_packed_command()));
    }
    questions.push((Step::Name, redis::cmd("CLIENT").arg("SETNAME").arg("locktender").get_packed_command()));
    questions.push(match settings.fleet {
        Some(_) => (Step::RunId, redis::cmd("INFO").arg("server").get_packed_command()),
        // As text: one round trip, whatever the server's script cache holds.
        None => {
            let mut command = Vec::new();
            codec::command(&Op::Greet { fleet: None }, None, Form::ByText).write(&mut command);
            (Step::Greeting, command)
        }
    });
    questions
}

/// The run id, where it was asked for, or why there is no connection. A server that hangs up says why first.
pub(super) fn judge(
    answers: impl Iterator<Item = (Step, RedisResult<Value>)>,
    settings: &Settings,
) -> Result<Option<String>, Failure> {
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
