//! The local queues: which waiter is the first, what roles the others get, and who is woken.

use crate::clock::Tick;
use crate::name::{self, Kind};
use crate::wait::{Hint, Hinted, LeaveReason, LocalQueues, Mode, Role, Slot, Wakeup};

const LOCK: &str = "orders:42";

fn queues() -> LocalQueues {
    LocalQueues::new("c", "host=h pid=1", 1)
}

/// Has waiters 1, 2, 3, … join, fair ones and others, and gives their roles.
fn join(queues: &mut LocalQueues, fair: &[bool]) -> Vec<Role> {
    (1..).zip(fair).map(|(waiter, fair)| queues.join(LOCK, waiter, *fair).role).collect()
}

const fn front(waiter: u64, at: Option<Tick>) -> Wakeup {
    Wakeup { waiter, role: Role::First, at }
}

const fn once(waiter: u64) -> Wakeup {
    Wakeup { waiter, role: Role::OneTry, at: None }
}

const UNTIL: Tick = Tick::from_micros(7_000_000);

const fn granted(stays: bool) -> LeaveReason {
    LeaveReason::Granted { until: UNTIL, stays }
}

#[test]
fn the_first_polls_for_the_queue_and_the_others_try_only_to_enqueue_a_new_place() {
    use Role::{First, OneTry, Parked};
    for (fair, turns) in [
        (&[false, false, false][..], &[First, Parked, Parked][..]),
        (&[true, true, true], &[First, OneTry, OneTry]),
        (&[false, true, false, true, false], &[First, OneTry, Parked, OneTry, Parked]),
        (&[true, false, false], &[First, OneTry, Parked]),
    ] {
        assert_eq!(join(&mut queues(), fair), turns, "{fair:?}");
    }
}

#[test]
fn queues_of_different_locks_have_nothing_to_do_with_each_other() {
    let mut queues = queues();
    assert_eq!(queues.join("a", 1, false).role, Role::First);
    assert_eq!(queues.join("b", 2, false).role, Role::First);
    assert_eq!(queues.fronts().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(queues.quit("a", 2, LeaveReason::Failed), []);
    assert_eq!(queues.quit("c", 1, LeaveReason::Failed), []);
    assert_eq!(queues.fronts().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_hint_names_the_lock_and_finds_a_waiter_for_its_job_or_for_a_scheduled_time() {
    let mut queues = queues();
    let [record, _] = crate::name::sides_of(LOCK);
    let keys = [LOCK.to_owned(), record.clone(), format!("{record}@60000"), format!("{record}@120000"), "orders:43".to_owned()];
    let joined: Vec<_> = keys.iter().zip(1..).map(|(key, waiter)| queues.join(key, waiter, false)).collect();
    for (joined, waiter) in joined.iter().zip(1..) {
        let hinted = Hinted { hint: Hint::Free, mode: false.into(), number: joined.slot.number, lock: LOCK };
        assert_eq!(queues.find(&hinted), Some(waiter).filter(|waiter| *waiter < 5));
    }
}

#[test]
fn waiters_share_one_place_and_fair_ones_have_one_each() {
    let mut queues = queues();
    let joined: Vec<_> = [false, true, false, true].iter().zip(1..).map(|(fair, n)| queues.join(LOCK, n, *fair)).collect();
    let numbers: Vec<u64> = joined.iter().map(|joined| joined.slot.number).collect();
    assert_eq!(numbers, [1, 2, 1, 3]);
    let entries: Vec<&str> = joined.iter().map(|joined| &**joined.slot.entry()).collect();
    assert_eq!(entries, ["b:c:1 host=h pid=1", "f:c:2 host=h pid=1", "b:c:1 host=h pid=1", "f:c:3 host=h pid=1"]);
    assert_eq!(joined.iter().map(|joined| joined.slot.is_shared()).collect::<Vec<_>>(), [true, false, true, false]);
}

#[test]
fn a_place_is_shared_until_the_last_but_one_has_left_and_is_never_used_again() {
    let mut queues = queues();
    let slot = queues.join(LOCK, 1, false).slot;
    queues.join(LOCK, 2, false);
    queues.quit(LOCK, 1, LeaveReason::GaveUp);
    assert!(!slot.is_shared());
    queues.quit(LOCK, 2, LeaveReason::GaveUp);
    let joined = queues.join(LOCK, 3, false);
    assert_eq!((joined.role, joined.slot.number), (Role::First, 2));

    queues.join(LOCK, 4, true); // keeps the queue alive
    queues.quit(LOCK, 3, LeaveReason::GaveUp);
    let joined = queues.join(LOCK, 5, false);
    assert_eq!((joined.role, joined.slot.number), (Role::OneTry, 4), "a new place, which the servers don't know yet");
}

#[test]
fn when_the_front_leaves_the_next_one_is_woken() {
    // The waiters, the reason why the first one leaves, and the time of the next one's try.
    for (fair, reason, at) in [
        ([false, false], LeaveReason::GaveUp, None),
        ([true, true], LeaveReason::GaveUp, None),
        // The slot that they share is in the servers' queues again: the next waiter is notified of the release.
        ([false, false], granted(true), Some(UNTIL)),
        // The slot is in no queue: the next waiter has to join the queues.
        ([false, false], granted(false), None),
        // A waiter with a slot of its own is in the servers' queues already.
        ([true, true], granted(false), Some(UNTIL)),
        ([false, true], granted(false), Some(UNTIL)),
        ([true, false], granted(false), Some(UNTIL)),
    ] {
        let mut queues = queues();
        join(&mut queues, &fair);
        assert_eq!(queues.quit(LOCK, 1, reason), [front(2, at)], "{fair:?} {reason:?}");
        assert_eq!(queues.fronts().collect::<Vec<_>>(), [2]);
    }
}

#[test]
fn a_waiter_that_came_to_a_place_behind_the_acquire_granted_there_enqueues_it_again() {
    // The waiters, the one that is granted the lock, whether its slot stays in the queues, and the wake-ups of the others.
    for (fair, granted_to, stays, notified) in [
        // A waiter with another slot is before them: that one is the first of the local queue.
        (&[false, true, false, false][..], 1, false, &[front(2, Some(UNTIL)), once(3)][..]),
        (&[false, true, false], 1, true, &[front(2, Some(UNTIL))]),
        // The waiter that got the lock was not the first of the local queue.
        (&[true, false, false], 2, false, &[once(3)]),
        (&[true, false, false], 2, true, &[]),
        // A fair waiter shares its slot with nobody.
        (&[false, true, false], 2, false, &[]),
    ] {
        let mut queues = queues();
        join(&mut queues, fair);
        assert_eq!(queues.quit(LOCK, granted_to, granted(stays)), notified, "{fair:?} {granted_to} {stays}");
    }
}

#[test]
fn when_another_waiter_leaves_nobody_is_woken() {
    for reason in [LeaveReason::GaveUp, granted(false)] {
        let mut queues = queues();
        join(&mut queues, &[true, true, true]);
        assert_eq!(queues.quit(LOCK, 2, reason), []);
        assert_eq!(queues.quit(LOCK, 3, reason), []);
        assert_eq!(queues.fronts().collect::<Vec<_>>(), [1]);
    }
}

#[test]
fn a_queue_of_which_one_failed_dissolves_each_finds_out_for_itself() {
    let mut queues = queues();
    join(&mut queues, &[false, false, true, false]);
    assert_eq!(queues.quit(LOCK, 1, LeaveReason::Failed), [front(2, None), once(3), once(4)]);
    let mut queues = self::queues();
    join(&mut queues, &[false, false, true, false]);
    assert_eq!(queues.quit(LOCK, 3, LeaveReason::Failed), [front(1, None), once(2), once(4)], "whichever it was");
}

#[test]
fn a_waiter_that_cannot_make_use_of_its_role_lets_the_others_try() {
    let mut queues = queues();
    join(&mut queues, &[false, true, false]);
    assert_eq!(queues.pass(LOCK, 1), [once(2), once(3)]);
    assert_eq!(queues.pass(LOCK, 2), [once(1), once(3)]);
    assert_eq!(queues.pass("another", 2), []);
    assert_eq!(queues.fronts().collect::<Vec<_>>(), [1], "and continues");
}

#[test]
fn in_whatever_order_waiters_leave_there_is_one_front_and_nothing_is_left_in_the_end() {
    const COUNT: u64 = 5;
    for kinds in 0..1_u32 << COUNT {
        let fair: Vec<bool> = (0..COUNT).map(|waiter| kinds >> waiter & 1 == 1).collect();
        for order in permutations((1..=COUNT).collect()) {
            let mut queues = queues();
            assert_eq!(join(&mut queues, &fair).iter().filter(|role| **role == Role::First).count(), 1);
            for (left, waiter) in order.iter().enumerate() {
                let was_front = queues.fronts().next() == Some(*waiter);
                let notified = queues.quit(LOCK, *waiter, LeaveReason::GaveUp);
                let next = order[left + 1..].iter().min().copied();
                assert_eq!(queues.fronts().next(), next, "the one that came first of those that wait");
                assert_eq!(notified.first().map(|notified| notified.waiter), next.filter(|_| was_front), "{order:?} {fair:?}");
                assert_eq!(queues.quit(LOCK, *waiter, LeaveReason::GaveUp), [], "once");
            }
            assert!(queues.is_empty());
        }
    }
}

fn permutations(items: Vec<u64>) -> Vec<Vec<u64>> {
    if items.len() < 2 {
        return vec![items];
    }
    let without = |item: &u64| items.iter().copied().filter(|other| other != item).collect::<Vec<_>>();
    let begun = |item: &u64| permutations(without(item)).into_iter().map(|rest| [vec![*item], rest].concat()).collect::<Vec<_>>();
    items.iter().flat_map(begun).collect()
}

#[test]
fn a_hint_finds_the_first_of_its_place_and_nobody_once_they_are_gone() {
    let mut queues = queues();
    join(&mut queues, &[false, true, false]);
    let find = |queues: &LocalQueues, fair: bool, number: u64, lock: &str| {
        queues.find(&Hinted { hint: Hint::Free, mode: fair.into(), number, lock })
    };
    for (fair, number, lock, waiter) in [
        (false, 1, LOCK, Some(1)),
        (true, 2, LOCK, Some(2)),
        (true, 1, LOCK, None),
        (false, 2, LOCK, None),
        (false, 3, LOCK, None),
        (false, 1, "another", None),
    ] {
        assert_eq!(find(&queues, fair, number, lock), waiter, "{fair} {number} {lock}");
    }
    queues.quit(LOCK, 1, LeaveReason::GaveUp);
    assert_eq!(find(&queues, false, 1, LOCK), Some(3), "who shares it");
    queues.quit(LOCK, 3, LeaveReason::GaveUp);
    assert_eq!(find(&queues, false, 1, LOCK), None);
}

#[test]
fn a_place_is_asked_for_at_its_old_arrival_until_it_was_served() {
    let mut queues = LocalQueues::new("c", "host=h pid=1", 3);
    let slot = queues.join(LOCK, 1, false).slot;
    let arrivals = |slot: &Slot| (0..3).map(|server| slot.place(server).arrival).collect::<Vec<_>>();
    assert_eq!(arrivals(&slot), [0, 0, 0]);
    slot.arrived(1, 17, (Tick::from_micros(1), false));
    assert_eq!((arrivals(&slot), slot.place(1).stays), (vec![0, 17, 0], false));
    queues.join(LOCK, 2, false);
    assert!(slot.place(1).stays, "for the one that waits behind");
    slot.served(Tick::from_micros(2), true, |_| true);
    assert_eq!((arrivals(&slot), slot.has_arrived()), (vec![0, 17, 0], true));
    slot.served(Tick::from_micros(3), false, |server| server != 1);
    assert_eq!((arrivals(&slot), slot.has_arrived_at(1)), (vec![0, 0, 0], true), "who did not vote keeps the place");
    slot.served(Tick::from_micros(3), false, |_| true);
    assert_eq!((arrivals(&slot), slot.has_arrived()), (vec![0, 0, 0], false));
}

#[test]
fn a_place_that_is_forgotten_where_nobody_voted_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::SharedPlaceForgotten, a_place_is_asked_for_at_its_old_arrival_until_it_was_served);
}

#[test]
fn a_client_receives_enough_while_a_majority_is_not_known_to_be_silent() {
    let mut queues = LocalQueues::new("c", "", 3);
    let slot = queues.join(LOCK, 1, false).slot;
    assert!(slot.listen_state.suffices(2), "nothing is known yet");
    for (server, listens, enough) in [(0, false, true), (1, true, true), (2, false, false), (0, true, true)] {
        assert_eq!(queues.set_listening(server, listens, None), [1]);
        assert_eq!(slot.listen_state.suffices(2), enough, "{server} {listens}");
    }
}

#[test]
fn where_each_lock_has_a_channel_of_its_own_only_its_waiters_are_notified_of_it() {
    let mut queues = LocalQueues::new("@c", "", 1).by_lock();
    let [record, _] = name::sides_of("a");
    let keys = ["a", "b", &record, &format!("{record}@1700000000000")];
    let slots: Vec<_> = (1..).zip(keys).map(|(waiter, key)| queues.join(key, waiter, false).slot).collect();
    let mut first = queues.set_listening(0, false, Some("a"));
    first.sort_unstable();
    assert_eq!(first, [1, 3, 4], "waiters for a job stand in the queue of its lock");
    assert_eq!(slots.iter().map(|slot| slot.listen_state.suffices(1)).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(queues.set_listening(0, true, Some("b")), [2]);
}

#[test]
fn who_fails_like_another_before_it_notifies_only_the_next() {
    let mut queues = queues();
    let slot = queues.join(LOCK, 1, false).slot;
    (2..=5).for_each(|waiter| drop(queues.join(LOCK, waiter, waiter == 4)));
    assert_eq!(queues.quit(LOCK, 1, LeaveReason::Failed), [front(2, None), once(3), once(4), once(5)]);
    assert_eq!(queues.quit(LOCK, 3, LeaveReason::Failed), []);
    assert_eq!(queues.quit(LOCK, 2, LeaveReason::Failed), [front(4, None)]);
    // A majority has answered since: the failure of the next waiter is news again.
    slot.outage.end();
    assert_eq!(queues.quit(LOCK, 4, LeaveReason::Failed), [front(5, None)]);
}

#[test]
fn an_outage_begins_for_the_whole_queue_when_one_notices_and_ends_with_an_answer() {
    let mut queues = queues();
    let (first, second) = (queues.join(LOCK, 1, true).slot, queues.join(LOCK, 2, true).slot);
    let other = queues.join("other", 3, true).slot;
    first.outage.begin(Tick::from_micros(5));
    assert_eq!((second.outage.since(), other.outage.since()), (Some(Tick::from_micros(5)), None));
    second.outage.end();
    assert_eq!(first.outage.since(), None);
}

fn readers_of_one_place_try_all_at_once_behind_a_grant() {
    let mut queues = queues();
    let read = |fair| Mode { kind: Kind::Read, fair };
    let places: Vec<_> = (1..=4).map(|waiter| queues.join(LOCK, waiter, read(waiter == 2)).slot).collect();
    let [before, at, later] = [1, 2, 3].map(Tick::from_micros);
    // One that reads once more has passed the queue: nobody enters beside it.
    places[0].entered(&"nested".into(), true, at);
    assert_eq!(places[0].reader(before), None);
    places[0].entered(&"first".into(), false, at);
    assert_eq!(queues.quit(LOCK, 1, granted(false)), [front(2, None), once(3), once(4)]);
    // Only those enter beside the first that had come before it entered, also behind the next one.
    places[0].entered(&"second".into(), true, later);
    assert_eq!([before, at].map(|started| places[0].reader(started)), [Some("second".into()), None]);
    assert_eq!(queues.quit(LOCK, 4, granted(false)), []);
}

#[test]
fn readers_of_one_place_enter_together() {
    readers_of_one_place_try_all_at_once_behind_a_grant();
}

#[test]
fn bugs_planted_in_a_queue_are_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::ReaderEntersAlone, readers_of_one_place_try_all_at_once_behind_a_grant);
    assert_noticed(Mutant::LaterReaderEnters, readers_of_one_place_try_all_at_once_behind_a_grant);
    assert_noticed(Mutant::FairSharesPlace, waiters_share_one_place_and_fair_ones_have_one_each);
    assert_noticed(Mutant::FirstRoleNotQueued, when_the_front_leaves_the_next_one_is_woken);
    let behind = a_waiter_that_came_to_a_place_behind_the_acquire_granted_there_enqueues_it_again;
    assert_noticed(Mutant::SharedPlaceDropped, behind);
    assert_noticed(Mutant::FailureKept, a_queue_of_which_one_failed_dissolves_each_finds_out_for_itself);
    assert_noticed(Mutant::YieldKept, a_waiter_that_cannot_make_use_of_its_role_lets_the_others_try);
}
