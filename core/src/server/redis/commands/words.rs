//! Words: operations as commands. Pure.

use std::sync::Arc;

use crate::machine::{self, UNKNOWN_REPLID};
use crate::name::{HISTORY, Keys, Kind, Listed};

use crate::op::history::HISTORY_LENGTH;
use crate::op::job::{AttemptNumber, Ending, OpenAttempt, ScheduledTime, Terms};
use crate::op::{Adoption, Beside, HistoryNote, LockOp, Op, Part, PartOp, QuorumConfig, Verb};
use crate::server::redis::commands::comparison::Comparison;
use crate::server::redis::commands::handshake_facts::HandshakeFacts;
use crate::server::redis::commands::rights;
use crate::server::redis::commands::script::Script;

/// The way in which a command names its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The hash of the script: short, but unknown to a server whose script cache was flushed.
    BySha,
    /// The script in full.
    ByText,
    /// No script: a transaction.
    Native,
    /// No script: one command that compares and deletes.
    Compare,
}

/// The most words of any operation but a probe, and the bytes that it takes on a lock with an ordinary name.
const WORDS: usize = 20;
const BYTES: usize = 640;

/// How many keys a server looks at in one part of a scan. It takes some hundred microseconds, in which it does nothing else.
const SCANNED: u64 = 1_000;

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

    /// Leaves out the empty words at the end, as far as `begin`.
    fn without_empty_end(&mut self, begin: usize) {
        while self.0.len() > begin && matches!(self.0.last(), Some(Word::Text(""))) {
            self.0.pop();
        }
    }

    /// The command of an operation without a script.
    fn plain(&mut self, op: &'a Op) {
        match op {
            Op::Scan { cursor, part, listed } => {
                self.text("SCAN").0.extend([
                    Word::Made(cursor.own.to_string()),
                    Word::Text("MATCH"),
                    Word::Made(listed.pattern(part)),
                ]);
                self.text("COUNT").number(SCANNED);
                if *listed == Listed::Locks {
                    self.text("TYPE").text("string");
                }
            }
            Op::Peek { key } => _ = self.text("GETRANGE").text(key).text("0").text("5"),
            Op::Log(note) => {
                let HistoryNote { lock, owner, fence, state, beside } = &**note;
                self.text("XADD").text(HISTORY).text("MAXLEN").number(HISTORY_LENGTH as u64).text("*");
                self.text("l").text(lock).text("o").text(owner).text("f").number(*fence).text("s").text(state.as_str());
                if *beside != Beside::Nobody {
                    self.text("k").text(beside.as_str());
                }
            }
            Op::History { before, since_ms, count } => {
                self.text("XREVRANGE").text(HISTORY).0.push(match before {
                    Some((ms, number)) => Word::Made(format!("({ms}-{number}")),
                    None => Word::Text("+"),
                });
                self.number(*since_ms).text("COUNT").number(*count);
            }
            Op::Publish { channel, message } => {
                self.text("PUBLISH").text(channel).text(message);
            }
            Op::Marker { remove } => {
                self.text(if *remove { "DEL" } else { "GET" }).text(Keys::server_marker());
            }
            Op::AwaitReplicas { replicas, timeout_ms } => {
                self.text("WAIT").number(*replicas).number(*timeout_ms);
            }
            _ => {
                self.text("INFO");
            }
        }
    }

    fn keys(&mut self, keys: &'a Keys) -> &mut Self {
        self.number(keys.in_order().count() as u64);
        self.0.extend(keys.in_order().map(Word::Text));
        self
    }

    fn member(&mut self, quorum_config: Option<&QuorumConfig>, replid: &'a str) {
        if let Some(quorum_config) = quorum_config {
            self.number(quorum_config.servers).number(quorum_config.max_ttl_ms).text(replid);
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
            self::word(text, out);
        }
    }
}

/// Writes a word after its length.
fn word(text: &str, out: &mut Vec<u8>) {
    head(b'$', text.len(), out);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
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

/// The command for an operation, on a server with these facts.
pub(crate) fn command<'a>(op: &'a Op, facts: &'a HandshakeFacts, form: Form) -> Words<'a> {
    let (replid, has_header) = (facts.replid_text().unwrap_or(UNKNOWN_REPLID), facts.is_since_7);
    let mut command = Words(Vec::with_capacity(WORDS));
    let Some(script) = Script::of(op) else {
        command.plain(op);
        return command;
    };
    match form {
        Form::BySha => command.text("EVALSHA").0.push(Word::Hash(script.sha(has_header))),
        Form::ByText | Form::Native | Form::Compare => command.text("EVAL").0.push(Word::Text(script.text(has_header))),
    }
    match op {
        Op::Lock(op) => command.lock_op(op, replid),
        Op::Part(op) => command.part_op(op),
        Op::Examine | Op::Scan { .. } | Op::Peek { .. } | Op::Log(_) | Op::History { .. } => {}
        Op::Publish { .. } | Op::AwaitReplicas { .. } | Op::Marker { .. } => {}
        Op::Probe { keys } => {
            command.keys(keys);
            for name in rights::commands(keys, facts.in_cluster) {
                command.text(name);
            }
        }
        Op::Greet { quorum_config } => command.number(1_u64).text(Keys::server_marker()).member(quorum_config.as_ref(), replid),
        Op::Trust { quorum_config } => command.number(1_u64).text(Keys::server_marker()).member(Some(quorum_config), replid),
    }
    command
}

/// Writes the transaction that takes a free lock; nothing for another operation.
pub(crate) fn transaction(op: &Op, out: &mut Vec<u8>) {
    let Op::Lock(LockOp { keys, by, verb: Verb::Acquire { ttl_ms, .. } }) = op else { return };
    out.reserve(BYTES);
    write(["MULTI"], out);
    write(["SET", keys.lock(), by, "NX", "PX", itoa::Buffer::new().format(*ttl_ms)], out);
    write(["XADD", keys.clock(), "MAXLEN", "0", "*", "", ""], out);
    write(["EXEC"], out);
}

/// Writes the command that deletes the lock's key if it has this value; with the script in full where the server may not know it.
pub(crate) fn compare(comparison: Comparison, lock: &str, value: &str, by_text: bool, out: &mut Vec<u8>) {
    out.reserve(BYTES);
    let script = Script::compare();
    match comparison {
        Comparison::Script if by_text => write(["EVAL", script.text(false), "1", lock, value], out),
        Comparison::Script => write(["EVALSHA", &script.sha(false), "1", lock, value], out),
        Comparison::DelIfEq => write(["DELIFEQ", lock, value], out),
        Comparison::DelEx => write(["DELEX", lock, "IFEQ", value], out),
    }
}

/// Writes a command that consists of these words.
fn write<const COUNT: usize>(words: [&str; COUNT], out: &mut Vec<u8>) {
    head(b'*', COUNT, out);
    words.into_iter().for_each(|text| word(text, out));
}

/// The word with which the gate of a lock begins that several hold at once.
const fn gate(kind: Kind) -> &'static str {
    if matches!(kind, Kind::Read) { "read" } else { "permits" }
}

/// A proposal that may be taken: any other one is 0.
fn believable(proposal: u64) -> u64 {
    if machine::is_time(proposal) { proposal } else { 0 }
}

/// The words of an operation on a lock, behind those of its script.
impl<'a> Words<'a> {
    /// The terms of a job.
    fn terms(&mut self, terms: &Terms) {
        self.number(terms.max_attempts).number(terms.retention_ms);
        match terms.scheduled_time {
            Some(ScheduledTime { at_ms, max_lateness_ms, waits }) => {
                let mode = if waits { 'w' } else { 's' };
                self.0.push(Word::Made(format!("{at_ms} {max_lateness_ms} {mode}")));
            }
            None => _ = self.text(""),
        }
    }

    /// How this attempt ends.
    fn ending(&mut self, ending: &'a Ending, attempt: &OpenAttempt) {
        let OpenAttempt { fence, number: AttemptNumber { number, max, failures }, retention_ms, scheduled_time_ms } = *attempt;
        let known = Word::Made(format!("{number} {max} {failures} {scheduled_time_ms}"));
        match ending {
            Ending::GivenBack => {
                self.text("back").number(fence).text("").text("").text("").text("");
                return;
            }
            Ending::Done { result } => self.text("done").number(fence).number(retention_ms).text(result).text(""),
            Ending::Failed { error, retry_in_ms } => {
                self.text("failed").number(fence).number(retention_ms).text(error);
                match retry_in_ms {
                    Some(retry_in_ms) => self.number(*retry_in_ms),
                    None => self.text("-1"),
                }
            }
        };
        self.0.push(known);
    }

    /// The words of a part of an operation on a lock.
    fn part_op(&mut self, op: &'a PartOp) {
        let PartOp { whole: LockOp { keys, by, verb }, part } = op;
        if keys.kind().is_shared() {
            let leave = match verb {
                Verb::Release { leave, .. } => leave.as_deref(),
                // A waiter that leaves has no hold: its own name is no owner.
                _ => Some(&**by),
            };
            self.number(2_u64).text(keys.lock()).text(keys.marks());
            self.text(by).text(leave.unwrap_or_default()).text(gate(keys.kind()));
            return;
        }
        self.number(1_u64).text(op.key());
        match (part, verb) {
            (Part::Take, Verb::Acquire { ttl_ms, adopt, place, .. }) => {
                let only_adopts = adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
                let entry = place.as_ref().map_or("", |place| &place.entry);
                self.text(by).number(*ttl_ms).text(if only_adopts { "o" } else { entry });
                self.text(adopt.as_ref().map_or("", |adopt| &adopt.owner));
            }
            (Part::Tick, Verb::Acquire { ttl_ms, proposal, .. }) => _ = self.text(by).number(*ttl_ms).count(*proposal),
            (Part::CountAttempt { fence }, Verb::Acquire { ttl_ms, job: Some(terms), .. }) => {
                self.text(by).number(*ttl_ms).number(*fence).terms(terms);
            }
            (Part::Extend, Verb::Extend { ttl_ms, fence, .. }) => _ = self.text(by).number(*ttl_ms).number(*fence),
            (Part::Release, Verb::Release { leave, kept_ms, .. }) => {
                self.text(by).text(leave.as_deref().unwrap_or_default()).count(*kept_ms);
            }
            // A waiter that leaves has no hold: its own name is no owner.
            (Part::Release, Verb::Leave) => _ = self.text(by).text(by).text(""),
            (Part::EndAttempt, Verb::EndAttempt { ending, attempt, .. }) => {
                self.text(by).ending(ending, attempt);
            }
            (Part::Reset { holder }, _) => _ = self.text(holder.as_deref().unwrap_or_default()),
            _ => {}
        }
    }

    fn lock_op(&mut self, LockOp { keys, by, verb }: &'a LockOp, replid: &str) {
        let command = self;
        match verb {
            Verb::Acquire { ttl_ms, proposal, adopt, fair, place, quorum_config, job } => {
                command.keys(keys).text(by).number(*ttl_ms);
                let begin = command.0.len();
                match keys.kind() {
                    Kind::Quorum => {
                        command.number(believable(*proposal)).number(ttl_ms.saturating_add(machine::FENCE_KEPT_MS));
                    }
                    Kind::Read => _ = command.text("").count(*proposal),
                    Kind::Semaphore(limit) => _ = command.number(limit).count(*proposal),
                    Kind::Exclusive | Kind::Job | Kind::Several => _ = command.count(*proposal),
                }
                let only_adopts = adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
                match place {
                    // An acquire that only adopts doesn't wait.
                    _ if only_adopts => command.text("o").text("").text(""),
                    Some(place) => command.text(&place.entry).count(place.arrival).count(u64::from(place.stays)),
                    // The mode alone: one attempt joins no queue.
                    None if *fair => command.text(machine::mode_of(keys.kind(), true)).text("").text(""),
                    None => command.text("").text("").text(""),
                };
                match adopt {
                    Some(Adoption { owner, beside: true, .. }) => command.0.push(Word::Made(format!("+{owner}"))),
                    Some(Adoption { owner, .. }) => _ = command.text(owner),
                    None => _ = command.text(""),
                }
                match quorum_config {
                    Some(QuorumConfig { servers, max_ttl_ms }) => {
                        command.0.push(Word::Made(format!("n={servers} max_ttl={max_ttl_ms} run={replid} since=0")));
                    }
                    // Most acquires need few of these words, and empty ones at the end are left out.
                    None => command.without_empty_end(begin),
                }
                if let Some(terms) = job {
                    command.terms(terms);
                }
            }
            // While a slot of a cluster moves, no script names the queue.
            Verb::Confirm { fence } if keys.kind().is_shared() => {
                command.number(3_u64).text(keys.lock()).text(keys.clock()).text(keys.marks());
                command.text(by).number(*fence).text(gate(keys.kind()));
            }
            Verb::Extend { ttl_ms, fence } | Verb::Heal { ttl_ms, fence } if keys.kind().is_shared() => {
                command.number(2_u64).text(keys.lock()).text(keys.marks());
                command.text(by).number(*ttl_ms).number(*fence).text(gate(keys.kind()));
            }
            Verb::Release { leave, .. } if keys.kind().is_shared() => {
                command.keys(keys).text(by).text(leave.as_deref().unwrap_or_default()).text(gate(keys.kind()));
            }
            Verb::Leave if keys.kind().is_shared() => _ = command.keys(keys).text(by).text(by).text(gate(keys.kind())),
            Verb::Confirm { fence } => {
                command.keys(keys).text(by).number(*fence);
            }
            // On one server nobody gets the lock while it is ours: its key is enough.
            Verb::Extend { ttl_ms, fence } if keys.kind() == Kind::Exclusive => {
                command.number(1_u64).text(keys.lock()).text(by).number(*ttl_ms).number(*fence);
            }
            Verb::Extend { ttl_ms, fence } | Verb::Heal { ttl_ms, fence } => {
                command.keys(keys).text(by).number(*ttl_ms).number(*fence);
            }
            Verb::Release { leave, kept_ms } => {
                command.keys(keys).text(by);
                let begin = command.0.len();
                command.text(leave.as_deref().unwrap_or_default()).count(*kept_ms).without_empty_end(begin);
            }
            // A waiter that leaves has no hold: its own name is no owner.
            Verb::Leave => _ = command.keys(keys).text(by).text(by),
            Verb::EndAttempt { ending, attempt, leave } => {
                command.keys(keys).text(by);
                let begin = command.0.len() + 2;
                command.ending(ending, attempt);
                command.text(leave.as_deref().unwrap_or_default()).without_empty_end(begin);
            }
            Verb::Inspect | Verb::Reset | Verb::JobStatus => {
                command.keys(keys);
            }
        }
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
