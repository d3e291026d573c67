use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::name::{Keys, Kind};
use crate::op::LockOp;
use crate::op::job::{Ending, OpenAttempt};

const TERMS: ReplicaTerms = ReplicaTerms { replicas: 2, timeout: Duration::from_millis(50) };

/// The connection, played by the test: what was sent and has no answer yet, and the answers that came out.
struct Played {
    replicated: Arc<Replicated>,
    sent: UnboundedReceiver<Input>,
    ends: Arc<Mutex<Vec<(u64, Answer)>>>,
}

impl Played {
    fn new() -> Self {
        let (inbox, sent) = unbounded_channel();
        Self { replicated: Replicated::new(inbox, TERMS, Duration::from_secs(1)), sent, ends: Arc::default() }
    }

    fn extend(&self, fence: u64) {
        self.submit(fence, Verb::Extend { ttl_ms: 1_000, fence });
    }

    fn submit(&self, number: u64, verb: Verb) {
        let keys = Arc::new(Keys::new(Kind::Exclusive, "", "k", true).unwrap());
        let op = Op::Lock(LockOp { keys, by: "me".into(), verb });
        let ends = Arc::clone(&self.ends);
        let completion = Completion::new(move |answer| ends.lock().push((number, answer)));
        self.replicated.submit(InFlight::new(Request::new(op, Tick::NEVER), completion));
    }

    /// The operations that were sent since the last look.
    fn sent(&mut self) -> Vec<InFlight> {
        let mut operations = Vec::new();
        while let Ok(Input::Submit(pending)) = self.sent.try_recv() {
            operations.push(pending);
        }
        operations
    }

    fn ends(&self) -> Vec<(u64, Option<FailureKind>)> {
        self.ends.lock().drain(..).map(|(number, answer)| (number, answer.err().map(|failure| failure.kind))).collect()
    }
}

fn on(socket: u8, verdict: Verdict) -> Answer {
    Ok(Reply { socket, ..Reply::new(verdict, 0, 7) })
}

fn replicated(count: u64) -> Answer {
    on(1, Verdict::Replicated { count })
}

fn end(operations: impl IntoIterator<Item = (InFlight, Answer)>) {
    operations.into_iter().for_each(|(pending, answer)| pending.completion.complete(answer));
}

fn names(operations: &[InFlight]) -> Vec<&'static str> {
    operations.iter().map(|pending| pending.request.op.name()).collect()
}

#[test]
fn only_what_writes_a_hold_or_how_an_attempt_ended_waits_for_replicas() {
    let keys = || Arc::new(Keys::new(Kind::Exclusive, "", "k", true).unwrap());
    let release = Verb::Release { leave: None, kept_ms: 0 };
    let end = |ending| Verb::EndAttempt { ending, attempt: OpenAttempt::default(), leave: None };
    for (verb, expected) in [
        (Verb::Confirm { fence: 1 }, true),
        (Verb::Extend { ttl_ms: 1, fence: 1 }, true),
        (Verb::Heal { ttl_ms: 1, fence: 1 }, true),
        (release, false),
        (end(Ending::Done { result: "1".into() }), true),
        (end(Ending::Failed { error: "no".into(), retry_in_ms: None }), true),
        (end(Ending::GivenBack), false),
        (Verb::Inspect, false),
    ] {
        assert_eq!(Replicated::concerns(&Op::on_nobodys_behalf(keys(), verb)), expected);
    }
    assert!(!Replicated::concerns(&Op::Examine));
}

#[test]
fn an_answer_counts_when_enough_replicas_have_confirmed_what_its_socket_wrote() {
    let failed = Failure::not_applied(FailureKind::Denied, "no right to run wait");
    for (waited, expected) in [
        (replicated(2), None),
        (replicated(3), None),
        (replicated(1), Some(FailureKind::NotReplicated)),
        (replicated(0), Some(FailureKind::NotReplicated)),
        (on(2, Verdict::Replicated { count: 2 }), Some(FailureKind::Disconnected)),
        (on(1, Verdict::Ok), Some(FailureKind::Protocol)),
        (Err(failed), Some(FailureKind::Denied)),
    ] {
        let assessed = assess(&waited, 1, TERMS);
        assert_eq!(assessed.as_ref().err().map(|failure| failure.kind), expected, "{waited:?}");
        assert!(assessed.err().is_none_or(|failure| failure.maybe_applied), "the write was done: {waited:?}");
    }
}

#[test]
fn one_wait_is_for_all_that_came_while_the_last_one_had_no_answer() {
    let mut played = Played::new();
    played.extend(1);
    let first = played.sent();
    assert_eq!(names(&first), ["extend", "wait"]);
    played.extend(2);
    played.extend(3);
    assert!(played.sent().is_empty(), "a WAIT blocks its connection");
    end(first.into_iter().zip([on(1, Verdict::Ok), replicated(2)]));
    assert_eq!(played.ends(), [(1, None)]);
    let second = played.sent();
    assert_eq!(names(&second), ["extend", "extend", "wait"]);
    end(second.into_iter().zip([on(1, Verdict::Ok), on(1, Verdict::Ok), replicated(1)]));
    assert_eq!(played.ends(), [(2, Some(FailureKind::NotReplicated)), (3, Some(FailureKind::NotReplicated))]);
    assert!(played.sent().is_empty());
}

#[test]
fn a_refusal_does_not_wait_and_a_failure_does_not_either() {
    let mut played = Played::new();
    played.extend(1);
    let mut sent = played.sent();
    let wait = sent.pop().unwrap();
    let no = Verdict::No { holder: None, remaining: crate::error::Remaining::Gone };
    end([(sent.pop().unwrap(), on(1, no))]);
    assert_eq!(played.ends(), [(1, None)]);
    played.extend(2);
    end([(wait, Err(Failure::unknown(FailureKind::Disconnected, "gone")))]);
    let next = played.sent();
    assert_eq!(names(&next), ["extend", "wait"]);
    let failed = || Err(Failure::unknown(FailureKind::Disconnected, "gone"));
    end(next.into_iter().map(|pending| (pending, failed())));
    assert_eq!(played.ends(), [(2, Some(FailureKind::Disconnected))]);
}

#[test]
fn what_is_answered_behind_its_wait_gets_another_one() {
    let mut played = Played::new();
    played.extend(1);
    let mut sent = played.sent();
    let (wait, extend) = (sent.pop().unwrap(), sent.pop().unwrap());
    end([(wait, replicated(2)), (extend, on(1, Verdict::Ok))]);
    assert!(played.ends().is_empty());
    let again = played.sent();
    assert_eq!(names(&again), ["wait"]);
    end(again.into_iter().zip([replicated(2)]));
    assert_eq!(played.ends(), [(1, None)]);
}

#[test]
fn a_grant_that_nobody_confirms_any_more_is_undone() {
    let mut played = Played::new();
    let acquire =
        Verb::Acquire { ttl_ms: 1_000, proposal: 0, adopt: None, fair: false, place: None, quorum_config: None, job: None };
    played.submit(1, acquire);
    let sent = played.sent();
    end(sent.into_iter().zip([on(1, Verdict::Vote), Err(closed(true))]));
    assert_eq!(played.ends(), [(1, Some(FailureKind::Closed))]);
    assert_eq!(names(&played.sent()), ["release"]);
}
