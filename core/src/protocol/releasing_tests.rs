//! A hold that is released, in virtual time: how often a server is asked.

use crate::op::{Answer, Failure, FailureKind, Reply, Verb, Verdict};
use std::sync::Arc;

use crate::clock::{Now, Tick};
use crate::event::EventKind;
use crate::mutant::{Mutant, assert_noticed};
use crate::protocol::removal::STRAGGLER;
use crate::protocol::waiting::tests::{at, gone, ms, recipe};
use crate::protocol::{Acquisition, Amount, Command, Input, Manner, Recipe, Step, Tag};

/// Lets a majority of three servers grant a lock at the origin, which nobody renews.
struct Bench {
    machine: Acquisition,
    /// The requests to release: the time and the server.
    asked: Vec<(Tick, usize)>,
    /// The number of heals.
    heals: usize,
    /// The message of each event at the end of a hold, and the error of each release.
    reported: Vec<String>,
}

impl Bench {
    fn held() -> Self {
        let mut recipe = recipe(3);
        recipe.options.renew = false;
        let machine = Acquisition::new(Arc::new(recipe), None, 1, Now { tick: at(0), wall_us: 0, servers_us: 0 });
        let mut bench = Self { machine, asked: Vec::new(), heals: 0, reported: Vec::new() };
        bench.bring(at(0), Input::Start);
        for server in [0, 1] {
            bench.answer(at(1), server, Step::Acquire, at(0), Ok(reply(Verdict::Vote)));
        }
        assert!(bench.machine.check(at(1)).is_ok(), "granted");
        bench
    }

    fn bring(&mut self, now: Tick, input: Input) {
        let mut out = Vec::new();
        self.machine.handle(Now { tick: now, wall_us: 0, servers_us: 0 }, input, &mut out);
        for command in out {
            match command {
                Command::Send { server, tag: Tag { step: Step::Release, .. }, .. } => self.asked.push((now, server)),
                Command::Send { tag: Tag { step: Step::Heal, .. }, .. } => self.heals += 1,
                Command::Emit(event) if matches!(event.kind, EventKind::Expired | EventKind::Overlapped) => {
                    self.reported.extend(event.message)
                }
                Command::Released(_, Err(error)) => self.reported.push(error.to_string()),
                _ => (),
            }
        }
    }

    fn answer(&mut self, now: Tick, server: usize, step: Step, sent: Tick, answer: Answer) {
        self.bring(now, Input::Answer { server, tag: Tag { round: 1, step, sent }, answer });
    }
}

fn reply(verdict: Verdict) -> Reply {
    Reply::new(verdict, 0, 7)
}

#[test]
fn a_hold_that_its_caller_did_not_get_is_not_kept_for_min_hold() {
    for (manner, expected) in [(Manner::Background, 59_995), (Manner::Unclaimed, 0)] {
        let mut recipe = recipe(1);
        recipe.options.min_hold = ms(60_000);
        let now = |tick| Now { tick, wall_us: 0, servers_us: 0 };
        let mut machine = Acquisition::new(Arc::new(recipe), None, 1, now(at(0)));
        let mut out = Vec::new();
        machine.handle(now(at(0)), Input::Start, &mut out);
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
        machine.handle(now(at(1)), Input::Answer { server: 0, tag, answer: Ok(reply(Verdict::Vote)) }, &mut out);
        out.clear();
        machine.handle(now(at(6)), Input::Release(0, manner), &mut out);
        let kept = out.iter().find_map(|command| match command {
            Command::Send { request, .. } => match request.op.verb() {
                Some(Verb::Release { kept_ms, .. }) => Some(*kept_ms),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(kept, Some(expected), "{manner:?}");
    }
}

/// The value that the first release compares, of a hold that was granted so, and released for a caller or for none.
fn compared(is_bare: bool, manner: Manner, change: impl FnOnce(&mut Recipe)) -> Option<String> {
    let mut recipe = recipe(1);
    change(&mut recipe);
    let now = |tick| Now { tick, wall_us: 0, servers_us: 0 };
    let mut machine = Acquisition::new(Arc::new(recipe), None, 1, now(at(0)));
    let mut out = Vec::new();
    machine.handle(now(at(0)), Input::Start, &mut out);
    let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
    let answer = Ok(Reply { is_bare, ..reply(Verdict::Vote) });
    machine.handle(now(at(1)), Input::Answer { server: 0, tag, answer }, &mut out);
    out.clear();
    machine.handle(now(at(6)), Input::Release(0, manner), &mut out);
    out.iter().find_map(|command| match command {
        Command::Send { request, .. } => {
            Some(request.value.as_deref().map(|value| value.replace(&**request.op.owner().unwrap(), "owner")))
        }
        _ => None,
    })?
}

fn only_what_a_caller_awaits_is_compared() {
    assert_eq!(compared(true, Manner::Explicit, |_| ()).as_deref(), Some("owner"));
    assert_eq!(compared(false, Manner::Explicit, |_| ()).as_deref(), Some("owner fence=7"));
    for manner in [Manner::Background, Manner::Unclaimed] {
        assert_eq!(compared(true, manner, |_| ()), None);
    }
    assert_eq!(compared(true, Manner::Explicit, |recipe| recipe.options.min_hold = ms(1)), None);
}

#[test]
fn a_release_compares_the_value_that_its_client_knows() {
    only_what_a_caller_awaits_is_compared();
    assert_noticed(Mutant::UnawaitedReleaseShort, only_what_a_caller_awaits_is_compared);
}

#[test]
fn a_server_whose_acquire_went_down_with_its_connection_is_asked_twice_also_after_a_loss() {
    for step in [Step::Acquire, Step::Heal] {
        // If the connection broke long ago, the server has read the request, or never will. The validity ends between the other two
        // times.
        for (broke, maybe_applied) in [(9_000, true), (9_850, true), (9_950, true), (9_950, false), (9_850, false)] {
            let broke = at(broke);
            let mut bench = Bench::held();
            if step == Step::Heal {
                bench.answer(at(2), 2, Step::Acquire, at(0), Ok(reply(Verdict::Vote)));
            }
            let lost = at(9_900);
            let failure = Failure { maybe_applied, ..Failure::unknown(FailureKind::Disconnected, "broke") };
            if broke < lost {
                bench.answer(broke, 2, step, at(0), Err(failure.clone()));
            }
            bench.bring(lost, Input::Wake);
            assert!(bench.machine.check(lost).is_err(), "lost");
            if broke > lost {
                bench.answer(broke, 2, step, at(0), Err(failure));
            }
            let left = broke.max(lost).after(ms(40));
            bench.bring(left, Input::Release(1, Manner::EndOfBody));
            for server in 0..3 {
                bench.answer(left, server, Step::Release, left, Ok(reply(gone())));
            }
            while bench.machine.wake_at() < Tick::NEVER {
                let now = bench.machine.wake_at();
                bench.bring(now, Input::Wake);
                bench.answer(now, 2, Step::Release, now, Ok(reply(gone())));
            }
            let times = bench.asked.iter().filter(|(_, server)| *server == 2).count();
            let unsure = maybe_applied && broke.after(STRAGGLER) > left;
            assert_eq!(times, 1 + usize::from(unsure), "{step:?} {broke:?} {maybe_applied}: {:?}", bench.asked);
        }
    }
}

fn a_heal_that_a_release_overtook_is_undone_behind_it() {
    // The end of the heal that was on its way to the third server when the release found nothing there.
    for (answer, asked_again) in [
        (Ok(reply(Verdict::Ok)), true),
        (Ok(reply(gone())), false),
        (Err(Failure::unknown(FailureKind::Disconnected, "broke")), true),
        (Err(Failure::not_applied(FailureKind::TooLate, "too late")), false),
    ] {
        let mut bench = Bench::held();
        bench.answer(at(2), 2, Step::Acquire, at(0), Ok(reply(Verdict::Vote)));
        for round in [2, 3] {
            let sent = at(u64::from(round));
            bench.bring(sent, Input::Extend(1, Amount::Own));
            for (server, verdict) in [(2, gone()), (0, Verdict::Ok), (1, Verdict::Ok)] {
                let tag = Tag { round, step: Step::Extend, sent };
                bench.bring(sent, Input::Answer { server, tag, answer: Ok(reply(verdict)) });
            }
        }
        assert_eq!(bench.heals, 1, "the second would be one more that a release may overtake");
        bench.bring(at(5), Input::Release(2, Manner::EndOfBody));
        for (server, verdict) in [(0, Verdict::Ok), (1, Verdict::Ok), (2, gone())] {
            bench.answer(at(6), server, Step::Release, at(5), Ok(reply(verdict)));
        }
        assert!(!bench.machine.is_finished(), "the heal has no answer so far");
        bench.answer(at(7), 2, Step::Heal, at(2), answer.clone());
        bench.answer(at(8), 2, Step::Release, at(7), Ok(reply(Verdict::Ok)));
        while bench.machine.wake_at() < Tick::NEVER {
            let now = bench.machine.wake_at();
            bench.bring(now, Input::Wake);
            bench.answer(now, 2, Step::Release, now, Ok(reply(Verdict::Ok)));
        }
        let times = bench.asked.iter().filter(|(_, server)| *server == 2).count();
        assert_eq!((times, bench.machine.is_finished()), (1 + usize::from(asked_again), true), "{answer:?}: {:?}", bench.asked);
    }
}

#[test]
fn a_release_that_no_majority_answers_says_that_only_the_ttl_has_ended_the_hold() {
    for (answering, found, expected) in [
        (0, gone(), "a majority of the servers could not be asked (s0: no route; s1: no route; s2: no route)"),
        (1, gone(), "a majority of the servers could not be asked (s1: no route; s2: no route)"),
        (2, gone(), "its key had gone, and no other hold is seen to have come between"),
    ] {
        let mut bench = Bench::held();
        let mut now = at(5);
        bench.bring(now, Input::Release(2, Manner::Explicit));
        while now < Tick::NEVER {
            for server in 0..3 {
                let unanswered = Err(Failure::not_applied(FailureKind::Refused, "no route"));
                let answer = if server < answering { Ok(reply(found.clone())) } else { unanswered };
                bench.answer(now, server, Step::Release, now, answer);
            }
            now = bench.machine.wake_at();
            if now < Tick::NEVER {
                bench.bring(now, Input::Wake);
            }
        }
        let [error @ .., event] = &*bench.reported else { panic!("nothing was reported") };
        assert!(event.starts_with(expected), "{event}");
        assert_eq!(event.ends_with("; by its ttl the key has expired"), answering < 2, "{event}");
        for error in error {
            assert!(error.contains("the release continues in the background") && !error.contains("trying again"), "{error}");
        }
        assert_eq!(error.len(), usize::from(answering < 2));
    }
}

#[test]
fn what_a_heal_writes_behind_a_release_is_deleted() {
    a_heal_that_a_release_overtook_is_undone_behind_it();
}

#[test]
fn a_heal_that_is_not_kept_in_mind_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::HealForgotten, a_heal_that_a_release_overtook_is_undone_behind_it);
}

#[test]
fn the_end_of_a_body_after_a_loss_waits_a_quarter_of_a_response_timeout_for_who_came_next() {
    let mut bench = Bench::held();
    bench.bring(at(9_900), Input::Wake);
    bench.bring(at(9_950), Input::Release(1, Manner::EndOfBody));
    bench.bring(at(10_199), Input::Wake);
    assert!(bench.reported.is_empty(), "{:?}", bench.reported);
    bench.bring(at(10_200), Input::Wake);
    assert!(bench.reported.len() == 1 && bench.reported[0].contains("was lost"), "{:?}", bench.reported);
}
