//! Codec: operations as commands, and answers as replies. Pure.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::error::Remaining;
use crate::error::quoted::quoted;
use crate::machine::{self, SHOWN_BYTES, UNKNOWN_RUN_ID};
use crate::name::Keys;
use crate::op::{Answer, Failure, FailureKind, LockOp, Op, Queued, QuorumConfig, Reply, Verb, Verdict};
use crate::server::redis::commands::greeting::Greeting;
use crate::server::redis::commands::info;
use crate::server::redis::commands::refusal;
use crate::server::redis::commands::rights;
use crate::server::redis::commands::script::Script;

/// The way in which a command names its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The hash of the script: short, but unknown to a server whose script cache was flushed.
    BySha,
    /// The script in full.
    ByText,
}

/// The most words of any operation but a probe, and the bytes that it takes on a lock with an ordinary name.
const WORDS: usize = 20;
const BYTES: usize = 640;

/// A word of a command.
enum Word<'a> {
    Text(&'a str),
    Hash(Arc<String>),
    Made(String),
    Number(u64),
}

/// A command, to be written directly into the output buffer.
pub(crate) struct Words<'a>(Vec<Word<'a>>);

impl<'a> Words<'a> {
    fn text(&mut self, text: &'a str) -> &mut Self {
        self.0.push(Word::Text(text));
        self
    }

    fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.0.push(Word::Number(number.into()));
        self
    }

    /// A number for which nothing stands in the place of zero.
    fn count(&mut self, count: u64) -> &mut Self {
        if count == 0 { self.text("") } else { self.number(count) }
    }

    /// The end of a release: the waiter that leaves, and whether the server is one of several.
    fn leaving(&mut self, entry: Option<&'a str>, single_server: bool) {
        if !single_server {
            self.text(entry.unwrap_or_default()).number(1_u64);
        } else if let Some(entry) = entry {
            self.text(entry);
        }
    }

    /// Leaves out the empty words at the end, as far as `begin`.
    fn without_empty_end(&mut self, begin: usize) {
        while self.0.len() > begin && matches!(self.0.last(), Some(Word::Text(""))) {
            self.0.pop();
        }
    }

    fn keys(&mut self, keys: &'a Keys) -> &mut Self {
        self.number(4_u64);
        self.0.extend(keys.in_order().map(Word::Text));
        self
    }

    fn member(&mut self, quorum_config: Option<&QuorumConfig>, era: &'a str) {
        if let Some(quorum_config) = quorum_config {
            self.number(quorum_config.servers).number(quorum_config.max_ttl_ms).text(era);
        }
    }

    /// Writes the command in the protocol's form: the number of words, and each word after its length.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.reserve(BYTES);
        head(b'*', self.0.len(), out);
        let mut digits = itoa::Buffer::new();
        for word in &self.0 {
            let text = match word {
                Word::Text(text) => text,
                Word::Hash(hash) => hash.as_str(),
                Word::Made(text) => text.as_str(),
                Word::Number(number) => digits.format(*number),
            };
            head(b'$', text.len(), out);
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn head(kind: u8, count: usize, out: &mut Vec<u8>) {
    match u8::try_from(count) {
        Ok(count @ ..10) => out.extend_from_slice(&[kind, b'0' + count, b'\r', b'\n']),
        Ok(count @ ..100) => out.extend_from_slice(&[kind, b'0' + count / 10, b'0' + count % 10, b'\r', b'\n']),
        _ => {
            out.push(kind);
            out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The command for an operation, on a server that gave this greeting.
pub(crate) fn command<'a>(op: &'a Op, greeting: &'a Greeting, form: Form) -> Words<'a> {
    let (era, has_header) = (greeting.era_id().unwrap_or(UNKNOWN_RUN_ID), greeting.is_since_7);
    let mut command = Words(Vec::with_capacity(WORDS));
    let Some(script) = Script::of(op) else {
        command.text("INFO");
        return command;
    };
    match form {
        Form::BySha => command.text("EVALSHA").0.push(Word::Hash(script.sha(has_header))),
        Form::ByText => command.text("EVAL").0.push(Word::Text(script.text(has_header))),
    }
    match op {
        Op::Lock(op) => command.lock_op(op, era),
        Op::Examine => {}
        Op::Probe { keys } => {
            command.keys(keys);
            for name in rights::commands() {
                command.text(name);
            }
        }
        Op::Greet { quorum_config } => command.number(1_u64).text(Keys::server_marker()).member(quorum_config.as_ref(), era),
        Op::Trust { quorum_config } => command.number(1_u64).text(Keys::server_marker()).member(Some(quorum_config), era),
    }
    command
}

/// The words of an operation on a lock, behind those of its script.
impl<'a> Words<'a> {
    fn lock_op(&mut self, LockOp { keys, by, verb }: &'a LockOp, era: &str) {
        let command = self;
        match verb {
            Verb::Acquire { ttl_ms, proposal, adopt, fair, place, quorum_config } => {
                // Any other proposal wouldn't be taken.
                let proposal = if machine::is_time(*proposal) { *proposal } else { 0 };
                command
                    .keys(keys)
                    .text(by)
                    .number(*ttl_ms)
                    .number(proposal)
                    .number(ttl_ms.saturating_add(machine::FENCE_KEPT_MS));
                let only_adopts = adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
                let begin = command.0.len();
                match place {
                    // An acquire that only adopts doesn't wait.
                    _ if only_adopts => command.text("o").text("").text(""),
                    Some(place) => command.text(&place.entry).count(place.arrival).count(u64::from(place.stays)),
                    // The mode alone: one attempt joins no queue.
                    None => command.text(if *fair { "f" } else { "" }).text("").text(""),
                };
                command.text(adopt.as_ref().map(|adopt| &*adopt.owner).unwrap_or_default());
                match quorum_config {
                    Some(QuorumConfig { servers, max_ttl_ms }) => {
                        command.0.push(Word::Made(format!("n={servers} max_ttl={max_ttl_ms} run={era} since=0")));
                    }
                    // Most acquires need few of these words, and empty ones at the end are left out.
                    None => command.without_empty_end(begin),
                }
            }
            Verb::Confirm { fence } => {
                command.keys(keys).text(by).number(*fence);
            }
            Verb::Extend { ttl_ms, lock_only: true, timed, .. } => {
                command.number(1_u64).text(keys.lock()).text(by).number(*ttl_ms);
                if *timed {
                    command.number(1_u64);
                }
            }
            Verb::Extend { ttl_ms, fence, .. } | Verb::Heal { ttl_ms, fence } => {
                command.keys(keys).text(by).number(*ttl_ms).number(*fence);
            }
            Verb::Release { leave, single_server } => {
                command.keys(keys).text(by);
                command.leaving(leave.as_deref(), *single_server);
            }
            // A waiter that leaves has no hold: its own name is no owner.
            Verb::Leave { single_server } => {
                command.keys(keys).text(by);
                command.leaving(Some(by), *single_server);
            }
            Verb::Inspect => {
                command.keys(keys);
            }
        }
    }
}

/// The meaning of the server's answer to `op`.
pub(crate) fn reply(op: &Op, value: Value) -> Answer {
    let fields = match value {
        Value::Array(fields) => fields,
        Value::ServerError(error) => return Err(refusal::of(op, &error.into())),
        Value::Int(number) => return done(op, number),
        value if matches!(op, Op::Examine) => return info::examined(value),
        other => return Err(unreadable(op, &other)),
    };
    let mut fields = fields.into_iter();
    // Fields after the seventh belong to later versions.
    let mut next = || fields.next().unwrap_or(Value::Nil);
    let (tag, time, fence, fourth, remaining) = (next(), next(), next(), next(), next());
    let queued = queued(op, next(), next());
    let (Some(time_us), Some(fence), Some(remaining)) = (count(&time), count(&fence), number(&remaining)) else {
        return Err(unreadable(op, &Value::Array(vec![tag, time, fence, fourth, remaining])));
    };
    let fourth = match fourth {
        Value::Nil => None,
        Value::BulkString(bytes) => Some(shown(bytes)),
        Value::SimpleString(text) => Some(text),
        other => return Err(unreadable(op, &other)),
    };
    let verdict = text(&tag).and_then(|word| verdict(op, word, fourth, remaining));
    let Some(verdict) = verdict else { return Err(unreadable(op, &tag)) };
    Ok(Reply { queued, ..Reply::new(verdict, time_us, fence) })
}

/// The answer of an operation that was done as asked: the server's time, or only that it was done. An extension has negative
/// numbers, so that no other operation takes its answer for its own.
fn done(op: &Op, number: i64) -> Answer {
    let size = number.unsigned_abs();
    Ok(match (op.verb(), number) {
        (Some(Verb::Acquire { proposal, .. }), 0 | 2..) => Reply::new(Verdict::Vote, size, *proposal),
        (Some(Verb::Extend { fence, .. }), ..-1) => Reply::new(Verdict::Ok, size, *fence),
        (Some(Verb::Extend { fence, lock_only: true, .. }), -1) => Reply::new(Verdict::Ok, 0, *fence),
        (Some(Verb::Release { .. }), 1) => Reply::new(Verdict::Ok, 0, 0),
        _ => return Err(unreadable(op, &Value::Int(number))),
    })
}

/// Whether the server asks for the other half of an extension that touches the lock alone.
pub(crate) fn asks_for_more(op: &Op, value: &Value) -> bool {
    matches!((op.verb(), value), (Some(Verb::Extend { lock_only: true, .. }), Value::Int(0)))
}

/// The report on the queue in the sixth and the seventh field.
fn queued(op: &Op, sixth: Value, seventh: Value) -> Queued {
    match (op.verb(), seventh) {
        (Some(Verb::Release { .. } | Verb::Leave { .. }), _) => {
            text(&sixth).map_or(Queued::Nothing, |error| Queued::NotNotified(error.to_owned()))
        }
        (Some(Verb::Inspect), Value::Array(entries)) => {
            Queued::Waiters { count: count(&sixth).unwrap_or_default(), first: entries.into_iter().filter_map(entry).collect() }
        }
        (Some(Verb::Acquire { .. }), seventh) => match (count(&sixth), count(&seventh)) {
            (Some(rank), Some(arrival)) => Queued::At { rank, arrival },
            _ => Queued::Nothing,
        },
        _ => Queued::Nothing,
    }
}

/// A value as the scripts show it: they cut a long value at a fixed number of bytes.
fn shown(mut bytes: Vec<u8>) -> String {
    if bytes.len() >= SHOWN_BYTES
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).unwrap_or_else(|foreign| String::from_utf8_lossy(foreign.as_bytes()).into_owned())
}

/// A waiter of a queue. A client writes text, so bytes that are not text are shown with replacement characters.
fn entry(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(shown(bytes)),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// Whether an answer belongs to another operation: it names another owner where it must name ours, or ours where it must not.
pub(crate) fn is_about_another(op: &Op, value: &Value) -> bool {
    if let Value::Int(number) = value {
        // A number names no owner, but each operation has numbers of its own.
        return !asks_for_more(op, value) && done(op, *number).is_err();
    }
    let (Some(owner), Value::Array(fields)) = (op.owner(), value) else { return false };
    let (Some(tag), Some(holder)) = (fields.first().and_then(text), fields.get(3)) else { return false };
    let is_ours = text(holder) == Some(&**owner);
    match (op.verb(), tag) {
        (Some(Verb::Release { .. } | Verb::Leave { .. }), "ok") => *holder != Value::Nil,
        (_, "vote" | "ok") => !is_ours,
        // An acquire that finds its own value votes; a release deletes it.
        (Some(Verb::Acquire { .. }), "held" | "no") | (Some(Verb::Release { .. } | Verb::Leave { .. }), "no") => is_ours,
        _ => false,
    }
}

/// The verdict of a tag with the fourth and the fifth field, if this operation can have such a verdict.
fn verdict(op: &Op, tag: &str, fourth: Option<String>, fifth: i64) -> Option<Verdict> {
    let left = || u64::try_from(fifth).map(Duration::from_millis);
    let remaining = || match left() {
        Ok(left) => Remaining::For(left),
        Err(_) if fifth == -1 => Remaining::Forever,
        Err(_) => Remaining::Gone,
    };
    Some(match (tag, op) {
        ("vote", Op::Lock(LockOp { verb: Verb::Acquire { .. }, .. })) => Verdict::Vote,
        ("held", Op::Lock(LockOp { verb: Verb::Acquire { .. }, .. })) => {
            Verdict::Held { holder: fourth.unwrap_or_default(), remaining: remaining() }
        }
        ("quarantine", Op::Lock(LockOp { verb: Verb::Acquire { .. }, .. }) | Op::Greet { .. }) => {
            Verdict::Quarantine { left: left().unwrap_or_default() }
        }
        ("mismatch", Op::Lock(LockOp { verb: Verb::Acquire { .. }, .. }) | Op::Greet { .. } | Op::Trust { .. }) => {
            Verdict::Mismatch { quorum: fourth.unwrap_or_default() }
        }
        ("info", Op::Lock(LockOp { verb: Verb::Inspect, .. })) => Verdict::Seen { holder: fourth, remaining: remaining() },
        ("info", Op::Probe { keys }) => {
            Verdict::Probed { missing: rights::missing(&fourth.unwrap_or_default(), keys, refusal::is_denial) }
        }
        ("ok", Op::Lock(LockOp { verb: Verb::Acquire { .. } | Verb::Inspect, .. }) | Op::Probe { .. }) => return None,
        ("ok", _) => Verdict::Ok,
        ("no", op) if op.owner().is_some() => Verdict::No { holder: fourth, remaining: remaining() },
        ("conflict", _) => Verdict::Conflict { found: fourth.unwrap_or_default() },
        _ => return None,
    })
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => text(other)?.parse().ok(),
    }
}

fn count(value: &Value) -> Option<u64> {
    number(value).and_then(|number| u64::try_from(number).ok())
}

/// The failure for an answer that is not from our script: the operation may have been done.
fn unreadable(op: &Op, value: &Value) -> Failure {
    let shown = quoted(&format!("{value:?}"));
    Failure::unknown(
        FailureKind::Protocol,
        format!("{} was answered with {shown}, which is no reply of a lock's script", op.name()),
    )
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
