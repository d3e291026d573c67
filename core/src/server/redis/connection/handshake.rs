//! Handshake: the first commands on a new socket. They name the client and the database, and ask what server this is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::{RedisError, RedisResult, Value};

use crate::clock::Tick;
use crate::error::quoted::quoted;
use crate::name::Keys;
use crate::op::{Failure, FailureKind, Op, Verdict};
use crate::server::redis::commands::codec;
use crate::server::redis::commands::handshake_facts::HandshakeFacts;
use crate::server::redis::commands::refusal;
use crate::server::redis::commands::words::{self, Form};
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::login::Login;
use crate::server::redis::settings::Settings;
use crate::server::redis::url::Endpoint;

/// A handshake under way: all questions leave at once, and are assessed when all are answered.
pub struct Handshake {
    settings: Arc<Settings>,
    /// The buffers of the socket.
    pub buffers: Buffers,
    steps: Vec<Step>,
    answers: Vec<RedisResult<Value>>,
    /// The time at which the handshake has taken too long.
    pub(crate) until: Tick,
    /// The credentials that it sends to the server.
    pub(crate) login: Arc<Login>,
    /// Whether the server refuses the credentials, after the handshake has failed.
    pub(crate) is_refused: bool,
}

impl Handshake {
    /// Begins on a new socket; `until` is the end of the time that connecting may take.
    pub(crate) fn begin(settings: &Arc<Settings>, until: Tick) -> Self {
        Self::of_steps(settings, until, |_| true)
    }

    /// The same on a socket that only listens, or asks for a map: it names the client. Such a connection needs no database, and a
    /// replica is good enough.
    #[must_use]
    pub fn introduce(settings: &Arc<Settings>) -> Self {
        Self::of_steps(settings, Tick::NEVER, |step| matches!(step, Step::Credentials | Step::Name))
    }

    fn of_steps(settings: &Arc<Settings>, until: Tick, is_needed: impl Fn(Step) -> bool) -> Self {
        let (mut buffers, login) = (Buffers::default(), settings.login());
        let mut steps = Vec::with_capacity(8);
        for (step, command) in questions(settings, &login).into_iter().filter(|(step, _)| is_needed(*step)) {
            steps.push(step);
            buffers.output.end().extend(command);
        }
        let answers = Vec::with_capacity(steps.len());
        Self { settings: Arc::clone(settings), buffers, steps, answers, until, login, is_refused: false }
    }

    /// Whether the handshake has failed by its transaction, which the next one leaves out.
    pub(crate) fn is_without_transaction(&self) -> bool {
        self.steps.contains(&Step::Multi) && self.settings.has_no_transactions.load(Ordering::Relaxed)
    }

    /// The failure of a handshake that has taken too long.
    pub(crate) fn late(&self) -> Failure {
        let span = self.settings.connect_timeout.as_millis();
        Failure::not_applied(FailureKind::Timeout, format!("connected, but no answer within {span} ms"))
    }

    /// Takes the bytes that were read. When the handshake ends, gives the facts about the server, or the failure.
    pub(crate) fn read(&mut self) -> Option<Result<HandshakeFacts, Failure>> {
        while let Some(answer) = self.buffers.replies.next() {
            if answer.is_ok() {
                self.settings.answered();
            }
            let is_last = answer.is_err() || self.answers.len() + 1 == self.steps.len();
            self.answers.push(answer);
            if is_last {
                return Some(self.assessed());
            }
        }
        None
    }

    /// Takes `count` bytes that were read, in a handshake that only names the client. Gives its end.
    pub fn introduced(&mut self, count: usize) -> Option<Result<(), Failure>> {
        self.buffers.replies.filled(count);
        self.read().map(|assessed| assessed.map(drop))
    }

    /// The failure of a handshake whose socket is closed before the end.
    pub(crate) fn closed(&mut self, why: Option<io::Error>) -> Failure {
        let error: RedisError = why.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()).into();
        // Some proxies hang up on a command that they don't know.
        if matches!(self.steps.get(self.answers.len()), Some(Step::Multi | Step::Exec)) {
            self.settings.has_no_transactions.store(true, Ordering::Relaxed);
        }
        if self.answers.len() < self.steps.len() {
            self.answers.push(Err(error.clone()));
        }
        self.assessed().err().unwrap_or_else(|| hung_up(&error, &self.settings))
    }

    fn assessed(&mut self) -> Result<HandshakeFacts, Failure> {
        // The credentials come first, and the server's answer to them is the reason of all that follows.
        let is_refusal =
            self.steps.first() == Some(&Step::Credentials) && matches!(self.answers.first(), Some(Ok(Value::ServerError(_))));
        let answers = self.steps.iter().copied().zip(std::mem::take(&mut self.answers));
        let facts = assess(answers, &self.settings, &self.login)
            .inspect_err(|failure| self.is_refused = is_refusal && failure.kind == FailureKind::Denied)?;
        if !self.buffers.replies.is_empty() {
            return Err(Failure::not_applied(FailureKind::Protocol, "the server sent more replies than there were requests"));
        }
        Ok(facts)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Credentials,
    Server,
    Replication,
    Database,
    Name,
    Marker,
    Multi,
    Exec,
}

/// The questions of a handshake, as bytes.
pub(crate) fn questions(settings: &Settings, login: &Login) -> Vec<(Step, Vec<u8>)> {
    let mut questions = Vec::with_capacity(8);
    let target = &settings.target;
    questions.extend(login.command().map(|command| (Step::Credentials, command)));
    // A sentinel knows no databases and no scripts, so this comes first. Before version 7 each part is a question of its own.
    questions.push((Step::Server, redis::cmd("INFO").arg("server").get_packed_command()));
    questions.push((Step::Replication, redis::cmd("INFO").arg("replication").get_packed_command()));
    if target.database != 0 {
        questions.push((Step::Database, redis::cmd("SELECT").arg(target.database).get_packed_command()));
    }
    questions.push((Step::Name, redis::cmd("CLIENT").arg("SETNAME").arg(&settings.name).get_packed_command()));
    // In a cluster the marker's key has a slot, and most nodes don't serve that.
    if settings.quorum_config.is_none() && !settings.in_cluster {
        // The script as text: one round trip, whatever the server's script cache holds.
        let mut command = Vec::new();
        words::command(&Op::Greet { quorum_config: None }, &HandshakeFacts::default(), Form::ByText).write(&mut command);
        questions.push((Step::Marker, command));
    }
    if settings.quorum_config.is_none() && !settings.has_no_transactions.load(Ordering::Relaxed) {
        // Where a transaction is refused, its commands would be executed alone.
        questions.push((Step::Multi, redis::cmd("MULTI").get_packed_command()));
        questions.push((Step::Exec, redis::cmd("EXEC").get_packed_command()));
    }
    questions
}

/// The facts about the server, or the reason why there is no connection. A server sends the reason before it hangs up.
pub(crate) fn assess(
    answers: impl Iterator<Item = (Step, RedisResult<Value>)>,
    settings: &Settings,
    login: &Login,
) -> Result<HandshakeFacts, Failure> {
    let (mut reason, mut asked, mut began) = (None, false, false);
    let mut facts = HandshakeFacts { in_cluster: settings.in_cluster, ..HandshakeFacts::default() };
    for (step, answer) in answers {
        asked |= step == Step::Replication;
        let value = match answer.and_then(Value::extract_error) {
            Ok(value) => value,
            Err(error) if is_transport(&error) => return Err(reason.unwrap_or_else(|| hung_up(&error, settings))),
            Err(error) => {
                let failure = refused(step, &error, (settings, login));
                match step {
                    Step::Multi => facts.denies_transactions = error.code() == Some("NOPERM"),
                    Step::Exec if !began => {}
                    Step::Exec => {
                        settings.has_no_transactions.store(true, Ordering::Relaxed);
                        let why = format!("began a transaction and did not end it: {}", failure.message);
                        return Err(Failure::not_applied(FailureKind::Protocol, why));
                    }
                    // The name is optional: nothing depends on it. But if the server hangs up next, this is the reason.
                    Step::Name => reason = reason.or(Some(failure)),
                    Step::Server | Step::Replication | Step::Marker if error.code() == Some("NOPERM") => {}
                    // A server that doesn't know the command shows no facts.
                    Step::Server | Step::Replication if error.code() == Some("ERR") && error.detail() != Some(FULL) => {}
                    _ => return Err(reason.unwrap_or(failure)),
                }
                continue;
            }
        };
        match step {
            Step::Server => facts.server(&value, settings.quorum_config.is_some())?,
            Step::Replication => facts.replication(&value)?,
            Step::Marker => take_marker(value, &mut facts)?,
            Step::Multi => began = value == Value::Okay,
            Step::Exec => facts.has_transactions = began && value == Value::Array(Vec::new()),
            Step::Credentials | Step::Database | Step::Name => {}
        }
    }
    if asked && settings.needs_replid() && facts.replid.is_none() {
        let why = "quarantine after a failover needs to know which node answers, and INFO is not permitted or shows no master_replid \
                   (ACL +info)";
        return Err(Failure::not_applied(FailureKind::Denied, why));
    }
    Ok(facts)
}

fn is_transport(error: &RedisError) -> bool {
    error.is_io_error() || matches!(error.kind(), redis::ErrorKind::Parse | redis::ErrorKind::Client)
}

fn hung_up(error: &RedisError, settings: &Settings) -> Failure {
    let failure = refusal::failure(error, true);
    // A server that expects TLS hangs up on everything else, mostly without a word.
    let endpoint = &settings.target.endpoint;
    let is_plain = match endpoint {
        Endpoint::Tcp { tls, .. } => tls.is_none(),
        Endpoint::Sentinel(service) => service.primary_tls.is_none(),
        Endpoint::Unix { .. } => false,
    };
    let [_, with_tls] = settings.schemes();
    let hint = match failure.kind {
        FailureKind::Disconnected if is_plain => format!("; does that port speak TLS? If so, its URL begins with {with_tls}://"),
        _ => String::new(),
    };
    match refusal::tls_alert(error) {
        Some(alert) => Failure::not_applied(FailureKind::Tls, format!("the server ended TLS: {alert}")),
        None if settings.has_answered() => {
            Failure::not_applied(failure.kind, format!("a new connection broke before the server answered: {}", failure.message))
        }
        None => {
            let reason = failure.message.replace("rediss://", &format!("{with_tls}://"));
            Failure::not_applied(failure.kind, format!("no Redis answered: {reason}{hint}"))
        }
    }
}

/// The text of a refusal for people. A server that doesn't know a command repeats it, with the words behind it. Where those may be
/// the password, only the code is shown.
fn refused(step: Step, error: &RedisError, (settings, login): (&Settings, &Login)) -> Failure {
    let failure = refusal::failure(error, true);
    let text = error.to_string();
    let is_about_credentials = text.contains("AUTH") || text.contains("password");
    let kind = match (step, failure.kind) {
        // "ERR AUTH … called without any password configured" and the like is about credentials; "ERR max number of clients
        // reached" is not.
        (Step::Credentials, FailureKind::Other) if is_about_credentials => FailureKind::Denied,
        (Step::Database, FailureKind::Other) if is_about_the_database(error) => FailureKind::Mismatch,
        (_, kind) => kind,
    };
    let code = code(error, login);
    let database = settings.target.database;
    let [whose, has] = match settings.provided {
        Some(_) => ["the user or the password that `credentials` gave", "`credentials` gave a password"],
        None => ["the URL's user or password", "the URL has a password"],
    };
    let message = match step {
        Step::Credentials if text.contains("without any password") => {
            format!("{has}, but the server asks for none ({code})")
        }
        Step::Credentials if kind == FailureKind::Denied => {
            format!("the server refused {whose} ({code})")
        }
        Step::Credentials if error.detail() == Some(FULL) => format!("{code} {FULL}"),
        Step::Credentials => format!("the server answered the password with an error ({code})"),
        _ if login.is_repeated_in(&text) => format!("the server answered with an error that repeats the password ({code})"),
        Step::Database if kind == FailureKind::Mismatch => format!(
            "database {} can't be used: {}; put the number of another one into the URL (most servers have 0 to 15), or raise \
             `databases` in the server's configuration",
            database, failure.message
        ),
        Step::Database => format!("database {database} can't be used: {}", failure.message),
        _ => failure.message,
    };
    Failure::not_applied(kind, message)
}

/// Whether the server refuses to select a database because it has none of this number, or only one. That lasts.
fn is_about_the_database(error: &RedisError) -> bool {
    let mentions = |words| error.detail().is_some_and(|detail| detail.contains(words));
    error.code() == Some("ERR") && (mentions("DB index") || mentions("out of range") || mentions("SELECT"))
}

/// The text of a full server, which gives it instead of any other answer.
const FULL: &str = "max number of clients reached";

/// The first word of an error, if it is a code of the server and no repeated password.
fn code<'a>(error: &'a RedisError, login: &Login) -> &'a str {
    let is_word = |code: &&str| code.len() <= 20 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    error.code().filter(is_word).filter(|code| !login.is_repeated_in(code)).unwrap_or("ERR")
}

/// Takes the answer to the script, which refuses the server of a quorum. It also shows the server's clock, and its version where
/// `INFO` isn't permitted.
fn take_marker(value: Value, facts: &mut HandshakeFacts) -> Result<(), Failure> {
    let version = if let Value::Array(fields) = &value { fields.get(5) } else { None };
    facts.is_since_7 |= matches!(version, Some(Value::Int(0x0007_0000..)));
    let reply = codec::reply(&Op::Greet { quorum_config: None }, value)
        .map_err(|failure| Failure::not_applied(failure.kind, failure.message))?;
    if let Verdict::Mismatch { quorum } = reply.verdict {
        let theirs = quoted(&quorum);
        let message = if quorum.starts_with("n=1 ") {
            format!("other clients of this server have quarantine for its failovers ({theirs}): all its clients need that option")
        } else {
            format!(
                "this client has one server, but the server belongs to a quorum: {theirs}; name all its servers, or, if that was a mistake, \
                 delete its marker: `locktender quorum remove`, which is DEL '{}'",
                Keys::server_marker()
            )
        };
        return Err(Failure::not_applied(FailureKind::Mismatch, message));
    }
    facts.time_us = Some(reply.time_us);
    Ok(())
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
