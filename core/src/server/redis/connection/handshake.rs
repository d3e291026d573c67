//! Handshake: the first commands on a new socket. They say who we are and which database is meant, and ask what server this is.

use std::io;
use std::sync::Arc;

use redis::{RedisError, RedisResult, Value};

use crate::clock::Tick;
use crate::error::quoted::quoted;
use crate::op::{Failure, FailureKind, Op, Verdict};
use crate::server::redis::commands::codec::{self, Form, Peer};
use crate::server::redis::commands::info;
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::effect::Role;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::url::{Endpoint, Target};

/// A handshake under way: all questions leave at once, and are judged when all are answered.
pub(crate) struct Handshake {
    settings: Arc<Settings>,
    pub(crate) buffers: Buffers,
    steps: Vec<Step>,
    answers: Vec<RedisResult<Value>>,
    /// Whether the server knows no scripts, and was therefore asked whether it is a sentinel.
    may_be_sentinel: bool,
    until: Tick,
}

impl Handshake {
    /// Begins on a new socket; `until` is the end of the time that connecting may take.
    pub(crate) fn begin(settings: &Arc<Settings>, role: Role, until: Tick) -> Self {
        let mut buffers = Buffers::default();
        let mut steps = Vec::with_capacity(4);
        // A connection that only listens needs no database, and asks nothing of the server.
        let needed = |step| role == Role::Operations || matches!(step, Step::Credentials | Step::Name);
        for (step, command) in questions(settings).into_iter().filter(|(step, _)| needed(*step)) {
            steps.push(step);
            buffers.output.end().extend(command);
        }
        let answers = Vec::with_capacity(steps.len());
        Self { settings: Arc::clone(settings), buffers, steps, answers, may_be_sentinel: false, until }
    }

    /// The time at which the handshake has taken too long.
    pub(crate) fn until(&self) -> Tick {
        self.until
    }

    /// The failure of a handshake that has taken too long.
    pub(crate) fn late(&self) -> Failure {
        let span = self.settings.connect_timeout.as_millis();
        Failure::not_applied(FailureKind::Timeout, format!("connected, but no answer within {span} ms"))
    }

    /// Takes the bytes that were read. When the handshake ends, gives what the server has said, or the failure.
    pub(crate) fn read(&mut self) -> Option<Result<Peer, Failure>> {
        while let Some(answer) = self.buffers.replies.next() {
            if self.may_be_sentinel {
                let mode = answer.as_ref().ok().and_then(mode);
                let is_sentinel = mode.as_deref() == Some("sentinel");
                let sentinel = || Failure::not_applied(FailureKind::Mismatch, refusal::SENTINEL);
                return Some(if is_sentinel { Err(sentinel()) } else { self.judged() });
            }
            let is_last = answer.is_err();
            self.answers.push(answer);
            if is_last {
                return Some(self.judged());
            }
            if self.answers.len() < self.steps.len() {
                continue;
            }
            if !self.answers.iter().any(is_scriptless) {
                return Some(self.judged());
            }
            self.may_be_sentinel = true;
            self.buffers.output.end().extend(redis::cmd("INFO").arg("server").get_packed_command());
        }
        None
    }

    /// The failure of a handshake whose socket is closed before the end.
    pub(crate) fn closed(&mut self, why: Option<io::Error>) -> Failure {
        let error: RedisError = why.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()).into();
        if self.answers.len() < self.steps.len() {
            self.answers.push(Err(error.clone()));
        }
        self.judged().err().unwrap_or_else(|| hung_up(&error, &self.settings.target))
    }

    fn judged(&mut self) -> Result<Peer, Failure> {
        let answers = self.steps.iter().copied().zip(std::mem::take(&mut self.answers));
        let peer = judge(answers, &self.settings)?;
        if !self.buffers.replies.is_empty() {
            return Err(Failure::not_applied(FailureKind::Protocol, "more was answered than had been asked"));
        }
        Ok(peer)
    }
}

/// Whether the server has answered that it runs no scripts.
fn is_scriptless(answer: &RedisResult<Value>) -> bool {
    let Ok(Value::ServerError(error)) = answer else { return false };
    refusal::knows_no_scripts(error.code(), error.details().unwrap_or_default())
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Credentials,
    Database,
    Name,
    RunId,
    Greeting,
}

/// The questions of a handshake, as bytes.
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
        // The script as text: one round trip, whatever the server's script cache holds.
        None => {
            let mut command = Vec::new();
            codec::command(&Op::Greet { quorum_config: None }, &Peer::default(), Form::ByText).write(&mut command);
            (Step::Greeting, command)
        }
    });
    questions
}

/// What the server has said, or the reason why there is no connection. A server that hangs up says why first.
pub(crate) fn judge(answers: impl Iterator<Item = (Step, RedisResult<Value>)>, settings: &Settings) -> Result<Peer, Failure> {
    let mut said = None;
    let mut peer = Peer::default();
    for (step, answer) in answers {
        let value = match answer.and_then(Value::extract_error) {
            Ok(value) => value,
            Err(error) if is_transport(&error) => return Err(said.unwrap_or_else(|| hung_up(&error, &settings.target))),
            Err(error) => {
                let failure = refused(step, &error, &settings.target);
                match step {
                    // The name is optional: nothing depends on it. But if the server hangs up next, this is the reason.
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
                let run_id = field(&value, "run_id").map(Arc::from);
                let reads_header = major_version(&value).is_some_and(|major| major >= 7);
                peer = Peer { run_id, reads_header };
            }
            Step::Greeting => peer.reads_header = greeted(value)?,
            Step::Credentials | Step::Database | Step::Name => {}
        }
    }
    Ok(peer)
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
    // A server that expects TLS hangs up on everything else, mostly without a word.
    let doubt = match (&target.endpoint, failure.kind) {
        (Endpoint::Tcp { .. }, FailureKind::Disconnected) => "; does that port speak TLS? If so, its URL begins with rediss://",
        _ => "",
    };
    match alert {
        Some(alert) => Failure::not_applied(FailureKind::Tls, format!("the server ended TLS: {alert}")),
        None => Failure::not_applied(failure.kind, format!("no Redis answered: {}{doubt}", failure.message)),
    }
}

/// The text of a refusal for people. A server that doesn't know a command repeats it, with the words behind it. Where those may be
/// the password, only the code is shown.
fn refused(step: Step, error: &RedisError, target: &Target) -> Failure {
    let failure = refusal::failure(error, true);
    let text = error.to_string();
    let is_about_credentials = text.contains("AUTH") || text.contains("password");
    let kind = match (step, failure.kind) {
        // "ERR AUTH … called without any password configured" and the like is about credentials; "ERR max number of clients
        // reached" is not.
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

/// The text of a full server, which gives it instead of any other answer.
const FULL: &str = "max number of clients reached";

/// The first word of an error, if it is a code of the server and no repeated password.
fn code<'a>(error: &'a RedisError, target: &Target) -> &'a str {
    let is_word = |code: &&str| code.len() <= 20 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    error.code().filter(is_word).filter(|code| !repeats(code, target)).unwrap_or("ERR")
}

/// Whether a text has the password in it. A server cuts the words that it repeats, so the beginning of the password is looked for.
fn repeats(text: &str, target: &Target) -> bool {
    let password = target.password.as_deref().unwrap_or_default();
    let begin = password.char_indices().nth(6).map_or(password, |(end, _)| &password[..end]);
    !begin.is_empty() && text.contains(begin)
}

/// Takes the answer to a greeting; gives whether the server reads the header of a script.
fn greeted(value: Value) -> Result<bool, Failure> {
    let reads_header = matches!(&value, Value::Array(fields) if matches!(fields.get(5), Some(Value::Int(0x0007_0000..))));
    let reply = codec::reply(&Op::Greet { quorum_config: None }, value)
        .map_err(|failure| Failure::not_applied(failure.kind, failure.message))?;
    if let Verdict::Mismatch { quorum } = reply.verdict {
        let theirs = quoted(&quorum);
        let message = format!("this client has one server, but the server belongs to a quorum: {theirs}");
        return Err(Failure::not_applied(FailureKind::Mismatch, message));
    }
    Ok(reads_header)
}

/// Refuses a server that can't be one of several servers, whatever it holds.
fn check_mode(info: &Value) -> Result<(), Failure> {
    let why = match mode(info).as_deref() {
        Some("sentinel") => refusal::SENTINEL.to_owned(),
        Some("cluster") => refusal::cluster("its mode is cluster"),
        _ => return Ok(()),
    };
    Err(Failure::not_applied(FailureKind::Mismatch, why))
}

/// The mode in which a server runs; Valkey has a word of its own for it.
fn mode(info: &Value) -> Option<String> {
    field(info, "redis_mode").or_else(|| field(info, "server_mode"))
}

/// The first number of a server's version. Valkey shows the version of Redis that it can replace.
fn major_version(info: &Value) -> Option<u32> {
    field(info, "redis_version")?.split('.').next()?.parse().ok()
}

fn field(info: &Value, name: &str) -> Option<String> {
    let text: String = redis::from_redis_value_ref(info).ok()?;
    info::field(&text, name)
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
