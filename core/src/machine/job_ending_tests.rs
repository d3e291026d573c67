//! Ends of attempts that are not the usual ones.

use super::*;

#[test]
fn a_record_that_was_evicted_while_its_attempt_ran_is_written_again() {
    let mut bench = Bench::new(1);
    let fence = bench.begins("a", 1);
    bench.state.remove("{mail}:~lt:job");
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    assert!(matches!(bench.begin("b").verdict, Verdict::Over(_)));
    for (max_attempts, state) in [(1, "dead"), (2, "retrying")] {
        let mut bench = Bench::new(max_attempts);
        let fence = bench.begins("a", 1);
        bench.state.remove("{mail}:~lt:job");
        assert_eq!(bench.fail("a", fence, 0), Verdict::Ok);
        let record = bench.record();
        assert_eq!((&*record.state, record.attempts, record.max_attempts), (state, 1, max_attempts));
    }
    let mut bench = Bench::new(1);
    let fence = bench.begins("a", 1);
    bench.pass(TTL + 1);
    bench.state.remove("{mail}:~lt:job");
    assert_eq!(bench.done("a", fence), no(), "without the lock nobody knows whether another attempt has run since");
}

#[test]
fn a_last_attempt_that_seemed_dead_may_still_say_how_it_ended() {
    let dead = |bench: &mut Bench| {
        let fence = bench.begins("a", 1);
        bench.pass(TTL + 1);
        assert!(matches!(bench.begin("b").verdict, Verdict::Over(_)));
        assert_eq!(bench.record().state, "dead");
        fence
    };
    let mut bench = Bench::new(1);
    let fence = dead(&mut bench);
    assert_eq!(bench.done("b", fence), held_by("a"), "it is not b's");
    assert_eq!(bench.done("a", fence - 1), no(), "it is an earlier one");
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    assert_eq!((&*bench.record().state, &*bench.record().result, &*bench.record().error), ("done", "42", ""));
    assert_eq!(bench.done("a", fence), Verdict::Ok, "it is asked again");
    let mut bench = Bench::new(1);
    let fence = dead(&mut bench);
    assert_eq!(bench.fail("a", fence, 0), Verdict::Ok);
    assert_eq!((&*bench.record().state, &*bench.record().error), ("dead", "no"));
    assert_eq!(bench.done("a", fence), no(), "it has failed");
}

#[test]
fn only_failures_are_counted_for_the_delay() {
    let mut bench = Bench::new(9);
    let failures = |reply: Reply| reply.attempt.unwrap().failures;
    assert_eq!(failures(bench.begin("a")), 0);
    bench.pass(TTL + 1);
    let second = bench.begin("b");
    let fence = second.fence;
    assert_eq!(failures(second), 0, "the first one died");
    assert_eq!(bench.fail("b", fence, 0), Verdict::Ok);
    let third = bench.begin("c");
    let fence = third.fence;
    assert_eq!(failures(third), 1);
    assert_eq!(bench.fail("c", fence, 0), Verdict::Ok);
    assert_eq!(failures(bench.begin("d")), 2);
}

#[test]
fn a_failure_that_no_attempt_can_help_ends_the_job() {
    let mut bench = Bench::new(3);
    let fence = bench.begins("a", 1);
    let never = Ending::Failed { error: "no such address".into(), retry_in_ms: None };
    assert_eq!(bench.end("a", fence, never.clone()), Verdict::Ok);
    assert_eq!(bench.end("a", fence, never), Verdict::Ok, "it is asked again");
    let Verdict::Over(end) = bench.begin("b").verdict else { panic!("it began again") };
    assert_eq!((end.why, &*end.text, end.attempts), (NotBegun::Dead, "no such address", 1));
}
