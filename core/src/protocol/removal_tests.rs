//! The removal of values from one server, in virtual time.

use super::*;
use crate::error::Remaining;
use crate::op::{LockOp, Op, Reply, Verb};
use crate::protocol::waiting::tests::{gone, recipe};

const SENT: Tick = Tick::from_micros(1_000);

fn answer_with(verdict: Verdict) -> Answer {
    Ok(Reply::new(verdict, 0, 7))
}

/// A release that overtook the answer to its own acquire.
fn left_early(recipe: &Recipe, out: &mut Vec<Command>) -> Removal {
    let now = SENT;
    let mut removal = Removal::begin(
        recipe,
        Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None },
        now,
        None,
        now,
        |_| Concern::Ask,
        out,
    );
    removal.await_writes(recipe, |_| true, now);
    removal.late_write(recipe, 0, now, &answer_with(Verdict::Vote), out);
    removal
}

#[test]
fn a_vote_that_a_release_overtook_costs_no_second_release() {
    let (recipe, mut out) = (recipe(1), Vec::new());
    let mut removal = left_early(&recipe, &mut out);
    removal.answer((0, SENT), Tick::from_micros(2_000), &answer_with(Verdict::Ok));
    assert!(removal.is_over());
    assert_eq!(out.len(), 1);
}

#[test]
fn a_key_that_another_client_took_away_is_not_released_because_its_vote_was_read_late() {
    let (recipe, mut out) = (recipe(1), Vec::new());
    let mut removal = left_early(&recipe, &mut out);
    let now = Tick::from_micros(2_000);
    removal.answer((0, SENT), now, &answer_with(gone()));
    removal.wake(&recipe, now, &mut out);
    removal.answer((0, now), now, &answer_with(gone()));
    assert_eq!(removal.outcome(0, |_| false).map(|release| release.outcome), Some(Outcome::Expired));
}

#[test]
fn a_rival_is_who_has_the_lock_and_neither_a_waiter_nor_the_type_of_the_key() {
    let no = |found: &str| Verdict::No { holder: Some(found.to_owned()), remaining: Remaining::Gone };
    for (found, outcome, next_owner) in [
        (no("claim f:c:1 host=h"), Outcome::Expired, None),
        (no("them"), Outcome::Taken, Some("them")),
        (no("kept them"), Outcome::Taken, Some("kept them")),
        (no("kept me"), Outcome::Released, None),
        (Verdict::Conflict { found: "list".into() }, Outcome::Expired, None),
    ] {
        let (recipe, mut out) = (recipe(1), Vec::new());
        let value = Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None };
        let mut removal = Removal::begin(&recipe, value, SENT, None, SENT, |_| Concern::Ask, &mut out);
        removal.answer((0, SENT), SENT, &answer_with(found));
        let release = removal.outcome(0, |_| false).unwrap();
        assert_eq!((release.outcome, release.next_owner.as_deref()), (outcome, next_owner));
    }
}

#[test]
fn a_release_that_came_before_its_acquire_is_sent_again() {
    let (recipe, mut out) = (recipe(1), Vec::new());
    let mut removal = left_early(&recipe, &mut out);
    let now = Tick::from_micros(2_000);
    removal.answer((0, SENT), now, &answer_with(gone()));
    assert_eq!((removal.is_over(), removal.wake_at()), (false, Some(now)));
    removal.wake(&recipe, now, &mut out);
    removal.answer((0, SENT), now, &answer_with(Verdict::Ok));
    assert!(removal.is_over());
    assert_eq!((out.len(), removal.outcome(0, |_| false).map(|release| release.outcome)), (2, Some(Outcome::Released)));
}

#[test]
fn a_vote_whose_answer_nobody_reads_is_removed_all_the_same() {
    // The last request: a close takes the write back on its own connection.
    for (kind, unsure) in [(FailureKind::Disconnected, true), (FailureKind::Closed, false)] {
        vote_whose_answer_nobody_reads_is_removed(kind, unsure);
    }
}

fn vote_whose_answer_nobody_reads_is_removed(kind: FailureKind, unsure: bool) {
    let (recipe, mut out) = (recipe(1), Vec::new());
    let now = SENT;
    let value = Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None };
    let mut removal = Removal::begin(&recipe, value, now, None, now, |_| Concern::Ask, &mut out);
    removal.await_writes(&recipe, |_| true, now);
    removal.answer((0, SENT), now, &answer_with(gone()));
    let then = removal.wake_at().unwrap();
    assert_eq!(then, SENT.after(Duration::from_millis(2_500)));
    removal.wake(&recipe, then, &mut out);
    assert_eq!(out.len(), 2);
    removal.answer((0, then), then, &answer_with(Verdict::Ok));
    assert_eq!((removal.wake_at(), removal.is_over()), (None, false), "it only waits for the answer to the acquire");
    removal.late_write(&recipe, 0, then, &Err(Failure::unknown(kind, "it ended")), &mut out);
    assert_eq!((removal.wake_at().is_some(), !removal.is_over()), (unsure, unsure), "it may yet be read from its connection");
}

fn what_a_silent_socket_may_still_carry_is_undone_while_it_is_open_and_once_more() {
    let (recipe, mut out) = (recipe(3), Vec::new());
    let value = Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None };
    let mut removal = Removal::begin(&recipe, value, SENT, None, SENT, |_| Concern::Ask, &mut out);
    removal.await_writes(&recipe, |server| server == 2, SENT);
    (0..3).for_each(|server| removal.answer((server, SENT), SENT, &answer_with(gone())));
    // The removal was answered on another connection than the one that has the acquire.
    out.clear();
    let now = SENT.after(Duration::from_millis(200));
    removal.late_write(&recipe, 2, now, &Err(Failure::unknown(FailureKind::Timeout, "late")), &mut out);
    for at in [now, now.after(STRAGGLER)] {
        removal.wake(&recipe, at, &mut out);
        let [Command::Send { server: 2, tag: Tag { sent, .. }, request }] = &out[..] else { panic!("{out:?}") };
        assert!(matches!(&request.op, Op::Lock(LockOp { verb: Verb::Release { .. }, .. })), "{request:?}");
        assert_eq!(*sent, at);
        out.clear();
        removal.answer((2, at), at, &answer_with(gone()));
    }
    assert!(removal.is_over());
}

fn a_heal_behind_one_that_the_release_undid_is_undone_too() {
    let (recipe, mut out) = (recipe(1), Vec::new());
    let value = Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None };
    let mut removal = Removal::begin(&recipe, value, SENT, None, SENT, |_| Concern::Ask, &mut out);
    removal.await_writes(&recipe, |_| true, SENT);
    removal.late_write(&recipe, 0, SENT, &answer_with(Verdict::Ok), &mut out);
    removal.answer((0, SENT), SENT, &answer_with(Verdict::Ok));
    assert!(!removal.is_over(), "the server may have done the release between the two");
    let now = removal.wake_at().unwrap();
    removal.wake(&recipe, now, &mut out);
    removal.answer((0, now), now, &answer_with(Verdict::Ok));
    assert!(removal.is_over());
    assert_eq!((out.len(), removal.outcome(0, |_| false).map(|release| release.outcome)), (2, Some(Outcome::Released)));
}

#[test]
fn a_second_heal_is_undone() {
    use crate::mutant::{Mutant, assert_noticed};
    a_heal_behind_one_that_the_release_undid_is_undone_too();
    assert_noticed(Mutant::SecondHealKept, a_heal_behind_one_that_the_release_undid_is_undone_too);
}

#[test]
fn what_a_silent_socket_may_still_carry_is_undone() {
    use crate::mutant::{Mutant, assert_noticed};
    let table = what_a_silent_socket_may_still_carry_is_undone_while_it_is_open_and_once_more;
    table();
    assert_noticed(Mutant::UndoneOnceSilent, table);
}

fn a_place_that_an_acquire_may_have_taken_late_is_left_however_short_the_ttl() {
    // The waiter leaves with the removal, or while it continues. In between the acquire ended without an answer.
    for leaves_at_once in [true, false] {
        let (mut recipe, mut out) = (recipe(1), Vec::new());
        recipe.options.ttl = Duration::from_millis(100);
        let entry: Arc<str> = "b:c:1 host=h".into();
        let value = Value {
            round: 1,
            owner: "me".into(),
            leaves: leaves_at_once.then(|| Arc::clone(&entry)),
            ends: None,
            keeps_until: Tick::default(),
            shown: None,
        };
        let mut removal = Removal::begin(&recipe, value, SENT, None, SENT, |_| Concern::Ask, &mut out);
        removal.await_writes(&recipe, |_| true, SENT);
        removal.answer((0, SENT), SENT, &answer_with(gone()));
        if !leaves_at_once {
            removal.take_along(&entry, SENT);
        }
        let now = SENT.after(Duration::from_millis(1));
        removal.late_write(&recipe, 0, now, &Err(Failure::unknown(FailureKind::Timeout, "late")), &mut out);
        out.clear();
        let then = removal.wake_at().unwrap();
        removal.wake(&recipe, then, &mut out);
        let [Command::Send { request, .. }] = &out[..] else { panic!("{leaves_at_once}: {out:?}") };
        assert!(
            matches!(&request.op, Op::Lock(LockOp { verb: Verb::Release { leave: Some(leave), .. }, .. }) if *leave == entry),
            "{request:?}"
        );
        assert_eq!(then, now.after(STRAGGLER), "{leaves_at_once}");
        removal.answer((0, then), then, &answer_with(gone()));
        assert!(removal.is_over());
    }
}

#[test]
fn a_place_is_left_also_after_the_key_would_have_expired() {
    a_place_that_an_acquire_may_have_taken_late_is_left_however_short_the_ttl();
}

fn a_place_of_a_holder_is_left_after_the_key_has_expired_and_delays_no_outcome() {
    let (mut recipe, mut out) = (recipe(3), Vec::new());
    recipe.options.ttl = Duration::from_millis(100);
    let (entry, expires): (Arc<str>, _) = ("b:c:1 host=h".into(), SENT.after(recipe.options.ttl));
    let value = Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None };
    let mut removal = Removal::begin(&recipe, value, SENT, Some(expires), expires, |_| Concern::Ask, &mut out);
    removal.await_writes(&recipe, |server| server == 2, SENT);
    // One server has deleted the key, one is silent. The third has no answer to the acquire, and may read it late.
    removal.answer((0, SENT), SENT, &answer_with(Verdict::Ok));
    removal.answer((2, SENT), SENT, &answer_with(gone()));
    let received = SENT.after(Duration::from_millis(1));
    removal.late_write(&recipe, 2, received, &Err(Failure::unknown(FailureKind::Timeout, "late")), &mut out);
    let expires = received.after(recipe.options.ttl);
    removal.take_along(&entry, received.after(Duration::from_millis(1)));
    out.clear();
    assert_eq!((removal.outcome(0, |_| false), removal.wake_at()), (None, Some(expires)));
    removal.wake(&recipe, expires, &mut out);
    assert_eq!((removal.outcome(0, |_| false).map(|release| release.outcome), out.len()), (Some(Outcome::Expired), 0));
    assert_eq!((removal.wake_at(), removal.is_over()), (Some(received.after(STRAGGLER)), false));
    removal.wake(&recipe, received.after(STRAGGLER), &mut out);
    let [Command::Send { server: 2, request, .. }] = &out[..] else { panic!("{out:?}") };
    assert!(matches!(&request.op, Op::Lock(LockOp { by: left, verb: Verb::Leave, .. }) if *left == entry), "{request:?}");
    assert!(removal.is_over());
}

#[test]
fn a_holders_place_is_left_also_after_its_key_has_expired() {
    a_place_of_a_holder_is_left_after_the_key_has_expired_and_delays_no_outcome();
}

#[test]
fn a_key_that_is_gone_was_anothers_where_its_fence_is_above_ours() {
    // Two of three servers have answered that the key is gone. `later` is the number of servers that have voted for others since.
    for (later, third_is_asked, expected) in
        [(0, true, Some(Outcome::Expired)), (1, true, None), (1, false, Some(Outcome::Expired)), (2, true, Some(Outcome::Taken))]
    {
        let (recipe, mut out) = (recipe(3), Vec::new());
        let value = Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None };
        let mut removal = Removal::begin(&recipe, value, SENT, None, SENT, |_| Concern::Ask, &mut out);
        (0..2).for_each(|server| removal.answer((server, SENT), SENT, &answer_with(gone())));
        if !third_is_asked {
            removal.answer((2, SENT), SENT, &Err(Failure::unknown(FailureKind::Timeout, "late")));
        }
        let outcome = removal.outcome(later, |count| count >= 2).map(|release| release.outcome);
        assert_eq!(outcome, expected, "{later} {third_is_asked}");
    }
}

#[test]
fn a_release_that_finds_a_rival_waits_for_the_answer_that_proves_its_fence() {
    let them = Verdict::No { holder: Some("them".to_owned()), remaining: Remaining::Gone };
    // One of three servers has answered that the next owner has the key, and one that the key is gone.
    for (later, third_is_asked, waits) in [(0, true, false), (1, true, true), (1, false, false), (2, true, false)] {
        let (recipe, mut out) = (recipe(3), Vec::new());
        let value = Value { round: 1, owner: "me".into(), leaves: None, ends: None, keeps_until: Tick::default(), shown: None };
        let mut removal = Removal::begin(&recipe, value, SENT, None, SENT, |_| Concern::Ask, &mut out);
        removal.answer((0, SENT), SENT, &answer_with(them.clone()));
        removal.answer((1, SENT), SENT, &answer_with(gone()));
        if !third_is_asked {
            removal.answer((2, SENT), SENT, &Err(Failure::unknown(FailureKind::Timeout, "late")));
        }
        let found = removal.outcome(later, |count| count >= 2).map(|release| (release.outcome, release.next_owner));
        let expected = (!waits).then(|| (Outcome::Taken, Some("them".to_owned())));
        assert_eq!(found, expected, "{later} {third_is_asked}");
    }
}

#[test]
fn a_place_that_is_left_to_expire_with_the_key_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    let table = a_place_that_an_acquire_may_have_taken_late_is_left_however_short_the_ttl;
    assert_noticed(Mutant::PlaceExpiresWithKey, table);
    let table = a_place_of_a_holder_is_left_after_the_key_has_expired_and_delays_no_outcome;
    assert_noticed(Mutant::HoldersPlaceExpiresWithKey, table);
}
