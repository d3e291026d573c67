//! State: the progress of an acquisition.

use crate::clock::Tick;
use crate::error::{Error, Loss};
use crate::mutant::mutant;
use crate::protocol::Recipe;
use crate::protocol::acquiring::Acquiring;
use crate::protocol::ending;
use crate::protocol::hold::Hold;
use crate::protocol::releasing::{Released, Releasing};

/// The state of an acquisition.
#[derive(Debug)]
pub(super) enum State {
    Acquiring(Acquiring),
    Held(Hold),
    Lost(Hold, Loss),
    Releasing(Releasing),
    Released(Released),
    HandedOver,
    Ended,
}

impl State {
    /// The value of the hold, once it exists.
    pub(super) fn owner(&self) -> Option<&str> {
        match self {
            Self::Held(hold) | Self::Lost(hold, _) | Self::Releasing(Releasing { hold, .. }) => Some(hold.owner()),
            _ => None,
        }
    }

    /// A server may have lost the key since this time. Returns whether there is a hold to confirm.
    pub(super) fn suspect(&mut self, now: Tick) -> bool {
        match self {
            Self::Held(hold) if !mutant!(FailoverIgnored) => hold.suspect(now),
            Self::Lost(hold, _) | Self::Releasing(Releasing { hold, .. }) => hold.failed_over = !mutant!(FailoverExcludes),
            // The votes of the old primary may be on their way to here.
            Self::Acquiring(acquiring) if !mutant!(EarlierReplidGrants) => {
                acquiring.suspected_at = Some(now);
                acquiring.round.iter_mut().for_each(|round| round.suspected_at = Some(now));
            }
            _ => (),
        }
        matches!(self, Self::Held(_))
    }

    /// The hold is no longer renewed in the background.
    pub(super) fn stop_renewing(&mut self) {
        if let Self::Held(hold) = self {
            hold.renewing = false;
        }
    }

    /// The hold, while the lock is held.
    pub(super) fn hold(&self) -> Option<&Hold> {
        if let Self::Held(hold) = self { Some(hold) } else { None }
    }

    /// Whether the lock was released without a loss, and its holder knows the outcome. From then on no call has any other answer
    /// than [`Error::released`], or nothing to do.
    pub(super) fn is_released(&self) -> bool {
        matches!(self, Self::Released(Released { loss: None, reported: true, .. }))
    }

    /// The error at `now` of a call that needs the lock held when it isn't.
    pub(super) fn why_not_held(&self, recipe: &Recipe, now: Tick) -> Error {
        let name = recipe.name();
        match self {
            Self::Lost(hold, loss) => Error::lost(name, ending::met_at(now, hold, loss)),
            // The lock was lost, and released in the background: its user knows of neither yet.
            Self::Releasing(Releasing { hold, loss: Some(loss), caller: None, explicit: false, is_reported: false, .. }) => {
                Error::lost(name, ending::met_at(now, hold, loss))
            }
            Self::Released(Released { release, loss: Some(loss), reported: false, explicit: false, .. }) => {
                Error::lost(name, loss.clone().after(release.overrun))
            }
            Self::Releasing(_) => Error::not_held(name, "it is being released"),
            Self::HandedOver => Error::not_held(name, "it was handed over"),
            _ => Error::released(name),
        }
    }
}
