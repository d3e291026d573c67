//! Inspection: the state of a lock that a majority of N servers shows.

use std::time::Duration;

use crate::error::{Error, Remaining, ServerFailure};
use crate::op::{Answer, FailureKind, Inside, Queued, Reply, Verdict};
use crate::owner::OwnerFields;
use crate::protocol::{Quorum, failures};

/// The state of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// The lock's name, without the client's prefix.
    pub name: String,
    /// The owner value of the holder, or the value that another library wrote, up to its first 1,024 bytes. If several hold the lock, that of
    /// the holder whose hold ends last.
    pub owner: String,
    /// The value's fields, if a locktender client wrote it.
    pub fields: Option<OwnerFields>,
    /// The time for which the key remains.
    pub remaining: Remaining,
    /// The fence of the hold, if its value shows it: on one server mostly from the first renewal on. On a quorum the last one issued.
    pub fence: Option<u64>,
    /// The number of holders: 1, but for a semaphore and for readers.
    pub holder_count: u64,
    /// The owner values of the holders, the first hundred whose holds end.
    pub holders: Vec<String>,
    /// The permits that nobody has, of a semaphore; `None` for any other lock.
    pub available: Option<u64>,
    /// Whether several may hold the lock, as readers or with permits.
    #[doc(hidden)]
    pub is_shared: bool,
    /// The number of waiters in the queue. The waiters of one process count as one, unless the lock is fair.
    pub waiters: u64,
    /// The first hundred waiters, in the order of the queue, each with the readable fields of its process.
    pub queue: Vec<String>,
}

/// The state of the lock `name` by the answers so far; `None` while a majority could still answer.
pub fn inspect(name: &str, servers: &[String], answers: &[Option<Answer>]) -> Option<Result<Option<LockInfo>, Error>> {
    let quorum = Quorum::of(answers.len());
    let answered = answers.iter().filter_map(|answer| answer.as_ref()?.as_ref().ok());
    let (conflicts, replies): (Vec<&Reply>, Vec<&Reply>) = answered.partition(|reply| found(reply).is_some());
    // A server may lag behind a release or an acquire that a majority has done. So the answer waits while the other servers could
    // show it.
    let pending = answers.iter().filter(|answer| answer.is_none()).count();
    if replies.len() >= quorum.needed() && (pending == 0 || is_clear(&replies, pending, quorum)) {
        return Some(Ok(shown(name, &replies, quorum)));
    }
    let failed: Vec<ServerFailure> = failures(servers, answers);
    if !quorum.blocked_by(conflicts.len() + failed.len()) {
        return None;
    }
    if let Some(other) = failed.iter().find(|error| error.kind == FailureKind::Mismatch) {
        return Some(Err(Error::invalid("servers", servers, other.message.clone())));
    }
    let denied = failed.iter().filter(|error| error.kind == FailureKind::Denied).count();
    Some(Err(match conflicts.first().and_then(|conflict| found(conflict)) {
        _ if !quorum.blocked_by(conflicts.len() + denied) => Error::unavailable(Some(name), answers.len(), failed),
        Some(found) if conflicts.len() > denied => Error::key_conflict(name, found),
        _ => Error::denied(Some(name), failed),
    }))
}

/// The value of the lock's key, and the time for which it remains.
fn holder(reply: &Reply) -> Option<(&str, Remaining)> {
    match &reply.verdict {
        Verdict::Seen { holder, remaining, .. } => Some((holder.as_deref()?, *remaining)),
        _ => None,
    }
}

/// The type and the key of a value that is no lock's.
fn found(reply: &Reply) -> Option<&str> {
    if let Verdict::Conflict { found } = &reply.verdict { Some(found) } else { None }
}

/// Whether a majority shows the same holder, or no majority can do so any more.
fn is_clear(replies: &[&Reply], pending: usize, quorum: Quorum) -> bool {
    let holders = || replies.iter().filter_map(|reply| Some(holder(reply)?.0));
    let most = holders().map(|owner| holders().filter(|other| *other == owner).count()).max().unwrap_or(0);
    most >= quorum.needed() || most + pending < quorum.needed()
}

/// The holder that most servers show, if a majority could.
fn shown(name: &str, replies: &[&Reply], quorum: Quorum) -> Option<LockInfo> {
    let holders = || replies.iter().filter_map(|reply| holder(reply));
    let shown_by = |owner: &str| holders().filter(|(holder, _)| *holder == owner).count();
    let (owner, _) = holders().max_by_key(|(owner, _)| shown_by(owner))?;
    let unasked = quorum.servers() - replies.len();
    if shown_by(owner) + unasked < quorum.needed() {
        return None;
    }
    let remaining = holders().filter(|(holder, _)| *holder == owner).map(|(_, left)| left).max_by_key(rank);
    let queues = replies.iter().filter_map(|reply| match &reply.queued {
        Queued::Waiters { count, first } => Some((*count, first)),
        _ => None,
    });
    let (waiters, queue) =
        queues.max_by_key(|(count, _)| *count).map_or((0, Vec::new()), |(count, first)| (count, first.clone()));
    let inside = replies.iter().find_map(|reply| match &reply.verdict {
        Verdict::Seen { inside, .. } => inside.as_deref().cloned(),
        _ => None,
    });
    let is_shared = inside.is_some();
    let one = || Inside { holders: 1, owners: vec![owner.to_owned()], available: None };
    let Inside { holders: holder_count, owners: holders, available } = inside.unwrap_or_else(one);
    Some(LockInfo {
        name: name.to_owned(),
        owner: owner.to_owned(),
        holder_count,
        holders,
        available,
        is_shared,
        fields: OwnerFields::parse(owner),
        remaining: remaining.unwrap_or_default(),
        fence: replies.iter().map(|reply| reply.fence).max().filter(|fence| *fence > 0),
        waiters,
        queue,
    })
}

fn rank(left: &Remaining) -> (u8, Duration) {
    match left {
        Remaining::Gone => (0, Duration::ZERO),
        Remaining::For(left) => (1, *left),
        Remaining::Forever => (2, Duration::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::op::Failure;

    fn reply(holder: Option<&str>, fence: u64) -> Option<Answer> {
        let remaining = if holder.is_some() { Remaining::For(Duration::from_secs(1)) } else { Remaining::Gone };
        Some(Ok(Reply::new(Verdict::Seen { holder: holder.map(str::to_owned), remaining, inside: None }, 0, fence)))
    }

    fn failed() -> Option<Answer> {
        Some(Err(Failure::unknown(FailureKind::Timeout, "late")))
    }

    fn conflict() -> Option<Answer> {
        Some(Ok(Reply::new(Verdict::Conflict { found: "list".into() }, 0, 0)))
    }

    fn denied() -> Option<Answer> {
        Some(Err(Failure::not_applied(FailureKind::Denied, "no")))
    }

    fn owner(answers: &[Option<Answer>]) -> Option<Result<Option<String>, Error>> {
        let servers = vec![String::new(); answers.len()];
        inspect("a", &servers, answers).map(|result| result.map(|info| info.map(|info| info.owner)))
    }

    #[test]
    fn a_majority_decides_and_fewer_say_nothing() {
        for (answers, expected) in [
            (vec![reply(Some("x"), 1)], Some(Some("x"))),
            (vec![reply(None, 1)], Some(None)),
            (vec![reply(Some("x"), 1), None, None], None),
            (vec![reply(Some("x"), 1), reply(Some("x"), 2), None], Some(Some("x"))),
            (vec![reply(Some("x"), 1), reply(None, 2), None], None),
            (vec![reply(None, 1), reply(None, 2), None], Some(None)),
            (vec![reply(Some("x"), 1), reply(None, 2), reply(None, 2)], Some(None)),
            (vec![reply(Some("x"), 1), reply(Some("x"), 2), failed()], Some(Some("x"))),
        ] {
            let found = owner(&answers).map(|result| result.unwrap());
            assert_eq!(found, expected.map(|owner| owner.map(str::to_owned)), "{answers:?}");
        }
        assert!(owner(&[failed(), reply(None, 0), failed()]).unwrap().is_err());
    }

    #[test]
    fn conflicts_and_denials_count_only_where_they_leave_no_majority() {
        let x = || reply(Some("x"), 1);
        assert!(owner(&[conflict(), None, None]).is_none());
        assert_eq!(owner(&[conflict(), x(), x()]).unwrap().unwrap().as_deref(), Some("x"));
        for (answers, code) in [
            (vec![conflict()], Code::KeyConflict),
            (vec![conflict(), conflict(), x()], Code::KeyConflict),
            (vec![conflict(), denied(), x()], Code::Denied),
            (vec![conflict(), failed(), x()], Code::Unavailable),
            (vec![denied(), denied(), None], Code::Denied),
        ] {
            assert_eq!(owner(&answers).unwrap().unwrap_err().code(), code, "{answers:?}");
        }
    }
}
