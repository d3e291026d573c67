//! Tables of the parts of an operation, and of what becomes of their answers. The answers are those of a server in memory.

use super::*;
use crate::machine::{Entry, Env, State, Value, apply};
use crate::name::{Keys, Kind, Label, LockKind};
use crate::op::FailureKind;
use crate::op::holder::named::named;
use crate::op::holder::owner_of;
use crate::op::job::{OpenAttempt, Terms};

const NOW: u64 = 1_800_000_000_000_000;

fn env(now_us: u64) -> Env<'static> {
    Env { now_us, replid: "e", known_as: "e", is_renamed: false }
}

fn keys(kind: Kind) -> Arc<Keys> {
    Arc::new(Keys::new(kind, "", "a", true).unwrap())
}

fn acquire(by: &str, job: bool) -> LockOp {
    let job = job.then(|| Box::new(Terms { max_attempts: 2, retention_ms: 60_000, scheduled_time: None }));
    let kind = if job.is_some() { Kind::Job } else { Kind::Exclusive };
    let verb = Verb::Acquire { ttl_ms: 1_000, proposal: 0, adopt: None, fair: false, place: None, quorum_config: None, job };
    LockOp { keys: keys(kind), by: named(by).into(), verb }
}

fn op(by: &str, kind: Kind, verb: Verb) -> LockOp {
    LockOp { keys: keys(kind), by: named(by).into(), verb }
}

fn end(ending: Ending, fence: u64) -> Verb {
    let attempt = OpenAttempt { fence, retention_ms: 60_000, ..OpenAttempt::default() };
    Verb::EndAttempt { ending, attempt, leave: None }
}

/// Does an operation in parts on a server; gives their names and the answer.
fn played(state: &mut State, whole: &LockOp, now_us: u64) -> (Vec<&'static str>, Reply) {
    let (mut split, mut part) = Split::begin(whole).unwrap();
    let mut names = Vec::new();
    loop {
        names.push(part.name());
        match split.next(Ok(apply(state, &part, &env(now_us)))) {
            Next::Send(next) => part = next,
            Next::Done(answer) => return (names, answer.unwrap()),
        }
    }
}

/// An operation in parts, and at once on a copy of the server: the same verdict, and the same keys.
fn agreed(state: &mut State, whole: &LockOp, now_us: u64, parts: &[&str]) -> Reply {
    let mut copy = state.clone();
    let expected = apply(&mut copy, &Op::Lock(whole.clone()), &env(now_us));
    let (names, reply) = played(state, whole, now_us);
    assert_eq!(names, parts);
    assert_eq!((&reply.verdict, reply.attempt), (&expected.verdict, expected.attempt));
    if matches!(reply.verdict, Verdict::Vote) {
        assert_eq!(reply.fence, expected.fence);
    }
    // A lock that was taken in parts shows its fence from its first renewal on.
    let bare =
        |entry: &Entry| entry.text().map_or(entry.clone(), |text| Entry { value: Value::Text(owner_of(text).into()), ..*entry });
    let all = |state: &State| state.iter(now_us).map(|(key, entry)| (key.to_owned(), bare(entry))).collect::<Vec<_>>();
    assert_eq!(all(state), all(&copy));
    reply
}

#[test]
fn a_lock_is_taken_first_and_the_clock_is_asked_then() {
    let mut state = State::new();
    let fence = agreed(&mut state, &acquire("ann", false), NOW, &["take", "tick"]).fence;
    assert_eq!(fence, NOW);
    agreed(&mut state, &acquire("bob", false), NOW + 1, &["take"]);
    agreed(&mut state, &op("", Kind::Exclusive, Verb::Inspect), NOW + 1, &["look"]);
    let extend = Verb::Extend { ttl_ms: 5_000, fence };
    agreed(&mut state, &op("ann", Kind::Exclusive, extend.clone()), NOW + 1, &["extend"]);
    played(&mut state, &op("bob", Kind::Exclusive, extend), NOW + 1);
    agreed(&mut state, &op("ann", Kind::Exclusive, release(None)), NOW + 2, &["release"]);
    let next = agreed(&mut state, &acquire("bob", false), NOW + 2, &["take", "tick"]).fence;
    assert_eq!(next, fence + 1);
}

/// Observers look for the term behind the owner value, and don't wait for a renewal.
#[test]
fn the_term_of_a_leader_stands_behind_its_owner_value_at_once() {
    let mut state = State::new();
    let campaign = acquire("ann", false);
    let labelled = Keys::clone(&campaign.keys).labelled(Label::new(LockKind::Election, "a"));
    let campaign = LockOp { keys: Arc::new(labelled), ..campaign };
    let term = agreed(&mut state, &campaign, NOW, &["take", "tick", "extend"]).fence;
    assert_eq!(term, NOW);
    let seen = agreed(&mut state, &op("", Kind::Exclusive, Verb::Inspect), NOW + 1, &["look"]);
    assert_eq!(seen.fence, term);
}

#[test]
fn an_attempt_is_counted_behind_the_fence_and_noted_before_the_release() {
    let mut state = State::new();
    let job = |by: &str| acquire(by, true);
    let first = agreed(&mut state, &job("ann"), NOW, &["take", "tick", "count"]);
    agreed(&mut state, &op("", Kind::Job, Verb::JobStatus), NOW, &["status", "look"]);
    agreed(&mut state, &op("", Kind::Job, Verb::Reset), NOW, &["look", "forget"]);
    let failed = Ending::Failed { error: "no".into(), retry_in_ms: Some(50) };
    agreed(&mut state, &op("ann", Kind::Job, end(failed, first.fence)), NOW + 9, &["note", "release"]);
    let (names, reply) = played(&mut state, &job("bob"), NOW + 10);
    assert_eq!(names, ["take", "tick", "count", "release"], "not before its time");
    assert!(matches!(reply.verdict, Verdict::Later { .. }), "{reply:?}");
    let second = agreed(&mut state, &job("bob"), NOW + 60_000, &["take", "tick", "count"]);
    assert_eq!(second.attempt.map(|attempt| attempt.number), Some(2));
    let done = Ending::Done { result: "42".into() };
    agreed(&mut state, &op("bob", Kind::Job, end(done, second.fence)), NOW + 61_000, &["note", "release"]);
    let (names, reply) = played(&mut state, &job("cid"), NOW + 62_000);
    assert_eq!(names, ["take", "tick", "count", "release"]);
    assert!(matches!(reply.verdict, Verdict::Over(_)), "{reply:?}");
    agreed(&mut state, &op("", Kind::Job, Verb::Reset), NOW + 62_000, &["look", "forget"]);
    let third = agreed(&mut state, &job("cid"), NOW + 62_000, &["take", "tick", "count"]);
    let (names, reply) = played(&mut state, &op("cid", Kind::Job, end(Ending::GivenBack, third.fence)), NOW + 63_000);
    assert_eq!((names, reply.verdict), (vec!["note", "release"], Verdict::Ok));
}

#[test]
fn a_key_that_holds_something_else_is_a_conflict_and_what_was_taken_is_given_back() {
    let mut state = State::new();
    let all = keys(Kind::Exclusive);
    state.put(all.clock(), Value::Text("no clock".into()), NOW, None);
    let (names, reply) = played(&mut state, &acquire("ann", false), NOW);
    assert_eq!(names, ["take", "tick", "release"]);
    assert!(matches!(reply.verdict, Verdict::Conflict { .. }));
    assert!(state.get(all.lock(), NOW).is_none());
}

#[test]
fn a_failure_behind_the_first_part_may_have_left_something() {
    let failure = || Failure::not_applied(FailureKind::Refused, "no");
    for (answered, maybe_applied) in [(0, false), (1, true), (2, true)] {
        let mut state = State::new();
        let (mut split, mut part) = Split::begin(&acquire("ann", true)).unwrap();
        for _ in 0..answered {
            let Next::Send(next) = split.next(Ok(apply(&mut state, &part, &env(NOW)))) else { panic!("too early") };
            part = next;
        }
        let Next::Done(answer) = split.next(Err(failure())) else { panic!("not the end") };
        assert_eq!(answer.unwrap_err().maybe_applied, maybe_applied, "{answered}");
    }
}
