//! Tally: the reasons why a round failed.

use std::time::Duration;

use crate::error::quoted::quoted;
use crate::error::{Error, Holder, Loss, LossReason, ServerFailure};
use crate::name::Kind;
use crate::op::FailureKind;
use crate::op::job::JobEnd;
use crate::protocol::Recipe;
use crate::protocol::round::{Refusal, Round};
use crate::wait::is_foreign;

/// Why locks of several slots can't be acquired together.
pub(crate) const SEVERAL_SLOTS: &str = "in a cluster locks are acquired together only if they are in one slot: give the names a common {tag}, as in {shop}:1 and {shop}:2";

/// A failed round, by kinds of refusal.
#[derive(Default)]
pub(super) struct Tally {
    /// The number of servers that showed their state: a vote, a holder, a foreign key.
    answered: usize,
    /// The number of servers that failed to answer, and no longer will.
    failed: usize,
    denied: usize,
    /// The number of servers whose failure lasts until a person has changed something.
    lasting: usize,
    conflicts: Vec<String>,
    /// For each server on which the hold that was handed over is gone: the value in the key, if any.
    gone: Vec<Option<String>>,
    /// The reason why this client doesn't belong to the servers, if it doesn't.
    pub(super) mismatch: Option<String>,
    /// The holder of the lock if a majority answered, and whether a majority shows the same one. A minority with a holder doesn't
    /// make the lock busy.
    pub(super) holder: Option<(Holder, bool)>,
    /// Whether any of the answers shows a holder of another library.
    pub(super) shows_foreign: bool,
    pub(super) failures: Vec<ServerFailure>,
    /// The end of the job, if it is over.
    pub(super) end: Option<JobEnd>,
    /// Of several locks: which of them is meant.
    at: usize,
    /// When the job's next attempt may begin, if not yet, and the last error.
    pub(super) later: Option<(Duration, String)>,
}

impl Tally {
    pub(super) fn of(recipe: &Recipe, round: &Round) -> Self {
        let mut tally = Self { at: round.at, ..Self::default() };
        let mut holders: Vec<&Holder> = Vec::new();
        for (server, refusal) in round.refusals.iter().enumerate() {
            let error = |kind, message: String| ServerFailure::new(&recipe.servers[server], kind, message);
            let is_pending = refusal.is_none() && round.ballot.is_pending(server);
            let has_failed = matches!(refusal, Some(Refusal::Mismatch(_) | Refusal::Failed(_)));
            tally.failed += usize::from(has_failed);
            tally.answered += usize::from(!has_failed && !is_pending);
            match refusal {
                None if is_pending => {
                    tally.failures.push(error(FailureKind::Timeout, "had not answered yet".to_owned()));
                }
                None => (),
                Some(Refusal::Held(holder)) => {
                    tally.shows_foreign |= is_foreign(&holder.owner);
                    holders.push(holder);
                }
                Some(Refusal::Over(end)) => tally.end = Some(end.clone()),
                Some(Refusal::Later(left, error)) => tally.later = Some((*left, error.clone())),
                Some(Refusal::Gone(found)) => tally.gone.push(found.clone()),
                Some(Refusal::Conflict(found)) => {
                    tally.failures.push(error(FailureKind::Other, format!("its key holds a {}", quoted(found))));
                    tally.conflicts.push(found.clone());
                }
                Some(Refusal::Mismatch(theirs)) => {
                    let ours = recipe.quorum_config.map_or("n=1".to_owned(), |config| config.to_string());
                    let why =
                        format!("the servers belong to a quorum of {}, this client is configured for {ours}", quoted(theirs));
                    tally.mismatch = Some(why);
                }
                Some(Refusal::Failed(failure)) => {
                    tally.denied += usize::from(failure.kind == FailureKind::Denied);
                    tally.lasting += usize::from(failure.lasting && failure.kind != FailureKind::Denied);
                    if failure.kind == FailureKind::Mismatch {
                        tally.mismatch = Some(failure.message.clone());
                    }
                    tally.failures.push(ServerFailure::of(&recipe.servers[server], failure));
                }
            }
        }
        if tally.answered >= recipe.quorum().needed() {
            let shown_by = |holder: &&&Holder| holders.iter().filter(|other| other.owner == holder.owner).count();
            let most = holders.iter().max_by_key(shown_by);
            tally.holder = most.map(|holder| ((*holder).clone(), shown_by(&holder) >= recipe.quorum().needed()));
        }
        tally
    }

    /// Removes values that are our own values: the votes of earlier rounds, which are being deleted.
    pub(super) fn disown(&mut self, is_ours: impl Fn(&str) -> bool) {
        for value in &mut self.gone {
            value.take_if(|value| is_ours(value));
        }
    }

    /// Whether no answer that is still to come could change the reason of the failure.
    pub(super) fn is_decided(&self, recipe: &Recipe) -> bool {
        let quorum = recipe.quorum();
        self.answered >= quorum.needed() || quorum.blocked_by(self.failed) || self.final_error(recipe).is_some()
    }

    /// The error that no further try can mend, if there is one.
    pub(super) fn final_error(&self, recipe: &Recipe) -> Option<Error> {
        let quorum = recipe.quorum();
        let names = || recipe.keys.parts().iter().map(|part| part.name()).collect::<Vec<_>>();
        if let Some(why) = &self.mismatch {
            if why.contains("CROSSSLOT") && recipe.keys.kind() == Kind::Several {
                return Some(Error::invalid("names", names(), SEVERAL_SLOTS.to_owned()));
            }
            return Some(Error::invalid("servers", &recipe.servers, why.clone()));
        }
        if !self.gone.is_empty() && quorum.blocked_by(self.gone.len()) {
            let next_owner = self.gone.iter().flatten().next().cloned();
            return Some(Error::lost(recipe.name(), Loss { next_owner, ..Loss::new(LossReason::Ended, Duration::ZERO) }));
        }
        match self.conflicts.first() {
            _ if !quorum.blocked_by(self.denied + self.lasting + self.conflicts.len()) => None,
            Some(found) if self.conflicts.len() > self.denied + self.lasting => {
                Some(Error::key_conflict(recipe.name_at(self.at), found))
            }
            _ if self.lasting > self.denied => {
                Some(Error::unavailable(Some(recipe.name()), recipe.servers.len(), self.failures.clone()))
            }
            _ => Some(Error::denied(Some(recipe.name()), self.failures.clone())),
        }
    }
}
