//! The key and the hold: how much longer the key lives than its holder believes, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::op::{Answer, LockOp, Op, Reply, Verb, Verdict};
use crate::protocol::waiting::tests::{at, ms, recipe};
use crate::protocol::{Acquisition, Command, Input, Manner, Recipe, Step, Tag};

const TTL: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(3);
const MIN_HOLD: Duration = Duration::from_secs(60);

/// A hold of one server, granted a millisecond after the origin, and what it asks of the server.
struct Bench {
    machine: Acquisition,
    sent: Vec<(Tag, Verb)>,
    lost: bool,
}

impl Bench {
    fn held(grace: Duration, min_hold: Duration) -> Self {
        let mut recipe: Recipe = recipe(1);
        (recipe.options.ttl, recipe.options.grace, recipe.options.min_hold) = (TTL, grace, min_hold);
        let machine = Acquisition::new(Arc::new(recipe), None, 1, now(at(0)));
        let mut bench = Self { machine, sent: Vec::new(), lost: false };
        bench.bring(at(0), Input::Start);
        bench.answer(at(1), Ok(Reply::new(Verdict::Vote, 0, 7)));
        bench
    }

    fn bring(&mut self, at: Tick, input: Input) {
        let mut out = Vec::new();
        self.machine.handle(now(at), input, &mut out);
        for command in out {
            match command {
                Command::Send { tag, request, .. } => {
                    let Op::Lock(LockOp { verb, .. }) = request.op else { panic!("{request:?}") };
                    self.sent.push((tag, verb));
                }
                Command::Lost(_) => self.lost = true,
                _ => (),
            }
        }
    }

    /// Answers the last request.
    fn answer(&mut self, at: Tick, answer: Answer) {
        let (tag, _) = *self.sent.last().as_ref().unwrap();
        self.bring(at, Input::Answer { server: 0, tag: *tag, answer });
    }

    fn last(&self) -> &Verb {
        &self.sent.last().unwrap().1
    }
}

fn now(tick: Tick) -> Now {
    Now { tick, wall_us: 0, servers_us: 0 }
}

fn a_key_outlives_its_hold_by_the_grace() {
    let mut bench = Bench::held(GRACE, Duration::ZERO);
    assert!(matches!(bench.last(), Verb::Acquire { ttl_ms: 13_000, .. }), "{:?}", bench.last());
    bench.bring(at(3_400), Input::Wake);
    assert!(matches!(bench.last(), Verb::Extend { ttl_ms: 13_000, .. }), "{:?}", bench.last());
    // Nothing answers it: the hold is lost by what its holder believes.
    bench.bring(at(9_000), Input::Wake);
    assert!(!bench.lost);
    bench.bring(at(9_999), Input::Wake);
    assert!(bench.lost);
}

#[test]
fn the_key_of_a_hold_that_max_hold_ends_before_its_ttl_lives_no_longer() {
    for (max_hold, ttl_ms) in [(None, 10_000), (Some(60_000), 10_000), (Some(500), 1_518)] {
        let mut recipe: Recipe = recipe(1);
        (recipe.options.ttl, recipe.options.max_hold) = (TTL, max_hold.map(ms));
        let (mut machine, mut out) = (Acquisition::new(Arc::new(recipe), None, 1, now(at(0))), Vec::new());
        machine.handle(now(at(0)), Input::Start, &mut out);
        let asked = out.iter().find_map(|command| match command {
            Command::Send { request, .. } => match request.op.verb() {
                Some(Verb::Acquire { ttl_ms, .. }) => Some(*ttl_ms),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(asked, Some(ttl_ms), "{max_hold:?}");
        // An answer that is late all the same takes nothing from the hold.
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
        machine.handle(now(at(900)), Input::Answer { server: 0, tag, answer: Ok(Reply::new(Verdict::Vote, 0, 7)) }, &mut out);
        assert_eq!(machine.valid_until(), if max_hold == Some(500) { at(1_400) } else { at(9_898) }, "{max_hold:?}");
    }
}

#[test]
fn a_grace_is_not_the_holders() {
    a_key_outlives_its_hold_by_the_grace();
}

#[test]
fn a_holder_that_believes_in_the_grace_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::GraceBelieved, a_key_outlives_its_hold_by_the_grace);
}

#[test]
fn a_release_keeps_the_lock_for_what_is_left_of_its_least_time() {
    for (released, kept) in [(2, 59_999), (20_001, 40_000), (60_000, 1), (60_001, 0)] {
        let mut bench = Bench::held(Duration::ZERO, MIN_HOLD);
        assert!(matches!(bench.last(), Verb::Acquire { ttl_ms: 60_000, .. }), "{:?}", bench.last());
        for second in (3..60).step_by(3).filter(|second| second * 1_000 < released) {
            bench.bring(at(second * 1_000 + 400), Input::Wake);
            assert!(matches!(bench.last(), Verb::Extend { ttl_ms: 10_000, .. }), "{:?}", bench.last());
            bench.answer(at(second * 1_000 + 401), Ok(Reply::new(Verdict::Ok, 0, 7)));
        }
        bench.bring(at(released), Input::Release(1, Manner::Explicit));
        let Verb::Release { kept_ms, .. } = bench.last() else { panic!("{:?}", bench.last()) };
        assert_eq!(*kept_ms, kept);
        // It is sent again: what is left is less by then.
        bench.bring(at(released).after(ms(2_500)), Input::Wake);
        let Verb::Release { kept_ms, .. } = bench.last() else { panic!("{:?}", bench.last()) };
        assert_eq!(*kept_ms, kept.saturating_sub(2_500));
    }
}

#[test]
fn what_was_never_granted_keeps_nothing() {
    let mut bench = Bench::held(Duration::ZERO, Duration::ZERO);
    let mut recipe: Recipe = recipe(1);
    recipe.options.min_hold = MIN_HOLD;
    bench.machine = Acquisition::new(Arc::new(recipe), None, 1, now(at(0)));
    bench.bring(at(0), Input::Start);
    bench.bring(at(1), Input::Cancel);
    assert!(matches!((bench.last(), bench.sent.last().unwrap().0.step), (Verb::Release { kept_ms: 0, .. }, Step::Release)));
}
