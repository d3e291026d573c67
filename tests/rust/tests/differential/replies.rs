//! Replies: what a server and the machine answer, compared.

use std::mem::take;
use std::time::Duration;

use locktender::Remaining;
use locktender::op::{LockOp, Op, Queued, Reply, Verb, Verdict};
use locktender_tests::Reply as Raw;

/// A server may take its time between reading the clock for a key's expiry and the script's asking for TIME.
pub(crate) const TOLERANCE_MS: u64 = 500;

pub(crate) fn key(entry: Raw) -> (String, (String, String, i64)) {
    let Raw::Array(fields) = entry else { panic!("{entry:?}") };
    let [key, kind, text, left] = fields.try_into().unwrap();
    (key.text().unwrap(), (kind.text().unwrap(), text.text().unwrap(), left.int()))
}

/// The reply of TIME.
pub(crate) fn micros(time: &[Raw]) -> u64 {
    let part = |at: usize| time[at].clone().text().unwrap().parse::<u64>().unwrap();
    part(0) * 1_000_000 + part(1)
}

/// No reply shows more of what another client has written.
pub(crate) const LONGEST_VALUE: usize = 1_024;

/// How many bytes an answer may take, whatever the keys hold.
pub(crate) fn budget(op: &Op) -> usize {
    match op {
        Op::Lock(LockOp { verb: Verb::Inspect, .. }) => 101 * LONGEST_VALUE,
        _ => LONGEST_VALUE,
    }
}

/// How many bytes an answer takes but for its numbers.
pub(crate) fn size(reply: &Reply) -> usize {
    let queued = match &reply.queued {
        Queued::Waiters { first, .. } => first.iter().map(String::len).sum(),
        Queued::NotNotified(error) => error.len(),
        _ => 0,
    };
    queued
        + match &reply.verdict {
            Verdict::Conflict { found: text } | Verdict::Mismatch { quorum: text } => text.len(),
            Verdict::Seen { holder, inside, .. } => {
                let owners = inside.iter().flat_map(|inside| &inside.owners);
                holder.iter().chain(owners).map(String::len).sum()
            }
            _ => reply.holder().map_or(0, str::len),
        }
}

/// Everything but the expiry's milliseconds is the same.
pub(crate) fn agree(one: &Reply, other: &Reply) -> bool {
    let ((one, left), (other, other_left)) = (timeless(one), timeless(other));
    one == other && close(left, other_left)
}

/// A reply without its time, and that.
fn timeless(reply: &Reply) -> (Reply, Remaining) {
    let mut reply = reply.clone();
    let left = match &mut reply.verdict {
        Verdict::Held { remaining, .. } | Verdict::No { remaining, .. } | Verdict::Seen { remaining, .. } => take(remaining),
        Verdict::Recorded(record) => take(&mut record.remaining),
        Verdict::Quarantine { left } => Remaining::For(take(left)),
        _ => Remaining::Gone,
    };
    (reply, left)
}

/// A verdict without its data.
pub(crate) fn name(verdict: &Verdict) -> String {
    if let Verdict::Over(end) = verdict {
        return end.why.as_str().to_owned();
    }
    format!("{verdict:?}").split(' ').next().unwrap_or_default().to_owned()
}

fn close(one: Remaining, other: Remaining) -> bool {
    match (one, other) {
        (Remaining::For(one), Remaining::For(other)) => one.abs_diff(other) <= Duration::from_millis(TOLERANCE_MS),
        (one, other) => one == other,
    }
}
