//! The first words on a new connection: who we are, which database, what server this is.

use std::sync::Arc;

use redis::{RedisError, RedisResult, Value};
use tokio::io::AsyncWriteExt;

use crate::error::quoted::quoted;
use crate::op::{Failure, FailureKind, Op, Verdict};
use crate::server::redis::commands::codec::{self, Form};
use crate::server::redis::commands::info;
use crate::server::redis::commands::refusal;
use crate::server::redis::commands::replies::Replies;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::dial::{Limit, dial};
use crate::server::redis::transport::socket::Socket;
use crate::server::redis::transport::url::{Endpoint, Target};

/// A socket whose server knows us, and the run id if it was asked for.
pub(crate) struct Greeted {
    pub(crate) socket: Socket,
    pub(crate) run_id: Option<String>,
}

/// Connects, and asks what has to be known before the first operation, in one round trip.
pub(crate) async fn greet(settings: &Settings) -> Result<Greeted, Failure> {
    let limit = Limit::new(settings.connect_timeout);
    let mut socket = dial(&settings.target, limit).await?;
    let mut replies = Replies::default();
    let questions = questions(settings);
    let what = "connected, but no answer";
    let answers = limit.keep(FailureKind::Timeout, what, ask(&mut socket, &mut replies, &questions)).await?;
    if answers.iter().any(is_scriptless) && limit.keep(FailureKind::Timeout, what, is_sentinel(&mut socket, &mut replies)).await?
    {
        return Err(Failure::not_applied(FailureKind::Mismatch, refusal::SENTINEL));
    }
    let steps = questions.iter().map(|(step, _)| *step);
    let run_id = judge(steps.zip(answers), settings)?;
    if !replies.is_empty() {
        return Err(Failure::not_applied(FailureKind::Protocol, "more was answered than had been asked"));
    }
    Ok(Greeted { socket, run_id })
}

/// The answers, up to the first that doesn't come.
async fn ask(socket: &mut Socket, replies: &mut Replies, questions: &[(Step, Vec<u8>)]) -> Vec<RedisResult<Value>> {
    let bytes: Vec<u8> = questions.iter().flat_map(|(_, command)| command).copied().collect();
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

/// Whether the server has answered that it runs no scripts.
fn is_scriptless(answer: &RedisResult<Value>) -> bool {
    let Ok(Value::ServerError(error)) = answer else { return false };
    refusal::knows_no_scripts(error.code(), error.details().unwrap_or_default())
}

/// Whether the server says that it is a sentinel, which runs none.
async fn is_sentinel(socket: &mut Socket, replies: &mut Replies) -> bool {
    let question = (Step::RunId, redis::cmd("INFO").arg("server").get_packed_command());
    let answers = ask(socket, replies, &[question]).await;
    let mode = answers.first().and_then(|answer| mode(answer.as_ref().ok()?));
    mode.as_deref() == Some("sentinel")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Credentials,
    Database,
    Name,
    RunId,
    Greeting,
}

/// What is asked first, as bytes.
pub(crate) fn questions(settings: &Settings) -> Vec<(Step, Vec<u8>)> {
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
    questions.push((Step::Name, redis::cmd("CLIENT").arg("SETNAME").arg(&settings.name).get_packed_command()));
    questions.push(match settings.quorum_config {
        Some(_) => (Step::RunId, redis::cmd("INFO").arg("server").get_packed_command()),
        // As text: one round trip, whatever the server's script cache holds.
        None => {
            let mut command = Vec::new();
            codec::command(&Op::Greet { quorum_config: None }, None, Form::ByText).write(&mut command);
            (Step::Greeting, command)
        }
    });
    questions
}

/// The run id, where it was asked for, or why there is no connection. A server that hangs up says why first.
pub(crate) fn judge(
    answers: impl Iterator<Item = (Step, RedisResult<Value>)>,
    settings: &Settings,
) -> Result<Option<String>, Failure> {
    let mut said = None;
    let mut run_id = None;
    for (step, answer) in answers {
        let value = match answer.and_then(Value::extract_error) {
            Ok(value) => value,
            Err(error) if is_transport(&error) => return Err(said.unwrap_or_else(|| hung_up(&error, &settings.target))),
            Err(error) => {
                let failure = refused(step, &error, &settings.target);
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
            Step::RunId => {
                check_mode(&value)?;
                run_id = field(&value, "run_id");
            }
            Step::Greeting => greeted(value)?,
            Step::Credentials | Step::Database | Step::Name => {}
        }
    }
    Ok(run_id)
}

fn is_transport(error: &RedisError) -> bool {
    error.is_io_error() || matches!(error.kind(), redis::ErrorKind::Parse | redis::ErrorKind::Client)
}

fn hung_up(error: &RedisError, target: &Target) -> Failure {
    let failure = refusal::failure(error, true);
    // A server that wants a client certificate says so only after the handshake, in the place of an answer.
    let alert = std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>())
        .and_then(|shared| shared.downcast_ref::<std::io::Error>())
        .and_then(std::io::Error::get_ref)
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    // A server that expects TLS hangs up on everything else, most of them without a word.
    let doubt = match (&target.endpoint, failure.kind) {
        (Endpoint::Tcp { .. }, FailureKind::Disconnected) => "; does that port speak TLS? If so, its URL begins with rediss://",
        _ => "",
    };
    match alert {
        Some(alert) => Failure::not_applied(FailureKind::Tls, format!("the server ended TLS: {alert}")),
        None => Failure::not_applied(failure.kind, format!("no Redis answered: {}{doubt}", failure.message)),
    }
}

/// What a person is told of a refusal. A server that doesn't know a command repeats it, and the words behind it: where that may be
/// the password only the code is shown.
fn refused(step: Step, error: &RedisError, target: &Target) -> Failure {
    let failure = refusal::failure(error, true);
    let text = error.to_string();
    let is_about_credentials = text.contains("AUTH") || text.contains("password");
    let kind = match (step, failure.kind) {
        // "ERR AUTH … called without any password configured" and the like; "ERR max number of clients reached" is none.
        (Step::Credentials, FailureKind::Other) if is_about_credentials => FailureKind::Denied,
        (_, kind) => kind,
    };
    let code = code(error, target);
    let message = match step {
        Step::Credentials if text.contains("without any password") => {
            format!("the URL has a password, but the server asks for none ({code})")
        }
        Step::Credentials if kind == FailureKind::Denied => format!("the server refused the URL's user or password ({code})"),
        Step::Credentials if error.detail() == Some(FULL) => format!("{code} {FULL}"),
        Step::Credentials => format!("the server answered the password with an error ({code})"),
        _ if repeats(&text, target) => format!("the server answered with an error that repeats the password ({code})"),
        Step::Database => format!("database {} can't be used: {}", target.database, failure.message),
        _ => failure.message,
    };
    Failure::not_applied(kind, message)
}

/// What a server says instead of any other answer.
const FULL: &str = "max number of clients reached";

/// The first word of an error, if it is a word of a server's.
fn code<'a>(error: &'a RedisError, target: &Target) -> &'a str {
    let is_word = |code: &&str| code.len() <= 20 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    error.code().filter(is_word).filter(|code| !repeats(code, target)).unwrap_or("ERR")
}

/// Whether a text has the password in it. A server cuts what it repeats, so the beginning is looked for.
fn repeats(text: &str, target: &Target) -> bool {
    let password = target.password.as_deref().unwrap_or_default();
    let begin = password.char_indices().nth(6).map_or(password, |(end, _)| &password[..end]);
    !begin.is_empty() && text.contains(begin)
}

fn greeted(value: Value) -> Result<(), Failure> {
    let reply = codec::reply(&Op::Greet { quorum_config: None }, value)
        .map_err(|failure| Failure::not_applied(failure.kind, failure.message))?;
    if reply.verdict == Verdict::Mismatch {
        let theirs = quoted(&reply.holder.unwrap_or_default());
        let message = format!("this client has one server, but the server belongs to a quorum: {theirs}");
        return Err(Failure::not_applied(FailureKind::Mismatch, message));
    }
    Ok(())
}

/// Refuses what can't be one of several servers, whatever it holds.
fn check_mode(info: &Value) -> Result<(), Failure> {
    let why = match mode(info).as_deref() {
        Some("sentinel") => refusal::SENTINEL.to_owned(),
        Some("cluster") => refusal::cluster("its mode is cluster"),
        _ => return Ok(()),
    };
    Err(Failure::not_applied(FailureKind::Mismatch, why))
}

/// What a server runs as; Valkey has a word of its own for it.
fn mode(info: &Value) -> Option<String> {
    field(info, "redis_mode").or_else(|| field(info, "server_mode"))
}

fn field(info: &Value, name: &str) -> Option<String> {
    let text: String = redis::from_redis_value_ref(info).ok()?;
    info::field(&text, name)
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
