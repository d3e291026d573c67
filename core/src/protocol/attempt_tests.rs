//! An attempt of a job, in virtual time: what the server gets at its end, and what its worker gets.

use std::sync::Arc;

use crate::clock::{Now, Tick};
use crate::error::{Code, LossReason};
use crate::event::EventKind;
use crate::name::{Keys, Kind};
use crate::op::job::{AttemptNumber, EarlierRun, Ending, JobEnd, NotBegun, OpenAttempt, Terms};
use crate::op::{Answer, Failure, FailureKind, Op, Reply, Verb, Verdict};
use crate::protocol::waiting::tests::{at, gone, ms, recipe};
use crate::protocol::{Acquisition, Answered, Command, Input, Manner, Recipe, Tag};

/// One server and one acquisition of a job.
struct Bench {
    machine: Acquisition,
    /// The last request, its tag and its time.
    asked: Option<(Tag, Op)>,
    reported: Vec<Command>,
}

impl Bench {
    fn started() -> Self {
        let recipe = recipe(1);
        let options = crate::options::LockOptions { renew: false, ..recipe.options };
        let job = Some(Terms { max_attempts: 3, retention_ms: 60_000, scheduled_time: None });
        let keys = Arc::new(Keys::new(Kind::Job, "", "l", true).unwrap());
        let recipe = Recipe { keys, options, job, ..recipe };
        let machine = Acquisition::new(Arc::new(recipe), None, 1, Now { tick: at(0), wall_us: 0, servers_us: 0 });
        let mut bench = Self { machine, asked: None, reported: Vec::new() };
        bench.bring(at(0), Input::Start);
        bench
    }

    /// Attempt 2 of 3, for 10 s.
    fn begun() -> Self {
        let mut bench = Self::started();
        bench
            .answer(at(1), Ok(Reply { attempt: Some(AttemptNumber { number: 2, max: 3, failures: 1 }), ..reply(Verdict::Vote) }));
        assert!(bench.machine.check(at(1)).is_ok(), "granted");
        bench
    }

    fn lost() -> Self {
        let mut bench = Self::begun();
        bench.bring(at(10_000), Input::Wake);
        assert!(bench.machine.check(at(10_000)).is_err(), "lost");
        bench
    }

    fn bring(&mut self, now: Tick, input: Input) {
        let mut out = Vec::new();
        self.machine.handle(Now { tick: now, wall_us: 0, servers_us: 0 }, input, &mut out);
        for command in out {
            match command {
                Command::Send { tag, request, .. } => self.asked = Some((tag, request.op)),
                reported => self.reported.push(reported),
            }
        }
    }

    fn answer(&mut self, now: Tick, answer: Answer) {
        let (tag, _) = self.asked.clone().expect("the server was asked");
        self.bring(now, Input::Answer { server: 0, tag, answer });
    }

    fn verb(&self) -> Verb {
        self.asked.as_ref().and_then(|(_, op)| op.verb()).expect("the server was asked").clone()
    }

    fn events(&self) -> Vec<EventKind> {
        let kind = |command: &Command| if let Command::Emit(event) = command { Some(event.kind) } else { None };
        self.reported.iter().filter_map(kind).collect()
    }

    /// What the caller of the end of the attempt receives: the outcome, or the error's code.
    fn received(&self) -> Option<Result<&'static str, Code>> {
        self.reported.iter().find_map(|command| match command {
            Command::Released(_, Ok(release)) => Some(Ok(release.outcome.as_str())),
            Command::Released(_, Err(error)) => Some(Err(error.code())),
            _ => None,
        })
    }
}

fn reply(verdict: Verdict) -> Reply {
    Reply::new(verdict, 0, 7)
}

fn done() -> Ending {
    Ending::Done { result: "1".into() }
}

fn failed() -> Ending {
    Ending::Failed { error: "no".into(), retry_in_ms: Some(0) }
}

fn ended(ending: Ending) -> Verb {
    let number = AttemptNumber { number: 2, max: 3, failures: 1 };
    Verb::EndAttempt {
        ending,
        attempt: OpenAttempt { fence: 7, number, retention_ms: 60_000, scheduled_time_ms: 0 },
        leave: None,
    }
}

fn given_back() -> Verb {
    ended(Ending::GivenBack)
}

fn an_attempt_that_nobody_ends_goes_back_unless_its_lease_was_lost() {
    let left = || Input::Release(1, Manner::EndOfBody);
    let mut bench = Bench::begun();
    bench.bring(at(5), left());
    assert_eq!(bench.verb(), given_back());
    let mut bench = Bench::begun();
    bench.bring(at(5), Input::Close);
    assert_eq!(bench.verb(), given_back(), "its client is closed");
    let mut bench = Bench::lost();
    bench.bring(at(10_005), left());
    assert!(matches!(bench.verb(), Verb::Release { .. }), "a lost attempt counts");
}

#[test]
fn what_is_not_ended_is_given_back() {
    an_attempt_that_nobody_ends_goes_back_unless_its_lease_was_lost();
}

#[test]
fn the_table_notices_what_is_left_out() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::LostAttemptGivenBack, an_attempt_that_nobody_ends_goes_back_unless_its_lease_was_lost);
}

#[test]
fn the_end_of_an_attempt_is_noted_also_after_a_loss_and_an_event_reports_it() {
    for (begun, now) in [(Bench::begun as fn() -> Bench, at(5)), (Bench::lost, at(10_005))] {
        for (ending, expected) in [(done(), EventKind::Done), (failed(), EventKind::Retry)] {
            let mut bench = begun();
            bench.bring(now, Input::EndAttempt(1, ending.clone()));
            assert_eq!(bench.verb(), ended(ending));
            bench.answer(now, Ok(reply(Verdict::Ok)));
            assert_eq!(bench.received(), Some(Ok("released")));
            assert_eq!(bench.events().last(), Some(&expected));
        }
    }
}

#[test]
fn an_end_that_the_record_refuses_is_a_loss() {
    let mut bench = Bench::begun();
    bench.bring(at(5), Input::EndAttempt(1, done()));
    bench.answer(at(6), Ok(reply(gone())));
    assert_eq!(bench.received(), Some(Err(Code::LockLost)));
    bench.reported.clear();
    bench.bring(at(7), Input::EndAttempt(2, done()));
    assert_eq!(bench.received(), Some(Err(Code::NotHeld)));
}

#[test]
fn that_the_work_is_done_is_not_taken_for_noted_after_a_request_without_an_answer() {
    let broke = || Err(Failure::unknown(FailureKind::Disconnected, "it broke"));
    for (ending, expected) in [(done(), Err(Code::LockLost)), (failed(), Ok("released"))] {
        let mut bench = Bench::begun();
        bench.bring(at(5), Input::EndAttempt(1, ending));
        bench.answer(at(6), broke());
        bench.bring(at(200), Input::Wake);
        // Another attempt has begun since. It may have done so behind our first request.
        bench.answer(at(201), Ok(reply(gone())));
        assert_eq!(bench.received(), Some(expected));
    }
}

#[test]
fn an_end_without_an_answer_is_unknown_and_not_a_loss() {
    let mut bench = Bench::begun();
    bench.bring(at(5), Input::EndAttempt(1, done()));
    for time in (1_000..6_000).step_by(100) {
        bench.bring(at(time), Input::Wake);
    }
    assert_eq!(bench.received(), Some(Err(Code::Unavailable)));
}

fn earlier(scheduled_time_ms: u64, retention_ms: u64, error: &str) -> EarlierRun {
    EarlierRun { scheduled_time_ms, attempts: 1, by: "w".into(), error: error.into(), retention_ms }
}

#[test]
fn a_schedule_is_warned_of_a_plain_job_of_its_name_and_of_another_lateness() {
    for (earlier, warned) in [
        (earlier(1_800_000_000_000, 60_000, ""), None),
        (earlier(0, 60_000, ""), Some("without scheduled times")),
        (earlier(1_800_000_000_000, 90_000, ""), Some("another lateness")),
    ] {
        let mut bench = Bench::started();
        let attempt = Some(AttemptNumber { number: 1, max: 3, failures: 0 });
        bench.answer(at(1), Ok(Reply { attempt, earlier: Some(Box::new(earlier)), ..reply(Verdict::Vote) }));
        let warning = |command: &Command| match command {
            Command::Emit(event) if event.kind == EventKind::Warning => event.message.clone(),
            _ => None,
        };
        let reported = bench.reported.iter().find_map(warning);
        assert!(
            reported.as_deref().map_or(warned.is_none(), |reported| warned.is_some_and(|warned| reported.contains(warned))),
            "{reported:?}"
        );
        assert!(!bench.reported.iter().any(|command| matches!(command, Command::EmitOfAnother(_))));
    }
}

#[test]
fn a_run_that_was_left_unfinished_is_reported_when_a_later_one_begins() {
    let run = earlier(1_800_000_000_000, 60_000, "it died");
    let mut bench = Bench::started();
    let attempt = Some(AttemptNumber { number: 1, max: 1, failures: 0 });
    bench.answer(at(1), Ok(Reply { attempt, earlier: Some(Box::new(run)), ..reply(Verdict::Vote) }));
    let dead = |command: &Command| match command {
        Command::EmitOfAnother(event) => Some(event.clone()),
        _ => None,
    };
    let event = bench.reported.iter().find_map(dead).expect("it is reported");
    assert_eq!((event.kind, event.attempt, event.last_owner.as_deref()), (EventKind::Dead, Some(1), Some("w")));
    assert_eq!(event.message.as_deref(), Some("for the scheduled time 2027-01-15T08:00:00Z: it died"));
}

#[test]
fn a_failure_that_no_attempt_can_help_is_reported_as_the_death_of_the_job() {
    let mut bench = Bench::begun();
    bench.bring(at(5), Input::EndAttempt(1, Ending::Failed { error: "no".into(), retry_in_ms: None }));
    bench.answer(at(6), Ok(reply(Verdict::Ok)));
    assert_eq!(bench.events().last(), Some(&EventKind::Dead));
}

/// An attempt whose end was asked for in an outage that was longer than its lease: its caller knows nothing.
fn unended(ending: Ending) -> Bench {
    let mut bench = Bench::begun();
    bench.bring(at(5), Input::EndAttempt(1, ending));
    for time in (1_000..30_000).step_by(100) {
        bench.bring(at(time), Input::Wake);
    }
    assert_eq!(bench.received(), Some(Err(Code::Unavailable)));
    bench.reported.clear();
    bench
}

#[test]
fn the_end_of_an_attempt_is_asked_for_again_after_an_outage() {
    for (ending, event) in [(done(), EventKind::Done), (failed(), EventKind::Retry)] {
        let mut bench = unended(ending.clone());
        bench.bring(at(40_000), Input::EndAttempt(2, ending.clone()));
        assert_eq!(bench.verb(), ended(ending.clone()));
        assert_eq!(bench.received(), None, "it waits for the server");
        bench.answer(at(40_001), Ok(reply(Verdict::Ok)));
        assert_eq!(
            (bench.received(), bench.events()),
            (Some(Ok("released")), vec![event]),
            "the hold has ended before, with an event"
        );
        bench.reported.clear();
        bench.bring(at(40_002), Input::EndAttempt(3, ending));
        assert_eq!(bench.received(), Some(Err(Code::NotHeld)));
    }
    // The record says that another attempt has begun.
    let mut bench = unended(done());
    bench.bring(at(40_000), Input::EndAttempt(2, done()));
    bench.answer(at(40_001), Ok(reply(gone())));
    assert_eq!(bench.received(), Some(Err(Code::LockLost)));
}

#[test]
fn another_end_than_the_one_under_way_is_refused() {
    for (first, second) in [(failed(), done()), (done(), failed()), (done(), Ending::Done { result: "2".into() })] {
        let mut bench = Bench::begun();
        bench.bring(at(5), Input::EndAttempt(1, first.clone()));
        for time in (1_000..6_000).step_by(100) {
            bench.bring(at(time), Input::Wake);
        }
        assert_eq!(bench.received(), Some(Err(Code::Unavailable)));
        bench.reported.clear();
        bench.bring(at(6_000), Input::EndAttempt(2, second.clone()));
        assert_eq!(bench.received(), Some(Err(Code::NotHeld)), "it is under way");
        let mut bench = unended(first);
        bench.bring(at(40_000), Input::EndAttempt(2, second));
        assert_eq!(bench.received(), Some(Err(Code::NotHeld)), "nobody knows its outcome");
    }
}

#[test]
fn a_job_that_is_over_ends_the_wait_with_an_answer() {
    for (why, event) in [
        (NotBegun::Done, EventKind::Done),
        (NotBegun::Dead, EventKind::Dead),
        (NotBegun::Running, EventKind::Skipped),
        (NotBegun::Missed, EventKind::Skipped),
        (NotBegun::TooLate, EventKind::Skipped),
        (NotBegun::TooEarly, EventKind::Skipped),
    ] {
        let end = JobEnd { why, text: "x".into(), attempts: 2, max_attempts: 3, by: "w".into(), time_us: 7 };
        let mut bench = Bench::started();
        bench.answer(at(1), Ok(reply(Verdict::Over(Box::new(end.clone())))));
        let answered = |command: &Command| matches!(command, Command::Acquired(Ok(Answered::Over(reported))) if *reported == end);
        assert!(bench.reported.iter().any(answered));
        assert_eq!(bench.events().last(), Some(&event));
        assert!(bench.machine.is_finished());
    }
}

#[test]
fn a_job_whose_next_attempt_may_not_begin_yet_is_asked_for_again_then() {
    let mut bench = Bench::started();
    bench.answer(at(1), Ok(reply(Verdict::Later { left: ms(60_000), error: "no".into() })));
    assert!(!bench.reported.iter().any(|command| matches!(command, Command::Acquired(_))));
    assert!(bench.machine.wake_at() <= at(60_010));
}

#[test]
fn a_loss_is_reported_as_of_any_lock() {
    let bench = Bench::lost();
    let lost = |command: &Command| matches!(command, Command::Lost(loss) if loss.reason == LossReason::Expired);
    assert!(bench.reported.iter().any(lost));
}
