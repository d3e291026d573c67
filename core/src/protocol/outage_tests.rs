//! A process that stands still, and one whose servers are silent, in virtual time.

use std::sync::Arc;

use super::*;
use crate::clock::Now;
use crate::error::{Code, Error};
use crate::name::{Keys, Kind};
use crate::op::{Answer, Failure, FailureKind, Reply, Verb, Verdict};
use crate::options::{LockOptions, Wait};
use crate::owner::Signature;
use crate::protocol::{Acquisition, Amount, Answered, Command, Input, Manner, Tag};
use crate::wait::{LeaveReason, LocalQueues, Role, Waiter};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn at(n: u64) -> Tick {
    Tick::from_micros(n * 1_000)
}

fn answer_with(verdict: Verdict) -> Answer {
    Ok(Reply::new(verdict, 0, 7))
}

fn disconnected() -> Answer {
    Err(Failure::unknown(FailureKind::Disconnected, "gone"))
}

/// An acquisition on one server, in time that a test moves.
struct Process {
    machine: Acquisition,
    now: Tick,
    /// The tag of the last request, and the number of acquires.
    sent: Option<Tag>,
    rounds: u32,
    acquired: Option<Result<bool, Error>>,
    ended: Option<Code>,
}

impl Process {
    fn start(wait: Wait, one_shot: bool, waiter: Option<Waiter>) -> Self {
        let recipe = Recipe {
            keys: Arc::new(Keys::new(Kind::Exclusive, "", "l", true).unwrap()),
            servers: Arc::new(["s".to_owned()]),
            quorum_config: None,
            options: LockOptions { wait, ttl: ms(20_000), ..LockOptions::default() },
            ask_all_first: false,
            busy_is_none: one_shot,
            adopt: None,
            job: None,
            history: true,
            signature: Arc::new(Signature::new(None, "h", 1)),
            response_timeout: ms(1_000),
            unavailable_after: ms(5_000),
        };
        let machine = Acquisition::new(Arc::new(recipe), waiter, 1, Now { tick: at(0), wall_us: 0, servers_us: 0 });
        let mut process = Self { machine, now: at(0), sent: None, rounds: 0, acquired: None, ended: None };
        process.bring(Input::Start);
        process
    }

    fn bring(&mut self, input: Input) {
        let mut out = Vec::new();
        self.machine.handle(Now { tick: self.now, wall_us: 0, servers_us: 0 }, input, &mut out);
        for command in out {
            match command {
                Command::Send { tag, request, .. } => {
                    self.rounds += u32::from(matches!(request.op.verb(), Some(Verb::Acquire { .. })));
                    self.sent = Some(tag);
                }
                Command::Acquired(result) => self.acquired = Some(result.map(|answered| answered != Answered::Busy)),
                Command::Extended(_, result) => self.ended = result.err().map(|error| error.code()),
                Command::Released(_, result) => self.ended = result.err().map(|error| error.code()),
                _ => (),
            }
        }
    }

    fn answer(&mut self, answer: Answer) {
        let tag = self.sent.unwrap();
        self.bring(Input::Answer { server: 0, tag, answer });
    }

    /// Continues at `then`, and handles its timer before any answer.
    fn stand_still_until(&mut self, then: Tick) {
        assert!(self.machine.wake_at() < then, "nothing was due");
        self.now = then;
        self.bring(Input::Wake);
    }

    /// Runs until the acquire has ended, each timer being `late`; no server answers.
    fn receives_nothing(&mut self, late: Duration) -> Code {
        for _ in 0..1_000 {
            if let Some(result) = self.acquired.take() {
                return result.unwrap_err().code();
            }
            self.now = self.machine.wake_at().max(self.now).after(late);
            self.bring(Input::Wake);
        }
        panic!("it continues at {:?}", self.now);
    }

    fn is_granted(&self) -> bool {
        matches!(self.acquired, Some(Ok(true)))
    }
}

#[test]
fn an_answer_that_is_read_when_the_process_continues_counts_however_long_it_stood_still() {
    for still in [1_001, 1_500, 4_999, 5_200, 15_000] {
        for one_shot in [false, true] {
            let wait = if one_shot { Wait::For(ms(0)) } else { Wait::Forever };
            let mut process = Process::start(wait, one_shot, None);
            process.stand_still_until(at(still));
            process.now = at(still).after(ms(1).min(ms(still - 1_000) / 2));
            process.answer(answer_with(Verdict::Vote));
            assert!(process.is_granted(), "{still}: {:?}", process.acquired);
        }
    }
}

#[test]
fn the_time_in_which_the_process_stood_still_is_no_servers_silence() {
    for still in [1_500, 5_200, 3_600_000] {
        let mut process = Process::start(Wait::Forever, false, None);
        process.stand_still_until(at(still));
        assert_eq!(process.receives_nothing(ms(0)), Code::Unavailable);
        // The process ran for a second before it stood still.
        let ran = process.now.since(at(still)) + ms(1_000);
        assert!(ran >= ms(5_000) && ran <= ms(7_000), "{still}: gave up after {ran:?}");
    }
}

#[test]
fn a_process_that_stood_still_between_two_rounds_tries_again() {
    let mut process = Process::start(Wait::Forever, false, None);
    process.answer(disconnected());
    process.stand_still_until(at(60_000));
    assert_eq!(process.rounds, 2);
    process.answer(disconnected());
    assert!(process.acquired.is_none(), "it was away for a minute, not the server: {:?}", process.acquired);
}

#[test]
fn a_connection_that_is_found_broken_when_the_process_continues_is_no_outage_of_all_that_time() {
    for still in [5_200, 3_600_000] {
        let mut process = Process::start(Wait::Forever, false, None);
        process.now = at(still);
        process.answer(disconnected());
        assert!(process.acquired.is_none(), "{still}: {:?}", process.acquired);
        process.now = process.machine.wake_at();
        process.bring(Input::Wake);
        process.answer(answer_with(Verdict::Vote));
        assert!(process.is_granted(), "{still}: {:?}", process.acquired);
    }
}

#[test]
fn a_wait_ends_with_the_round_under_way_wherever_the_process_stood_still() {
    let mut process = Process::start(Wait::For(ms(3_000)), false, None);
    process.stand_still_until(at(3_500));
    assert_eq!(process.receives_nothing(ms(0)), Code::Unavailable);
    assert_eq!((process.now, process.rounds), (at(4_500), 1), "a response timeout at most after it continued");
}

#[test]
fn a_server_that_is_gone_is_left_in_time_by_a_process_that_is_always_late() {
    for (late, most) in [(0, 6_000), (1, 6_100), (100, 10_000), (900, 25_000)] {
        let mut process = Process::start(Wait::Forever, false, None);
        assert_eq!(process.receives_nothing(ms(late)), Code::Unavailable);
        assert!(process.now >= at(5_000) && process.now <= at(most), "{late} ms late: {:?}", process.now);
    }
}

#[test]
fn a_holders_callers_get_what_is_read_when_the_process_continues() {
    let extend: fn() -> Input = || Input::Extend(1, Amount::Own);
    let release: fn() -> Input = || Input::Release(1, Manner::Explicit);
    for ask in [extend, release] {
        let mut process = Process::start(Wait::Forever, false, None);
        process.answer(answer_with(Verdict::Vote));
        process.now = at(100);
        process.bring(ask());
        process.ended = Some(Code::Internal);
        process.stand_still_until(at(9_000));
        assert_eq!(process.ended, Some(Code::Internal), "nothing is reported yet");
        process.answer(answer_with(Verdict::Ok));
        assert_eq!(process.ended, None, "it was done");
    }
}

#[test]
fn a_holder_that_stood_still_beyond_its_validity_has_lost_the_lock_all_the_same() {
    let mut process = Process::start(Wait::Forever, false, None);
    process.answer(answer_with(Verdict::Vote));
    process.stand_still_until(at(20_000));
    assert!(process.machine.check(process.now).is_err());
}

#[test]
fn an_outage_that_a_queue_has_survived_is_not_held_against_those_behind() {
    let mut queues = LocalQueues::new("c", "", 1);
    let waiters: Vec<Waiter> = (1..=2).map(|waiter| queues.join("l", waiter, false)).collect();
    let mut first = Process::start(Wait::Forever, false, Some(waiters[0].clone()));
    let mut second = Process::start(Wait::Forever, false, Some(waiters[1].clone()));
    first.now = at(1_000);
    first.bring(Input::Wake);
    assert!(waiters[0].slot.outage.since().is_some(), "a round has failed");
    first.now = first.machine.wake_at();
    first.bring(Input::Wake);
    first.answer(answer_with(Verdict::Vote));
    assert!(first.is_granted());
    queues.quit("l", 1, LeaveReason::Granted { until: at(20_000), stays: true });
    second.now = at(30_000);
    second.bring(Input::Role(Role::First, None));
    assert_eq!(second.rounds, 1);
    second.answer(disconnected());
    assert!(second.acquired.is_none(), "{:?}", second.acquired);
}

#[test]
fn a_waiter_that_takes_over_knows_how_long_the_process_stood_still() {
    let mut queues = LocalQueues::new("c", "", 1);
    let waiters: Vec<Waiter> = (1..=2).map(|waiter| queues.join("l", waiter, false)).collect();
    let mut first = Process::start(Wait::Forever, false, Some(waiters[0].clone()));
    let mut second = Process::start(Wait::Forever, false, Some(waiters[1].clone()));
    first.answer(disconnected());
    first.stand_still_until(at(60_000));
    first.bring(Input::Cancel);
    second.now = at(60_001);
    second.bring(Input::Role(Role::First, None));
    second.answer(disconnected());
    assert!(second.acquired.is_none(), "{:?}", second.acquired);
}
