//! Canonical states: one representative for all states that differ in nothing important.
//!
//! Three reductions, each of which keeps every violation:
//!
//! * *Servers are alike.* No rule mentions a server's number, so a state whose servers (each with all its dealings with the
//!   clients, a column) are permuted behaves the same. The columns are sorted when the state is packed.
//! * *Only the order of fences matters.* The rules compare fences and take larger ones; nothing depends on how much larger.
//!   So fences are ranks: the smallest number in the state is 1, the next one 2. A proposal may fall on a rank, between two,
//!   or above all, so that one run covers all proposals, clocks and counters, whatever their size.
//! * *What can't act is forgotten.* An attempt that is over, owns no key and has nothing in flight does nothing any more;
//!   and of the fences granted, only those are remembered that a later grant may be compared with.
//!
//! (A fourth is in [`crate::action`]: attempts that haven't begun are alike, so they begin in order.)

use crate::server::Fence;
use crate::state::{Attempt, Call, Phase, State};

/// Makes room between any two fences.
pub fn widen(state: &mut State) {
    state.for_each_fence(|fence| *fence *= 2);
}

/// Forgets what can't matter any more.
pub fn forget_the_dead(state: &mut State) {
    for a in 0..state.count {
        let phase = state.attempts[a].phase;
        if !phase.is_over() {
            continue;
        }
        for column in &mut state.columns {
            column.extended[a] = false;
            column.calls[a] = match column.calls[a] {
                Call::Pending | Call::Failed => Call::Pending,
                _ => Call::Answered,
            };
        }
        let dead = is_dead(state, a);
        let fence_matters = state.attempts[a].granted && fence_matters(state, a);
        let attempt = &mut state.attempts[a];
        attempt.floor = 0;
        attempt.granted = fence_matters;
        if dead {
            let token = if fence_matters { attempt.token } else { 0 };
            *attempt = Attempt { phase, token, granted: fence_matters, ..Attempt::default() };
        }
    }
}

fn is_dead(state: &State, a: usize) -> bool {
    let acts = |calls: Call, lock: Option<u8>| calls == Call::Pending || lock.is_some_and(|owner| usize::from(owner) == a);
    !state.attempts[a].heals && !state.servers().any(|column| acts(column.calls[a], column.server.lock))
}

/// Whether a later grant may be compared with this one's fence: not if a larger one is among those it is compared with, too.
fn fence_matters(state: &State, a: usize) -> bool {
    let fence = state.attempts[a].token;
    let larger_granted = state.attempts().any(|other| other.granted && other.token > fence);
    let later = |other: &Attempt| match other.phase {
        Phase::Idle => !larger_granted,
        Phase::Asking | Phase::Confirming => other.floor < fence,
        _ => false,
    };
    let is_a_floor = state.attempts().any(|other| other.phase.may_be_granted() && other.floor == fence);
    state.attempts().any(later) || (is_a_floor && !larger_granted)
}

/// Gives every fence its rank. Returns the fences that were there, in order of their ranks from 1.
pub fn rank(state: &mut State) -> Ranks {
    let mut present: u64 = 0;
    state.for_each_fence(|fence| present |= 1 << *fence);
    present &= !1;
    state.for_each_fence(|fence| *fence = rank_of(present, *fence));
    Ranks(present)
}

/// Which fences were there before they were ranked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ranks(u64);

impl Ranks {
    /// The fences, in order.
    pub fn fences(self) -> impl Iterator<Item = Fence> {
        (1..64).filter(move |fence| self.0 & (1 << fence) != 0)
    }
}

fn rank_of(present: u64, fence: Fence) -> Fence {
    let up_to = u64::MAX >> (63 - fence);
    (present & up_to).count_ones() as Fence
}
