//! Looking at a lock over N servers.

use crate::clock::Tick;
use crate::error::{Error, Remaining, ServerError};
use crate::owner::OwnerFields;
use crate::protocol::Recipe;
use crate::server::{Answer, Failure, FailureKind, Verdict};

/// What a lock looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// The value of the key.
    pub owner: String,
    /// The value's fields, if a locktender client wrote it.
    pub fields: Option<OwnerFields>,
    /// How long the key remains.
    pub remaining: Remaining,
    /// The last fence issued, 0 if none is known.
    pub fence: u64,
    /// How many wait for it.
    pub waiters: u64,
}

/// One inspection: asks all servers once, and says what a majority shows.
#[derive(Debug)]
pub struct Inspection {
    answers: Vec<Option<Answer>>,
    times_out: Tick,
}

impl Inspection {
    /// An inspection of `recipe`'s lock, sent now.
    #[must_use]
    pub fn new(recipe: &Recipe, now: Tick) -> Self {
        Self { answers: vec![None; recipe.servers.len()], times_out: now.after(recipe.response_timeout) }
    }

    /// When [`Inspection::time_out`] is due.
    #[must_use]
    pub fn wake_at(&self) -> Tick {
        self.times_out
    }

    /// A server answered.
    pub fn answer(&mut self, recipe: &Recipe, server: usize, answer: Answer) -> Option<Result<Option<LockInfo>, Error>> {
        self.answers[server].get_or_insert(answer);
        self.result(recipe)
    }

    /// The servers that have not answered count as failed.
    pub fn time_out(&mut self, recipe: &Recipe) -> Option<Result<Option<LockInfo>, Error>> {
        let message = format!("no answer within {} ms", recipe.response_timeout.as_millis());
        for answer in &mut self.answers {
            answer.get_or_insert_with(|| Err(Failure::unknown(FailureKind::Timeout, message.clone())));
        }
        self.result(recipe)
    }

    fn result(&self, recipe: &Recipe) -> Option<Result<Option<LockInfo>, Error>> {
        let quorum = recipe.quorum();
        let replies = || self.answers.iter().filter_map(|answer| answer.as_ref()?.as_ref().ok());
        if replies().count() >= quorum.needed() {
            if let Some(conflict) = replies().find(|reply| reply.verdict == Verdict::Conflict) {
                return Some(Err(Error::key_conflict(recipe.name(), conflict.holder.as_deref().unwrap_or_default())));
            }
            return Some(Ok(self.info(quorum.needed())));
        }
        let failed: Vec<ServerError> = self.failures(recipe);
        if !quorum.blocked_by(failed.len()) {
            return None;
        }
        let denied = failed.iter().filter(|error| error.kind == FailureKind::Denied).count();
        let name = Some(recipe.name());
        Some(Err(if quorum.blocked_by(denied) { Error::denied(name, failed) } else { Error::unavailable(name, failed) }))
    }

    /// The holder that most servers show, if any does; with one server that one.
    fn info(&self, needed: usize) -> Option<LockInfo> {
        let replies = || self.answers.iter().filter_map(|answer| answer.as_ref()?.as_ref().ok());
        let holders = || replies().filter_map(|reply| Some((reply.holder.as_deref()?, reply.remaining)));
        let shown_by = |owner: &str| holders().filter(|(holder, _)| *holder == owner).count();
        let (owner, _) = holders().max_by_key(|(owner, _)| shown_by(owner))?;
        // Free once fewer than a majority of the answers could still show it.
        if shown_by(owner) + (self.answers.len() - replies().count()) < needed {
            return None;
        }
        let remaining = holders().filter(|(holder, _)| *holder == owner).map(|(_, left)| left).max_by_key(rank);
        Some(LockInfo {
            owner: owner.to_owned(),
            fields: OwnerFields::parse(owner),
            remaining: remaining.unwrap_or_default(),
            fence: replies().map(|reply| reply.fence).max().unwrap_or(0),
            waiters: 0,
        })
    }

    fn failures(&self, recipe: &Recipe) -> Vec<ServerError> {
        let failure = |(server, answer): (usize, &Option<Answer>)| match answer {
            Some(Err(failure)) => Some(ServerError {
                server: recipe.servers[server].clone(),
                kind: failure.kind,
                message: failure.message.clone(),
            }),
            _ => None,
        };
        self.answers.iter().enumerate().filter_map(failure).collect()
    }
}

fn rank(left: &Remaining) -> (u8, std::time::Duration) {
    match left {
        Remaining::Gone => (0, std::time::Duration::ZERO),
        Remaining::For(left) => (1, *left),
        Remaining::Forever => (2, std::time::Duration::ZERO),
    }
}
