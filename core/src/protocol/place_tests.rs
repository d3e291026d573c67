//! Places in the servers' queues that waiters of one process share, in virtual time: their removal, and the arrival that is named.
//! names.

use std::sync::Arc;

use crate::clock::Now;
use crate::machine::ALIVE_MS;
use crate::op::{Failure, FailureKind, Queued, Reply, Verdict};
use crate::options::LockOptions;
use crate::protocol::acquiring::tests::{Acquire, leaving, reason, waiters};
use crate::protocol::removal::STRAGGLER;
use crate::protocol::waiting::tests::{at, gone, held, recipe};
use crate::protocol::{Acquisition, Command, Input, Step, Tag, leave};
use crate::wait::{Hint, LeaveReason, LocalQueues, Role};

#[test]
fn a_server_that_queues_the_winner_after_its_grant_learns_that_it_left() {
    for (queued, behind, leaves) in [
        (Queued::At { rank: 0, arrival: 9 }, false, true),
        (Queued::At { rank: 0, arrival: 9 }, true, false),
        (Queued::Nothing, false, false),
    ] {
        let mut queues = LocalQueues::new("c", "", 3);
        let waiter = queues.join("l", 1, false);
        let entry = waiter.slot.entry().to_string();
        let recipe = Arc::new(recipe(3));
        let mut machine = Acquisition::new(recipe, Some(waiter), 1, Now { tick: at(0), wall_us: 0, servers_us: 0 });
        let bring = |machine: &mut Acquisition, input| {
            let mut out = Vec::new();
            machine.handle(Now { tick: at(1), wall_us: 0, servers_us: 0 }, input, &mut out);
            out
        };
        bring(&mut machine, Input::Start);
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(1) };
        let vote = || Ok(Reply::new(Verdict::Vote, 0, 7));
        bring(&mut machine, Input::Answer { server: 0, tag, answer: vote() });
        let granted = bring(&mut machine, Input::Answer { server: 1, tag, answer: vote() });
        assert!(reason(&granted).is_some());
        if behind {
            queues.join("l", 2, false);
        }
        queues.quit("l", 1, LeaveReason::Granted { until: at(9_998), stays: false });
        let held = Reply::new(held(), 0, 7);
        let late = bring(&mut machine, Input::Answer { server: 2, tag, answer: Ok(Reply { queued, ..held }) });
        assert_eq!(leaving(&late), if leaves { vec![entry] } else { vec![] });
    }
}

#[test]
fn a_hint_that_comes_before_a_grant_is_not_lost_for_the_next_waiter() {
    for hinted in [false, true] {
        let (_queues, waiters) = waiters(2, false);
        let mut acquire = Acquire::new(Some(waiters[0].clone()), LockOptions::default());
        acquire.bring(Input::Start);
        if hinted {
            acquire.bring(Input::Hint(0, Hint::Free));
        }
        // The vote has put their slot at the tail, and the hint has taken it out again, or came from before.
        let granted = acquire.answer(Verdict::Vote, Queued::At { rank: 0, arrival: 9 });
        assert!(matches!(reason(&granted), Some(LeaveReason::Granted { stays, .. }) if stays != hinted), "{hinted}");
    }
}

fn a_leave_waits_for_a_connection_until_the_client_counts_as_dead() {
    let mut queues = LocalQueues::new("c", "", 3);
    let entry = Arc::clone(queues.join("l", 1, false).slot.entry());
    let Command::Send { request, .. } = leave(&recipe(3), 0, &entry, at(7)) else { panic!("it is sent") };
    assert_eq!(request.deadline, at(7 + ALIVE_MS));
}

#[test]
fn what_takes_a_waiter_out_is_not_cancelled_before_its_place_could_end_by_itself() {
    a_leave_waits_for_a_connection_until_the_client_counts_as_dead();
}

#[test]
fn a_leave_that_is_cancelled_early_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::LeaveCancelledEarly, a_leave_waits_for_a_connection_until_the_client_counts_as_dead);
}

fn a_place_that_another_enqueued_since_the_round_began_is_taken_out_with_the_grant() {
    // When another waiter of this process learns that the first server has put their slot into its queue: before the round is
    // sent, before its vote arrives, or after that. The server may have done so behind the vote.
    for (received, leaves) in [(Some(0), 0), (Some(1), 1), (Some(2), 1), (None, 0)] {
        for servers in [1, 3] {
            let mut queues = LocalQueues::new("c", "", servers);
            let waiter = queues.join("l", 1, false);
            let slot = Arc::clone(&waiter.slot);
            let receives = |step| {
                if received == Some(step) {
                    slot.arrived(0, 9, (at(0), false));
                }
            };
            let mut machine =
                Acquisition::new(Arc::new(recipe(servers)), Some(waiter), 1, Now { tick: at(0), wall_us: 0, servers_us: 0 });
            let mut bring = |input| {
                let mut out = Vec::new();
                machine.handle(Now { tick: at(1), wall_us: 0, servers_us: 0 }, input, &mut out);
                out
            };
            receives(0);
            bring(Input::Start);
            receives(1);
            let tag = Tag { round: 1, step: Step::Acquire, sent: at(1) };
            let vote = || Ok(Reply::new(Verdict::Vote, 0, 7));
            let mut granted = bring(Input::Answer { server: 0, tag, answer: vote() });
            if servers > 1 {
                receives(2);
                granted = bring(Input::Answer { server: 1, tag, answer: vote() });
            }
            assert!(reason(&granted).is_some());
            let leaves = if servers == 1 && received == Some(2) { 0 } else { leaves };
            assert_eq!(leaving(&granted).len(), leaves, "{received:?} of {servers}");
        }
    }
}

#[test]
fn a_winner_leaves_where_another_enqueued_their_place() {
    a_place_that_another_enqueued_since_the_round_began_is_taken_out_with_the_grant();
}

fn an_answer_from_before_a_grant_does_not_give_a_place_its_old_rank_back() {
    // Whether the winner knew of the waiter behind it, so that the server put their slot at the tail with its vote.
    for (stays, rank) in [(true, 20), (false, 0)] {
        let (mut queues, waiters) = waiters(1, false);
        let slot = Arc::clone(&waiters[0].slot);
        slot.arrived(0, 9, (at(0), false));
        let mut first = Acquire::new(Some(waiters[0].clone()), LockOptions::default());
        if !stays {
            first.bring(Input::Start);
        }
        let mut second = Acquire::new(Some(queues.join("l", 2, false)), LockOptions::default());
        if stays {
            first.bring(Input::Start);
        }
        second.bring(Input::Role(Role::OneTry, None));
        first.now = at(1);
        let granted = first.answer(Verdict::Vote, if stays { Queued::At { rank: 0, arrival: 20 } } else { Queued::Nothing });
        let Some(reason) = reason(&granted) else { panic!("it was granted") };
        queues.quit("l", 1, reason);
        // The server has refused the second waiter before the vote; the answer arrives later.
        second.held();
        assert_eq!(slot.place(0).arrival, rank, "{stays}");
        // The server may as well have put the slot into the queue behind the vote.
        assert!(slot.has_arrived_at(0), "{stays}");
        second.now = second.machine.wake_at().max(at(2));
        second.bring(Input::Role(Role::First, None));
        second.answer(held(), Queued::At { rank: 0, arrival: 30 });
        assert_eq!((second.round, slot.place(0).arrival), (2, 30), "{stays}");
    }
}

#[test]
fn who_comes_next_in_a_place_doesnt_name_the_arrival_that_was_served() {
    an_answer_from_before_a_grant_does_not_give_a_place_its_old_rank_back();
}

fn a_place_that_nobody_uses_any_more_is_left_with_what_an_earlier_round_is_asked_for() {
    for is_used in [true, false] {
        let (mut queues, waiters) = waiters(1, false);
        let entry = waiters[0].slot.entry().to_string();
        let mut first = Acquire::new(Some(waiters[0].clone()), LockOptions { renew: false, ..LockOptions::default() });
        queues.join("l", 2, false);
        first.bring(Input::Start);
        // The first round has no answer, and the server may still read it.
        first.now = first.machine.wake_at();
        first.bring(Input::Wake);
        let lost = Err(Failure::unknown(FailureKind::Timeout, "no answer"));
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
        first.bring(Input::Answer { server: 0, tag, answer: lost });
        let gone = Ok(Reply::new(gone(), 0, 7));
        first.bring(Input::Answer { server: 0, tag: Tag { step: Step::Release, sent: first.now, ..tag }, answer: gone });
        let asked_again = first.now.after(STRAGGLER);
        // The second round gets the lock, and its place is for the waiter behind.
        while first.round < 2 {
            first.now = first.machine.wake_at();
            first.bring(Input::Wake);
        }
        let granted = first.answer(Verdict::Vote, Queued::At { rank: 0, arrival: 20 });
        let Some(reason) = reason(&granted) else { panic!("it was granted") };
        queues.quit("l", 1, reason);
        if !is_used {
            queues.quit("l", 2, LeaveReason::Failed);
        }
        first.now = asked_again;
        let left = leaving(&first.bring(Input::Wake));
        assert_eq!(left, if is_used { vec![] } else { vec![entry] }, "{is_used}");
    }
}

#[test]
fn the_last_one_in_a_place_takes_it_out_also_behind_what_another_had_sent() {
    a_place_that_nobody_uses_any_more_is_left_with_what_an_earlier_round_is_asked_for();
}

#[test]
fn what_is_left_out_of_the_places_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::UnusedPlaceKept, a_place_that_nobody_uses_any_more_is_left_with_what_an_earlier_round_is_asked_for);
    assert_noticed(Mutant::LateCompanionKept, a_place_that_another_enqueued_since_the_round_began_is_taken_out_with_the_grant);
    assert_noticed(Mutant::UsedPlaceNamed, an_answer_from_before_a_grant_does_not_give_a_place_its_old_rank_back);
}
