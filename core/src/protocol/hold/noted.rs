//! Noted: what others read of a hold: the value of its key, its notes in the history, its events.

use std::sync::Arc;
use std::time::Duration;

use super::Hold;
use crate::clock::Tick;
use crate::event::{EventKind, LockEvent};
use crate::name::Kind;
use crate::op::holder::with_fence;
use crate::op::{Beside, HistoryNote, HoldState};
use crate::protocol::Recipe;
use crate::protocol::round::Round;

/// A hold that lasts so long has its end in the history.
const NOTED_FROM: Duration = Duration::from_secs(1);

/// A reader whose answer shows a time so close to the period's begin has begun it, in milliseconds: the script reads the time, and the server
/// makes the fence of a time of its own.
const BEGINNING_MS: u64 = 1;

/// Whether others may be inside, beside whom this round has entered.
pub(super) fn is_among(recipe: &Recipe, round: &Round, fence: u64) -> bool {
    match Beside::of(recipe.keys.kind()) {
        Beside::Nobody => false,
        // The fence of a reader is the time at which its period began.
        Beside::Readers => {
            let is_later = |server_us: u64| fence / 1_000 + BEGINNING_MS < server_us / 1_000;
            round.is_beside || round.readings[0].is_some_and(|vote| is_later(vote.server_us))
        }
        Beside::Permits => true,
    }
}

impl Hold {
    pub(in crate::protocol) fn is_on_one_server(&self) -> bool {
        self.round.readings.len() == 1
    }

    /// The time of a single server when it last confirmed the hold, microseconds since the epoch; 0 if it has shown none.
    pub(in crate::protocol) fn confirmed_us(&self) -> u64 {
        self.round.readings[0].map_or(0, |reading| reading.server_us)
    }

    /// The value of the key on the only server, if nobody is known to wait for the lock.
    pub(in crate::protocol) fn value(&self, recipe: &Recipe) -> Option<Arc<str>> {
        let is_plain = self.is_on_one_server() && recipe.keys.kind() == Kind::Exclusive && !self.waits && !self.met_busy;
        is_plain.then(|| if self.round.is_bare { Arc::clone(self.owner()) } else { with_fence(self.owner(), self.fence).into() })
    }

    /// What the history says of the hold. Of those inside at the same time it has the first reader, and each that lost the lock: all of them would
    /// push the others out of it.
    pub(super) fn note(&self, recipe: &Recipe, state: HoldState) -> Option<HistoryNote> {
        let (lock, owner, beside) = (recipe.keys.lock().into(), Arc::clone(self.owner()), Beside::of(recipe.keys.kind()));
        let is_shown = recipe.logs() && (!self.is_among || state == HoldState::Lost);
        is_shown.then_some(HistoryNote { lock, owner, fence: self.fence, state, beside })
    }

    /// What the history says of the end of the hold. A short hold that found the lock free is not in it.
    pub(in crate::protocol) fn last_note(&self, recipe: &Recipe, state: HoldState, now: Tick) -> Option<HistoryNote> {
        let is_noted = self.met_busy || now.since(self.granted) >= NOTED_FROM;
        if is_noted { self.note(recipe, state) } else { None }
    }

    pub(in crate::protocol) fn event(&self, recipe: &Recipe, kind: EventKind) -> LockEvent {
        let mut event = LockEvent::of(kind, &recipe.keys);
        event.owner = Some(Arc::clone(&self.round.owner));
        event.fence = Some(self.fence);
        event.attempt = self.round.attempt.map(|attempt| attempt.number.into());
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Keys;
    use crate::protocol::waiting::tests::{at, recipe};
    use crate::validity::Reading;

    #[test]
    fn who_enters_beside_another_reader_has_not_begun_the_period() {
        let reads = Recipe { keys: Arc::new(Keys::new(Kind::Read, "", "l", true).unwrap()), ..recipe(1) };
        let mut round = Round::new(&reads, 1, "host=w".into(), false, at(0));
        round.readings[0] = Some(Reading { sent: at(0), server_us: 7_000_000 });
        for (fence, is_beside, expected) in [(7_000_000, false, false), (7_000_000, true, true), (6_998_000, false, true)] {
            round.is_beside = is_beside;
            assert_eq!(is_among(&reads, &round, fence), expected, "{fence} {is_beside}");
        }
    }
}
