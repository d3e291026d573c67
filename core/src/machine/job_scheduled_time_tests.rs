//! Jobs that run once per scheduled time.

use super::*;

pub(super) fn a_scheduled_time_begins_once() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.fires("a", 0), Ok(1));
    assert_eq!(bench.fires("a", 0), Ok(1), "the request comes twice");
    assert_eq!(bench.fires("b", 0), Err(NotBegun::Running));
    let fence = bench.record_fence();
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    assert_eq!(bench.fires("b", 0), Err(NotBegun::Done));
    assert_eq!(bench.fires("b", 1), Ok(1));
    assert_eq!(bench.record().scheduled_time_ms, T / 1_000 + 60_000);
    assert_eq!(bench.record().result, "", "the result was the earlier one's");
    // Its worker dies: that is the end of this scheduled time, but not of the next one.
    bench.pass(TTL + 1);
    assert_eq!(bench.fires("c", 1), Err(NotBegun::Dead));
    assert_eq!(bench.fires("c", 2), Ok(1));
}

#[test]
fn the_first_attempt_for_a_later_scheduled_time_reports_a_run_that_was_left_unfinished() {
    let left = |bench: &mut Bench, minutes| {
        bench.fires("b", minutes).unwrap();
        let earlier = bench.last.take().unwrap().earlier;
        earlier.filter(|run| !run.error.is_empty()).map(|run| (run.scheduled_time_ms, run.attempts, run.by, run.error))
    };
    let first = |error: &str| Some((T / 1_000, 1, "a".to_owned(), error.to_owned()));
    let mut bench = Bench::new(1);
    bench.fires("a", 0).unwrap();
    bench.pass(TTL + 1);
    assert_eq!(left(&mut bench, 1), first("attempt 1 of 1: its worker died or lost the lease (a)"));
    assert_eq!(left(&mut bench, 1), None, "the request comes twice");
    let fence = bench.record_fence();
    assert_eq!(bench.done("b", fence), Verdict::Ok);
    assert_eq!(left(&mut bench, 2), None, "it was done");
    // A failure that may be tried again, and was not.
    let mut bench = Bench::new(2);
    bench.fires("a", 0).unwrap();
    let fence = bench.record_fence();
    assert_eq!(bench.fail("a", fence, 0), Verdict::Ok);
    assert_eq!(left(&mut bench, 1), first("no"));
    // What was reported before is not reported again.
    let mut bench = Bench::new(1);
    bench.fires("a", 0).unwrap();
    bench.pass(TTL + 1);
    assert_eq!(bench.fires("b", 0), Err(NotBegun::Dead));
    assert_eq!(left(&mut bench, 1), None);
}

#[test]
fn it_is_known_when_the_work_was_done_last_while_later_runs_fail() {
    let mut bench = Bench::new(1);
    bench.fires("a", 0).unwrap();
    bench.pass(1_000);
    let (fence, done_at_us) = (bench.record_fence(), bench.now_us);
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    bench.fires("b", 1).unwrap();
    assert_eq!((bench.record().done_at_us, &*bench.record().state), (done_at_us, "running"));
    let fence = bench.record_fence();
    assert_eq!(bench.fail("b", fence, 0), Verdict::Ok);
    bench.fires("c", 2).unwrap();
    assert_eq!(bench.record().done_at_us, done_at_us);
}

#[test]
fn a_record_that_was_deleted_in_the_run_keeps_its_scheduled_time_all_the_same() {
    let mut bench = Bench::new(1);
    bench.fires("a", 5).unwrap();
    let fence = bench.record_fence();
    bench.state.remove("{mail}:~lt:job");
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    assert_eq!(bench.fires("b", 5), Err(NotBegun::Done));
    assert_eq!(bench.fires("b", 4), Err(NotBegun::Missed));
}

pub(super) fn an_earlier_scheduled_time_never_begins_any_more() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.fires("a", 2), Ok(1));
    assert_eq!(bench.fires("b", 1), Err(NotBegun::Missed));
    bench.pass(TTL + 1);
    assert_eq!(bench.fires("b", 1), Err(NotBegun::Missed));
    assert_eq!(bench.fires("b", 0), Err(NotBegun::Missed));
}

pub(super) fn a_scheduled_time_that_is_too_long_ago_does_not_begin() {
    let mut bench = Bench::new(2);
    assert_eq!(bench.fires("a", -61), Err(NotBegun::TooLate));
    assert_eq!(bench.record(), JobRecord::default());
    assert_eq!(bench.fires("a", -60), Ok(1));
    bench.pass(TTL + 1);
    assert_eq!(bench.fires("b", -60), Err(NotBegun::TooLate), "a second attempt would be too late");
    let fence = bench.record_fence();
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    assert_eq!(bench.fires("b", -60), Err(NotBegun::Done), "what is known of it is shown for longer");
}

pub(super) fn a_scheduled_time_far_ahead_leaves_nothing_behind() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.fires("a", 6), Err(NotBegun::TooEarly));
    assert_eq!(bench.record(), JobRecord::default());
    assert_eq!(bench.fires("a", 5), Ok(1));
}

#[test]
fn a_scheduled_time_is_backed_up_or_left_out_while_work_runs() {
    let mut bench = Bench::new(2);
    assert_eq!(bench.fires("a", 0), Ok(1));
    assert!(matches!(bench.begin("b").verdict, Verdict::Held { .. }), "it is a backup");
    assert_eq!(bench.fires("b", 1), Err(NotBegun::Running));
    bench.scheduled_time = bench.scheduled_time.map(|scheduled_time| ScheduledTime { waits: true, ..scheduled_time });
    assert!(matches!(bench.begin("b").verdict, Verdict::Held { .. }), "it waits");
    // An attempt that is given back lets the same scheduled time begin again; one that waits for its delay makes no later one wait.
    assert_eq!(bench.give_back("a"), Verdict::Ok);
    assert_eq!(bench.fires("a", 0), Ok(1));
    let fence = bench.record_fence();
    assert_eq!(bench.fail("a", fence, 600_000), Verdict::Ok);
    assert!(matches!(bench.begin("b").verdict, Verdict::Later { .. }));
    assert_eq!(bench.fires("b", 1), Ok(1));
    assert!(taken_by("b")(&bench.done("a", fence)), "a later scheduled time has begun");
}

#[test]
fn a_lock_that_is_kept_for_a_waiter_is_free_for_a_later_scheduled_time_soon() {
    let mut bench = Bench::new(1);
    let key = bench.keys.lock().to_owned();
    bench.state.put(&key, Value::Text("claim b:c1:1 x".into()), T, Some(200));
    bench.scheduled_time = Some(ScheduledTime { at_ms: T / 1_000, max_lateness_ms: LATE_MS, waits: false });
    assert!(matches!(bench.begin("a").verdict, Verdict::Held { .. }));
    bench.pass(201);
    assert_eq!(bench.fires("a", 0), Ok(1));
}
