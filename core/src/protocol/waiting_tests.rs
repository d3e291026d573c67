//! A waiter in virtual time: when it tries again, and when it doesn't.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::Now;
use crate::error::Remaining;
use crate::name::Keys;
use crate::options::{LockOptions, Wait};
use crate::owner::Signature;
use crate::protocol::{Acquisition, Command, Input, Step, Tag};
use crate::server::{Op, Reply, Verdict};
use crate::wait::{Departure, Lines};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn at(n: u64) -> Tick {
    Tick::from_micros(n * 1_000)
}

fn recipe(servers: usize) -> Recipe {
    Recipe {
        keys: Arc::new(Keys::new("", "l", servers).unwrap()),
        servers: (0..servers).map(|server| format!("s{server}")).collect(),
        fleet: None,
        options: LockOptions { ttl: ms(10_000), ..LockOptions::default() },
        introduce: false,
        one_shot: false,
        adopt: None,
        signature: Arc::new(Signature::new(None, "h", 1)),
        response_timeout: ms(1_000),
        unavailable_after: ms(5_000),
    }
}

/// A waiter in a line of its own, and what it waits with.
struct Bench {
    recipe: Recipe,
    lines: Lines,
    waiting: Waiting,
    rng: fastrand::Rng,
}

impl Bench {
    fn new(servers: usize, turn: Turn) -> Self {
        let recipe = recipe(servers);
        let mut lines = Lines::new("c", "", servers);
        let seat = Seat { turn, ..lines.join("l", 1, false) };
        Self { waiting: Waiting::new(&recipe, Some(seat)), recipe, lines, rng: fastrand::Rng::with_seed(7) }
    }

    /// A round found the lock held for so long, and `rank` before us: when to try again.
    fn busy(&mut self, now: Tick, remaining: Remaining, rank: Option<u64>) -> Tick {
        let holder = Holder { owner: "x".to_owned(), remaining };
        self.waiting.after_busy(&self.recipe, Found { holder: &holder, by_majority: true, rank }, now, &mut self.rng)
    }

    fn long_busy(&mut self, now: Tick) -> Tick {
        self.busy(now, Remaining::For(ms(60_000)), Some(0))
    }

    fn hint(&mut self, server: usize, hint: Hint, now: Tick) -> Tick {
        self.waiting.hint(&self.recipe, (server, hint), now, &mut self.rng)
    }
}

/// Whether `tick` is between so many milliseconds and so many after `from`.
fn is_within(tick: Tick, from: Tick, low: u64, high: u64) -> bool {
    tick >= from.after(ms(low)) && tick <= from.after(ms(high))
}

#[test]
fn whoever_speaks_for_its_line_looks_within_a_second_and_when_the_holder_expires() {
    use Remaining::{For, Forever};
    for (remaining, rank, low, high) in [
        (For(ms(60_000)), 0, 750, 1_000),
        (Forever, 0, 750, 1_000),
        (For(ms(100)), 0, 101, 102),
        (For(ms(100)), 3, 116, 117),
        (For(ms(100)), 1_000, 301, 302),
        (For(ms(0)), 0, 1, 2),
    ] {
        let mut bench = Bench::new(1, Turn::Front);
        let again = bench.busy(at(5), remaining, Some(rank));
        assert!(is_within(again, at(5), low, high), "{remaining:?} {rank}: {again:?}");
    }
}

#[test]
fn who_is_told_nothing_polls() {
    for (rank, hears) in [(None, true), (Some(0), false)] {
        let mut bench = Bench::new(1, Turn::Front);
        bench.lines.hearing().set(0, hears);
        for low in [8, 12, 18] {
            let again = bench.busy(at(0), Remaining::For(ms(60_000)), rank);
            assert!(is_within(again, at(0), low, 2 * low), "{rank:?} {hears}: {again:?}");
        }
        let last = (0..20).map(|_| bench.busy(at(0), Remaining::Forever, rank)).last();
        assert!(last.is_some_and(|last| is_within(last, at(0), 75, 150)), "never slower than a claim");
    }
}

#[test]
fn a_parked_waiter_never_tries_by_itself() {
    for turn in [Turn::Once, Turn::Parked] {
        let mut bench = Bench::new(1, turn);
        assert_eq!(bench.busy(at(0), Remaining::For(ms(5)), Some(0)), Tick::NEVER, "{turn:?}");
        assert_eq!(bench.busy(at(9), Remaining::For(ms(5)), None), Tick::NEVER, "{turn:?}, nor when nobody tells");
        assert!(!bench.waiting.hears(0), "{turn:?}: whoever speaks for the line looks");
    }
    let first_try = |turn| Bench::new(1, turn).waiting.first_try(at(3), at(99));
    assert_eq!([Turn::Front, Turn::Once, Turn::Parked].map(first_try), [at(3), at(3), at(99)]);
}

#[test]
fn a_hint_makes_a_parked_waiter_try_once() {
    let mut bench = Bench::new(1, Turn::Parked);
    for hint in [Hint::Free, Hint::Claim] {
        assert_eq!(bench.hint(0, hint, at(10)), at(10));
        assert_eq!(bench.waiting.woken, Some(at(10)));
        bench.waiting.round_begins();
        assert_eq!(bench.long_busy(at(11)), Tick::NEVER);
        assert_eq!(bench.waiting.woken, None, "what it was told for is over");
    }
}

#[test]
fn the_second_looks_after_the_first_when_its_time_is_over() {
    for turn in [Turn::Front, Turn::Parked] {
        let mut bench = Bench::new(1, turn);
        let look = bench.hint(0, Hint::Next(ms(200)), at(0));
        assert!(is_within(look, at(0), 201, 202), "{look:?}");
        assert_eq!(bench.waiting.woken, None, "it wasn't its turn");
    }
}

#[test]
fn a_hint_that_comes_while_a_round_is_under_way_is_not_lost() {
    for turn in [Turn::Front, Turn::Once, Turn::Parked] {
        let mut bench = Bench::new(1, turn);
        bench.waiting.round_begins();
        bench.hint(0, Hint::Free, at(1));
        assert_eq!(bench.long_busy(at(2)), at(2), "{turn:?}: at once");
        bench.waiting.round_begins();
        assert!(bench.long_busy(at(3)) > at(700), "{turn:?}: but once");

        let look = bench.hint(0, Hint::Next(ms(200)), at(3));
        assert_eq!(bench.long_busy(at(4)), look, "{turn:?}");
    }
}

#[test]
fn what_was_said_before_a_round_is_used_up_by_it() {
    let mut bench = Bench::new(1, Turn::Parked);
    bench.hint(0, Hint::Next(ms(200)), at(0));
    bench.hint(0, Hint::Free, at(0));
    bench.waiting.round_begins();
    assert_eq!(bench.long_busy(at(1)), Tick::NEVER);
}

#[test]
fn on_a_quorum_a_majority_calls_at_once_and_a_minority_after_a_pause() {
    let mut bench = Bench::new(3, Turn::Parked);
    let first = bench.hint(2, Hint::Free, at(0));
    assert!(first > at(0) && first <= at(5), "{first:?}");
    assert!(bench.hint(2, Hint::Free, at(1)) > at(1), "the same server, once more");
    assert_eq!(bench.hint(0, Hint::Free, at(2)), at(2), "two of three");
    assert_eq!(bench.waiting.woken, Some(at(0)), "counted from the first word of it");
}

#[test]
fn on_a_quorum_a_minority_that_speaks_during_a_round_is_heard_after_it() {
    let mut bench = Bench::new(3, Turn::Parked);
    bench.waiting.round_begins();
    let soon = bench.hint(1, Hint::Free, at(7));
    assert_eq!(bench.long_busy(at(8)), soon);
    bench.waiting.round_begins();
    bench.hint(1, Hint::Free, at(9));
    bench.hint(2, Hint::Free, at(9));
    assert_eq!(bench.long_busy(at(10)), at(10));
}

#[test]
fn a_vote_that_was_split_is_tried_again_soon_whoever_speaks() {
    for turn in [Turn::Front, Turn::Once, Turn::Parked] {
        let mut bench = Bench::new(3, turn);
        let holder = Holder { owner: "x".to_owned(), remaining: Remaining::For(ms(9_000)) };
        let found = Found { holder: &holder, by_majority: false, rank: Some(0) };
        let again = bench.waiting.after_busy(&bench.recipe, found, at(0), &mut bench.rng);
        assert!(is_within(again, at(0), 10, 20), "{turn:?}: {again:?}");
    }
}

#[test]
fn a_server_that_begins_or_ceases_to_tell_makes_the_front_look() {
    let mut bench = Bench::new(1, Turn::Front);
    bench.waiting.round_begins();
    assert!(bench.waiting.hears(0));
    assert_eq!(bench.long_busy(at(1)), at(1), "also after the round under way, which may have been too early");
}

#[test]
fn who_speaks_for_the_line_does_so_until_it_leaves() {
    for later in [Turn::Once, Turn::Parked, Turn::Front] {
        let mut bench = Bench::new(1, Turn::Front);
        bench.waiting.take_turn(later);
        assert!(bench.long_busy(at(0)) <= at(1_000), "{later:?}");
    }
    for (turn, looks) in [(Turn::Front, true), (Turn::Once, false), (Turn::Parked, false)] {
        let mut bench = Bench::new(1, Turn::Parked);
        bench.waiting.take_turn(turn);
        assert_eq!(bench.long_busy(at(0)) <= at(1_000), looks, "{turn:?}");
    }
}

#[test]
fn the_place_is_named_where_each_server_put_it() {
    let bench = Bench::new(3, Turn::Front);
    assert_eq!(bench.waiting.queued(1, &Queued::At { rank: 4, arrival: 17 }), Some(4));
    for other in [Queued::Nothing, Queued::Untold("why".to_owned()), Queued::Waiters { count: 1, first: vec![] }] {
        assert_eq!(bench.waiting.queued(2, &other), None);
    }
    let arrivals = (0..3).map(|server| bench.waiting.place(server).map(|place| place.arrival)).collect::<Vec<_>>();
    assert_eq!(arrivals, [Some(0), Some(17), Some(0)]);
    let alone = Waiting::new(&bench.recipe, None);
    assert!(alone.place(0).is_none() && alone.queued(0, &Queued::At { rank: 0, arrival: 1 }).is_none());
}

/// A whole acquire, whose servers answer what a test says.
struct Acquire {
    machine: Acquisition,
    round: u32,
    now: Tick,
}

impl Acquire {
    fn new(seat: Option<Seat>, options: LockOptions) -> Self {
        let recipe = Recipe { options, ..recipe(1) };
        let now = Now { tick: at(0), wall_us: 0 };
        Self { machine: Acquisition::new(Arc::new(recipe), seat, 1, now), round: 0, now: at(0) }
    }

    fn bring(&mut self, input: Input) -> Vec<Command> {
        let mut out = Vec::new();
        self.machine.handle(Now { tick: self.now, wall_us: 0 }, input, &mut out);
        let acquires =
            |command: &&Command| matches!(command, Command::Send { request, .. } if matches!(request.op, Op::Acquire { .. }));
        self.round += out.iter().filter(acquires).count() as u32;
        out
    }

    fn answer(&mut self, verdict: Verdict, queued: Queued) -> Vec<Command> {
        let tag = Tag { round: self.round, step: Step::Acquire, sent: self.now };
        let reply = Reply::new(verdict, 0, 7, Some("x".into()), Remaining::For(ms(60_000)));
        self.bring(Input::Answer { server: 0, tag, answer: Ok(Reply { queued, ..reply }) })
    }

    fn held(&mut self) -> Vec<Command> {
        self.answer(Verdict::Held, Queued::At { rank: 2, arrival: 9 })
    }
}

fn departure(commands: &[Command]) -> Option<Departure> {
    commands.iter().find_map(|command| if let Command::Quit(departure) = command { Some(*departure) } else { None })
}

/// Who is taken off the server, and who is asked for there.
fn leaving(commands: &[Command]) -> Vec<String> {
    let leaves = |command: &Command| match command {
        Command::Send { request, .. } => match &request.op {
            Op::Release { leave, .. } => leave.as_ref().map(ToString::to_string),
            _ => None,
        },
        _ => None,
    };
    commands.iter().filter_map(leaves).collect()
}

fn seats(count: u64, fair: bool) -> (Lines, Vec<Seat>) {
    let mut lines = Lines::new("c", "", 1);
    let seats = (1..=count).map(|waiter| lines.join("l", waiter, fair)).collect();
    (lines, seats)
}

#[test]
fn a_parked_acquire_sends_nothing_until_its_wait_is_over_and_then_fails_with_its_rank() {
    let (_lines, seats) = seats(2, false);
    let mut acquire = Acquire::new(Some(seats[1].clone()), LockOptions { wait: Wait::For(ms(300)), ..LockOptions::default() });
    assert_eq!(acquire.bring(Input::Start).len(), 0);
    assert_eq!(acquire.machine.wake_at(), at(300));
    acquire.now = at(300);
    acquire.bring(Input::Wake);
    assert_eq!(acquire.round, 1, "one last try");
    let ended = acquire.held();
    let error = ended.iter().find_map(|command| if let Command::Acquired(Err(error)) = command { Some(error) } else { None });
    assert_eq!(error.and_then(crate::Error::rank), Some(2));
    assert_eq!((departure(&ended), leaving(&ended)), (Some(Departure::GaveUp), vec![]), "another shares the place");
}

#[test]
fn an_acquire_that_gives_up_takes_its_place_off_the_servers() {
    for fair in [false, true] {
        let (_lines, seats) = seats(1, fair);
        let entry = seats[0].slot.entry().to_string();
        let mut acquire = Acquire::new(Some(seats[0].clone()), LockOptions { fair, ..LockOptions::default() });
        acquire.bring(Input::Start);
        acquire.held();
        let ended = acquire.bring(Input::Cancel);
        assert_eq!((departure(&ended), leaving(&ended)), (Some(Departure::GaveUp), vec![entry]), "{fair}");
    }
}

#[test]
fn an_acquire_that_nobody_lined_up_has_nothing_to_take_off() {
    let (_lines, seats) = seats(1, false);
    let mut acquire = Acquire::new(Some(seats[0].clone()), LockOptions::default());
    acquire.bring(Input::Start);
    acquire.answer(Verdict::Held, Queued::Nothing);
    let ended = acquire.bring(Input::Cancel);
    assert_eq!((departure(&ended), leaving(&ended)), (Some(Departure::GaveUp), vec![]));
}

#[test]
fn a_grant_tells_how_long_the_line_has_to_wait_and_whether_it_stands_in_the_queue() {
    for (behind, stays) in [(0, false), (1, true)] {
        let (_lines, seats) = seats(1 + behind, false);
        let mut acquire = Acquire::new(Some(seats[0].clone()), LockOptions::default());
        acquire.bring(Input::Start);
        let ended = acquire.answer(Verdict::Vote, Queued::Nothing);
        let Some(Departure::Granted { until, stays: told }) = departure(&ended) else { panic!("it was granted") };
        assert_eq!((until, told), (acquire.machine.valid_until(), stays));
    }
}

#[test]
fn the_next_in_line_looks_within_a_second_however_long_the_lock_was_granted_for() {
    let (_lines, seats) = seats(2, false);
    let mut acquire = Acquire::new(Some(seats[1].clone()), LockOptions::default());
    acquire.bring(Input::Start);
    acquire.bring(Input::Turn(Turn::Front, Some(at(60_000))));
    assert!(acquire.machine.wake_at() <= at(1_000), "{:?}", acquire.machine.wake_at());
    acquire.now = at(5);
    acquire.bring(Input::Turn(Turn::Front, None));
    assert_eq!(acquire.round, 1, "at once, if it has to line up");
}

#[test]
fn events_tell_once_that_it_waits_in_line_and_that_it_was_told() {
    let (_lines, seats) = seats(1, false);
    let mut acquire = Acquire::new(Some(seats[0].clone()), LockOptions::default());
    let mut kinds = Vec::new();
    let mut note = |commands: Vec<Command>| {
        let emitted = |command| if let Command::Emit(event) = command { Some(event) } else { None };
        kinds.extend(commands.into_iter().filter_map(emitted).map(|event| (event.kind.as_str(), event.rank)));
    };
    note(acquire.bring(Input::Start));
    note(acquire.held());
    acquire.now = at(990);
    note(acquire.bring(Input::Wake));
    acquire.now = at(1_001);
    note(acquire.bring(Input::Wake));
    note(acquire.held());
    note(acquire.bring(Input::Hint(0, Hint::Free)));
    note(acquire.answer(Verdict::Vote, Queued::Nothing));
    let expected = [
        ("attempt", None),
        ("busy", None),
        ("queued", Some(2)),
        ("attempt", None),
        ("busy", None),
        ("woken", None),
        ("attempt", None),
        ("acquired", None),
        ("handed_over", None),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn who_gives_up_takes_off_the_place_that_another_of_its_process_had_lined_up() {
    let (mut lines, seats) = seats(2, false);
    let mut first = Acquire::new(Some(seats[0].clone()), LockOptions::default());
    let mut second = Acquire::new(Some(seats[1].clone()), LockOptions::default());
    first.bring(Input::Start);
    second.bring(Input::Start);
    first.answer(Verdict::Vote, Queued::At { rank: 0, arrival: 9 });
    lines.quit("l", 1, Departure::Granted { until: at(9_998), stays: true });
    let ended = second.bring(Input::Cancel);
    assert_eq!(leaving(&ended), [seats[1].slot.entry().to_string()]);
}

#[test]
fn a_server_that_lines_the_winner_up_after_its_grant_is_told_that_it_left() {
    for (queued, behind, leaves) in [
        (Queued::At { rank: 0, arrival: 9 }, false, true),
        (Queued::At { rank: 0, arrival: 9 }, true, false),
        (Queued::Nothing, false, false),
    ] {
        let mut lines = Lines::new("c", "", 3);
        let seat = lines.join("l", 1, false);
        let entry = seat.slot.entry().to_string();
        let recipe = Arc::new(recipe(3));
        let mut machine = Acquisition::new(recipe, Some(seat), 1, Now { tick: at(0), wall_us: 0 });
        let bring = |machine: &mut Acquisition, input| {
            let mut out = Vec::new();
            machine.handle(Now { tick: at(1), wall_us: 0 }, input, &mut out);
            out
        };
        bring(&mut machine, Input::Start);
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(1) };
        let vote = || Ok(Reply::new(Verdict::Vote, 0, 7, None, Remaining::For(ms(10_000))));
        bring(&mut machine, Input::Answer { server: 0, tag, answer: vote() });
        let granted = bring(&mut machine, Input::Answer { server: 1, tag, answer: vote() });
        assert!(departure(&granted).is_some());
        if behind {
            lines.join("l", 2, false);
        }
        lines.quit("l", 1, Departure::Granted { until: at(9_998), stays: false });
        let held = Reply::new(Verdict::Held, 0, 7, Some("x".into()), Remaining::For(ms(60_000)));
        let late = bring(&mut machine, Input::Answer { server: 2, tag, answer: Ok(Reply { queued, ..held }) });
        assert_eq!(leaving(&late), if leaves { vec![entry] } else { vec![] });
    }
}
