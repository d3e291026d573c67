//! One server in virtual time: the look at the history by a release that finds nobody, what holders note there, and how they raise
//! the clock behind a failover.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::mutant::{Mutant, assert_noticed};
use crate::name::{Keys, Kind};
use crate::op::{Answer, Beside, Failure, FailureKind, HistoryEntry, HistoryNote, HoldState, Reply, Verb, Verdict};
use crate::options::Wait;
use crate::protocol::waiting::tests::{at, gone, held, recipe};
use crate::protocol::{Acquisition, Command, Input, Manner, Outcome, Release, Tag};

/// The server's time at the origin, in milliseconds.
const T: u64 = 1_800_000_000_000;

/// One hold on one server.
struct Bench {
    machine: Acquisition,
    /// The last request.
    tag: Option<Tag>,
    look: Option<(Tag, u64, bool)>,
    notes: Vec<(HoldState, u64)>,
    released: Option<Release>,
    asked: Vec<Verb>,
}

impl Bench {
    /// Asks for the lock.
    fn asked() -> Self {
        Self::asked_as(Kind::Exclusive)
    }

    fn asked_as(kind: Kind) -> Self {
        let mut recipe = recipe(1);
        recipe.keys = Arc::new(Keys::new(kind, "", "l", true).unwrap());
        (recipe.options.ttl, recipe.options.wait) = (Duration::from_secs(3), Wait::For(Duration::from_secs(60)));
        let machine = Acquisition::new(Arc::new(recipe), None, 1, now(at(0)));
        let mut bench = Self { machine, tag: None, look: None, notes: Vec::new(), released: None, asked: Vec::new() };
        bench.bring(at(0), Input::Start);
        bench
    }

    /// Has the lock, with the fence of the server's time.
    fn held() -> Self {
        let mut bench = Self::asked();
        bench.answer(at(0), reply(at(0), Verdict::Vote, T * 1_000));
        bench
    }

    fn bring(&mut self, tick: Tick, input: Input) {
        let mut out = Vec::new();
        self.machine.handle(now(tick), input, &mut out);
        for command in out {
            match command {
                Command::Send { tag, request, .. } => {
                    self.tag = Some(tag);
                    self.asked.extend(request.op.verb().cloned());
                }
                Command::Look { tag, since_ms, failed_over } => self.look = Some((tag, since_ms, failed_over)),
                Command::Log(HistoryNote { state, fence, .. }) => self.notes.push((state, fence)),
                Command::Released(_, Ok(release)) => self.released = Some(release),
                _ => (),
            }
        }
    }

    fn answer(&mut self, tick: Tick, answer: Answer) {
        let Some(tag) = self.tag else { panic!("nothing was asked for") };
        self.bring(tick, Input::Answer { server: 0, tag, answer });
    }

    /// Renews.
    fn renew(&mut self, tick: Tick) {
        self.bring(tick, Input::Wake);
        self.answer(tick, reply(tick, Verdict::Ok, T * 1_000));
    }

    /// Releases, and finds nobody.
    fn release(&mut self, tick: Tick, last_fence: u64) {
        self.bring(tick, Input::Release(1, Manner::Explicit));
        let refused = reply(tick, gone(), 0).map(|reply| Reply { last_fence, ..reply });
        self.answer(tick, refused);
    }

    fn show(&mut self, tick: Tick, notes: &[(&str, u64)]) {
        let Some((tag, ..)) = self.look else { panic!("nothing was looked for") };
        let entry = |(owner, fence): &(&str, u64)| {
            let note = HistoryNote {
                lock: "l".into(),
                owner: (*owner).into(),
                fence: *fence,
                state: HoldState::Holds,
                beside: Beside::Nobody,
            };
            HistoryEntry { id: (fence / 1_000 + 1, 0), note }
        };
        let entries = notes.iter().map(entry).collect();
        self.bring(tick, Input::Answer { server: 0, tag, answer: reply(tick, Verdict::Logged(entries), 0) });
    }

    fn found(&self) -> (Outcome, Option<&str>, Option<u64>, bool) {
        let release = self.released.as_ref().expect("an outcome");
        (release.outcome, release.next_owner.as_deref(), release.next_fence, release.is_excluded)
    }
}

fn now(tick: Tick) -> Now {
    Now { tick, wall_us: 0, servers_us: 0 }
}

fn reply(tick: Tick, verdict: Verdict, fence: u64) -> Answer {
    let time_us = T * 1_000 + tick.as_micros();
    Ok(Reply { run_id: Some("r".into()), is_alone: true, ..Reply::new(verdict, time_us, fence) })
}

/// The number of a fence that is given so late.
const fn fence(ms: u64) -> u64 {
    (T + ms) * 1_000
}

#[test]
fn a_release_that_finds_nobody_looks_who_came_next() {
    for (notes, expected) in [
        (&[("host=b", fence(3_500))][..], (Outcome::Taken, Some("host=b"), Some(fence(3_500)), false)),
        (&[], (Outcome::Expired, None, None, false)),
    ] {
        let mut bench = Bench::held();
        bench.renew(at(1_000));
        bench.release(at(5_000), fence(3_500));
        assert_eq!(bench.look.map(|(_, since_ms, failed_over)| (since_ms, failed_over)), Some((T + 1_000 - 10_000, false)));
        assert_eq!(bench.released, None, "the look has no answer");
        bench.show(at(5_010), notes);
        assert_eq!(bench.found(), expected);
        assert_eq!(bench.notes, [(HoldState::Holds, fence(0)), (HoldState::Lost, fence(0))]);
        assert!(bench.machine.is_finished());
    }
}

#[test]
fn where_the_clock_stood_still_nobody_is_looked_for() {
    let mut bench = Bench::held();
    bench.release(at(100), fence(0));
    assert_eq!((bench.look, bench.found()), (None, (Outcome::Expired, None, None, true)));
}

#[test]
fn where_the_clock_was_lost_nothing_is_known() {
    let mut bench = Bench::held();
    bench.release(at(100), fence(0) - 1);
    assert_eq!((bench.look, bench.found()), (None, (Outcome::Expired, None, None, false)));
}

fn a_failover_makes_it_unknown() {
    let mut bench = Bench::held();
    bench.bring(at(50), Input::FailedOver(0));
    bench.release(at(100), fence(0));
    assert_eq!(bench.look.map(|(.., failed_over)| failed_over), Some(true));
}

fn a_failover_has_the_clock_raised() {
    let mut bench = Bench::held();
    bench.bring(at(50), Input::FailedOver(0));
    let [_, confirm, extend] = &*bench.asked else { panic!("{:?}", bench.asked) };
    assert_eq!(*confirm, Verb::Confirm { fence: fence(0) });
    assert!(matches!(extend, Verb::Extend { .. }), "{extend:?}");
}

#[test]
fn the_clock_of_a_new_primary_is_raised_before_the_hold_is_confirmed() {
    a_failover_has_the_clock_raised();
    assert_noticed(Mutant::ClockNotRaised, a_failover_has_the_clock_raised);
}

fn an_earlier_request_may_have_freed_it() {
    let mut bench = Bench::held();
    bench.bring(at(5_000), Input::Wake);
    bench.bring(at(5_000), Input::Release(1, Manner::Explicit));
    bench.answer(at(5_010), Err(Failure::unknown(FailureKind::Disconnected, "broke")));
    bench.bring(at(5_200), Input::Wake);
    let refused = reply(at(5_210), gone(), 0).map(|reply| Reply { last_fence: fence(5_100), ..reply });
    bench.answer(at(5_210), refused);
    assert_eq!((bench.look, bench.found()), (None, (Outcome::Expired, None, None, false)));
}

#[test]
fn neither_a_failover_nor_an_earlier_request_of_ours_accuses() {
    a_failover_makes_it_unknown();
    an_earlier_request_may_have_freed_it();
    assert_noticed(Mutant::FailoverExcludes, a_failover_makes_it_unknown);
    assert_noticed(Mutant::ProofWhileUnanswered, an_earlier_request_may_have_freed_it);
}

#[test]
fn a_look_without_an_answer_holds_nobody_up() {
    let mut bench = Bench::held();
    bench.release(at(100), fence(50));
    assert!(bench.look.is_some());
    bench.bring(bench.machine.wake_at(), Input::Wake);
    assert_eq!(bench.found(), (Outcome::Expired, None, None, false));
    bench.show(at(9_000), &[("host=b", fence(50))]);
    assert_eq!(bench.found().0, Outcome::Expired, "it is reported once");
}

#[test]
fn short_holds_are_noted_only_if_they_met_a_holder() {
    for (busy, held_ms, expected) in
        [(false, 900, &[][..]), (true, 900, &[HoldState::Released]), (false, 1_500, &[HoldState::Holds, HoldState::Released])]
    {
        let mut bench = Bench::asked();
        let mut begun = at(0);
        if busy {
            bench.answer(begun, reply(begun, held(), 0));
            while bench.tag.is_some_and(|tag| tag.sent < begun) || begun == at(0) {
                begun = bench.machine.wake_at();
                bench.bring(begun, Input::Wake);
            }
        }
        bench.answer(begun, reply(begun, Verdict::Vote, fence(0)));
        if held_ms > 1_000 {
            bench.renew(begun.after(Duration::from_secs(1)));
        }
        let ended = begun.after(Duration::from_millis(held_ms));
        bench.bring(ended, Input::Release(1, Manner::Explicit));
        bench.answer(ended, reply(ended, Verdict::Ok, 0));
        assert_eq!(bench.notes.iter().map(|(state, _)| *state).collect::<Vec<_>>(), expected, "{busy} {held_ms}");
    }
}

#[test]
fn of_those_inside_at_once_the_first_reader_is_noted_and_whoever_lost_the_lock() {
    use HoldState::{Holds, Lost, Released};
    for (kind, began_ms, noted) in [
        (Kind::Read, 0, &[Holds, Released][..]),
        (Kind::Read, 1, &[Holds, Released]),
        (Kind::Read, 2, &[]),
        (Kind::Semaphore(3), 0, &[]),
    ] {
        let granted = |tick| {
            let mut bench = Bench::asked_as(kind);
            bench.answer(at(0), reply(at(0), Verdict::Vote, (T - began_ms) * 1_000));
            bench.bring(tick, Input::Wake);
            bench.answer(tick, reply(tick, Verdict::Ok, (T - began_ms) * 1_000));
            bench
        };
        let mut bench = granted(at(1_000));
        bench.bring(at(1_500), Input::Release(1, Manner::Explicit));
        bench.answer(at(1_500), reply(at(1_500), Verdict::Ok, 0));
        assert_eq!(bench.notes.iter().map(|(state, _)| *state).collect::<Vec<_>>(), noted, "{kind:?} {began_ms}");
        let mut bench = granted(at(1_000));
        bench.release(at(5_000), fence(3_500));
        assert_eq!(bench.notes.last().map(|(state, _)| *state), Some(Lost), "{kind:?} {began_ms}");
        assert!(bench.look.is_some(), "the history may have a hold that excludes it");
    }
}
