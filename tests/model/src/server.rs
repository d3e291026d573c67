//! One server: the rules of `core/src/machine/exclusive.rs` (and of `marker.rs`, for quarantine), in the same words.
//!
//! What differs is time. A key has no expiry in milliseconds but a *life*: how many of its owner's coming deadlines it must
//! outlive. A deadline is the end of the validity of one round (the acquire, or an extension), and a key written by a round
//! never expires before that round's deadline: that is the whole timing assumption.

use crate::rules::Rule;

/// An attempt as the servers know it: the value of the lock's key.
pub type Owner = u8;

/// A fence, a vote or a token; 0 is none.
pub type Fence = u8;

/// The most attempts a model can have.
pub const ATTEMPTS: usize = 4;

/// The keys of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The owner in the lock's key.
    pub lock: Option<Owner>,
    /// The largest vote cast, or token written back.
    pub fence: Fence,
    /// How many of its owner's coming deadlines the key outlives; at 0 it may expire.
    pub life: u8,
    /// Quarantine: of each attempt, how many coming deadlines must pass before this server votes.
    pub waits: [u8; ATTEMPTS],
}

/// What a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The acquire was granted, with this vote.
    Vote(Fence),
    /// The lock is another's.
    Held,
    /// The server may have forgotten a hold that is still valid.
    Quarantine,
    /// Done.
    Ok,
    /// Refused.
    No,
}

/// The vote for a proposal: always above `fence`.
fn vote(fence: Fence, proposal: Fence) -> Fence {
    proposal.max(fence + 1)
}

impl Server {
    /// Gives the key to `owner` if it is free, its own, or that of the owner it adopts; the answer is a new vote.
    pub fn acquire(&mut self, owner: Owner, adopt: Option<Owner>, life: u8, proposal: Fence, broken: Option<Rule>) -> Reply {
        if self.is_in_quarantine() && broken != Some(Rule::NoQuarantine) {
            return Reply::Quarantine;
        }
        if self.lock.is_some_and(|holder| holder != owner && Some(holder) != adopt) {
            return Reply::Held;
        }
        if self.lock.is_some() && broken == Some(Rule::OldFence) {
            self.take(owner, life);
            return Reply::Vote(self.fence);
        }
        let vote = vote(self.fence, proposal);
        self.take(owner, life);
        self.fence = vote;
        Reply::Vote(vote)
    }

    /// Raises the fence to the token, if no newer vote was cast.
    pub fn confirm(&mut self, owner: Owner, token: Fence, broken: Option<Rule>) -> Reply {
        let unowned = matches!(broken, Some(Rule::ConfirmUnowned | Rule::ConfirmAnywhere));
        if (self.lock != Some(owner) && !unowned) || (self.fence > token && broken != Some(Rule::ConfirmOlder)) {
            return Reply::No;
        }
        self.fence = token;
        Reply::Ok
    }

    /// Makes our key outlive `life` deadlines. A single server leaves the fence alone.
    pub fn extend(&mut self, owner: Owner, life: u8, token: Fence, single_server: bool) -> Reply {
        if self.lock != Some(owner) || self.fence > token && !single_server {
            return Reply::No;
        }
        self.keep(life, if single_server { self.fence } else { token })
    }

    /// Writes our key again where it is missing.
    pub fn heal(&mut self, owner: Owner, life: u8, token: Fence, broken: Option<Rule>) -> Reply {
        let heedless = matches!(broken, Some(Rule::HealInQuarantine | Rule::EarlyHeal));
        if self.is_in_quarantine() && !heedless {
            return Reply::Quarantine;
        }
        if self.lock.is_some_and(|holder| holder != owner) || self.fence > token {
            return Reply::No;
        }
        if self.lock.is_none() {
            self.take(owner, life);
        }
        self.keep(life, token)
    }

    /// Deletes our key. The fence stays.
    pub fn release(&mut self, owner: Owner, broken: Option<Rule>) -> Reply {
        if self.lock.is_none() || (self.lock != Some(owner) && broken != Some(Rule::ReleaseUnowned)) {
            return Reply::No;
        }
        self.clear();
        Reply::Ok
    }

    /// The key is gone: released or expired.
    pub fn clear(&mut self) {
        self.lock = None;
        self.life = 0;
    }

    /// The server lost its data: it votes again when every round sent so far has met its deadline.
    pub fn forget(&mut self, waits: [u8; ATTEMPTS]) {
        *self = Self { waits, ..Self::default() };
    }

    fn is_in_quarantine(&self) -> bool {
        self.waits.iter().any(|waits| *waits > 0)
    }

    fn take(&mut self, owner: Owner, life: u8) {
        self.lock = Some(owner);
        self.life = life;
    }

    fn keep(&mut self, life: u8, token: Fence) -> Reply {
        self.life = self.life.max(life);
        self.fence = token;
        Reply::Ok
    }
}
