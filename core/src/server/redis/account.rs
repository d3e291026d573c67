//! Account: the credentials that a provider has given for one server or cluster, the nodes that refuse them, and when it is asked for
//! the next ones. Pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::credentials::Credentials;
use crate::op::{Failure, FailureKind};
use crate::server::redis::login::Login;
use crate::server::redis::pauses::Pauses;

/// The time after which credentials with an unknown life are asked for again.
const UNKNOWN: Duration = Duration::from_secs(300);

/// The least life: shorter ones must not keep the provider busy.
const LEAST: Duration = Duration::from_secs(1);

/// The pauses before the third of several calls in vain, and further ones. The second call comes at once: a password may have changed
/// just between a call and its use.
const PAUSES: Pauses = Pauses { first: Duration::from_millis(500), longest: Duration::from_secs(10) };

/// The time after such a pause in which the refusal of a node is known.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What a new connection does about its credentials.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    /// It uses the newest ones.
    Use,
    /// The provider is asked for others first.
    Ask,
    /// The provider was asked in vain just before.
    Rest(Failure),
}

/// Credentials that were given.
struct Given {
    /// The same one as before, if they are.
    login: Arc<Login>,
    /// A new one for every answer: the node that has refused the same ones gets them once more.
    newest: Arc<Login>,
    /// The time from which on others are asked for.
    renewed_at: Tick,
    /// The end of their life, if it is known.
    ends_at: Tick,
}

/// The credentials that one node has refused. Users are kept per node, so that another one may accept the same ones.
struct Refusal {
    login: Arc<Login>,
    failure: Failure,
    /// Whether a live connection was refused: others are asked for without a connection that needs them.
    is_live: bool,
    /// The number of refusals in a row, and the time before which the provider isn't asked because of this one.
    count: u32,
    not_before: Tick,
}

/// The account of a client at one server, or at all nodes of a cluster. A node is named by its address.
#[derive(Default)]
pub(crate) struct Account {
    given: Option<Given>,
    /// The number of calls in a row that failed, and the time before which no other call is made.
    failures: u32,
    not_before: Tick,
    failure: Option<Failure>,
    /// The nodes that refuse something.
    refusals: HashMap<String, Refusal>,
}

impl Account {
    /// What a new connection to a node does.
    pub(crate) fn need(&self, node: &str, now: Tick) -> Need {
        let refusal = self.refusal(node);
        match &self.given {
            Some(given) if refusal.is_none() && now < given.renewed_at => Need::Use,
            _ if now < self.not_before || refusal.is_some_and(|refusal| now < refusal.not_before) => self.outcome(node, now),
            _ => Need::Ask,
        }
    }

    /// What a connection does after a call that it waited for. Credentials whose life isn't over serve if there are no others.
    pub(crate) fn outcome(&self, node: &str, now: Tick) -> Need {
        let refusal = self.refusal(node);
        match &self.given {
            Some(given) if refusal.is_none() && now < given.ends_at => Need::Use,
            _ => {
                let failure = self.failure.as_ref().or(refusal.map(|refusal| &refusal.failure));
                failure.map_or(Need::Ask, |failure| Need::Rest(failure.clone()))
            }
        }
    }

    /// The credentials for a node.
    pub(crate) fn login(&self, node: &str) -> Option<&Arc<Login>> {
        let given = self.given.as_ref()?;
        let is_again = self.refusals.get(node).is_some_and(|refusal| refusal.login == given.login);
        Some(if is_again { &given.newest } else { &given.login })
    }

    /// What was given last, by which a change is known.
    pub(crate) fn newest(&self) -> Option<&Arc<Login>> {
        self.given.as_ref().map(|given| &given.newest)
    }

    /// The refusal of the credentials that there are for a node.
    fn refusal(&self, node: &str) -> Option<&Refusal> {
        let login = self.login(node)?;
        self.refusals.get(node).filter(|refusal| Arc::ptr_eq(&refusal.login, login))
    }

    /// The time at which the provider is asked without a connection that needs it. It is not, before a first answer.
    pub(crate) fn due(&self) -> Tick {
        let Some(given) = &self.given else { return Tick::NEVER };
        let refusals = self.refusals.keys().filter_map(|node| self.refusal(node));
        let for_refused = refusals.filter(|refusal| refusal.is_live).map(|refusal| refusal.not_before).min();
        for_refused.map_or(given.renewed_at, |at| at.min(given.renewed_at)).max(self.not_before)
    }

    /// The provider has given these.
    pub(crate) fn answered(&mut self, credentials: Credentials, now: Tick) {
        let Credentials { user, password, life } = credentials;
        let newest = Arc::new(Login { user, password: Some(password) });
        let same = self.given.take().map(|given| given.login).filter(|login| *login == newest);
        let (renewed_at, ends_at) = match life.map(|life| life.max(LEAST)) {
            // Of a life of 9 minutes or more, two thirds end 3 minutes before it does, as some clouds ask for.
            Some(life) => (now.after(life * 2 / 3), now.after(life)),
            None => (now.after(UNKNOWN), Tick::NEVER),
        };
        self.given = Some(Given { login: same.unwrap_or_else(|| Arc::clone(&newest)), newest, renewed_at, ends_at });
        (self.failure, self.failures, self.not_before) = (None, 0, Tick::default());
        // A node that was replaced refuses nothing any more.
        self.refusals.retain(|_, refusal| now < refusal.not_before.after(FORGOTTEN));
    }

    /// The provider has failed. Shows whether that is news that nobody else reports: live connections keep older credentials.
    pub(crate) fn failed(&mut self, failure: Failure, now: Tick) -> bool {
        let is_first = self.failure.replace(failure).is_none();
        self.not_before = now.after(PAUSES.after(self.failures));
        self.failures = self.failures.saturating_add(1);
        is_first && self.given.is_some()
    }

    /// A node refuses these, to a connection that is live or to a new one. Returns whether that is news. It isn't if others have
    /// come since, or another connection to the node was refused.
    pub(crate) fn refused(&mut self, node: &str, login: &Arc<Login>, failure: &Failure, is_live: bool, now: Tick) -> bool {
        if !self.login(node).is_some_and(|known| Arc::ptr_eq(known, login)) {
            return false;
        }
        let known = self.refusals.get_mut(node);
        let count = known.as_ref().map_or(0, |refusal| refusal.count);
        if let Some(refusal) = known.filter(|refusal| Arc::ptr_eq(&refusal.login, login)) {
            refusal.is_live |= is_live;
            return false;
        }
        let (login, failure, not_before) = (Arc::clone(login), failure.clone(), now.after(PAUSES.after(count)));
        self.refusals.insert(node.to_owned(), Refusal { login, failure, is_live, count: count.saturating_add(1), not_before });
        true
    }

    /// A node accepts these.
    pub(crate) fn accepted(&mut self, node: &str, login: &Arc<Login>) {
        if self.login(node).is_some_and(|known| Arc::ptr_eq(known, login)) && self.refusal(node).is_none() {
            self.refusals.get_mut(node).into_iter().for_each(|refusal| refusal.count = 0);
        }
    }
}

/// The failure of a call that took too long.
pub(crate) fn late(span: Duration) -> Failure {
    Failure::not_applied(FailureKind::Timeout, format!("`credentials` gave no answer within {} ms", span.as_millis()))
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
