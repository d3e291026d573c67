//! Account: the credentials that a provider has given for one server, and when it is asked for the next ones. Pure.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::credentials::Credentials;
use crate::op::{Failure, FailureKind};
use crate::server::redis::login::Login;

/// The time after which credentials with an unknown life are asked for again.
const UNKNOWN: Duration = Duration::from_secs(300);

/// The least life: shorter ones must not keep the provider busy.
const LEAST: Duration = Duration::from_secs(1);

/// The pause before the third of several calls in vain; it doubles up to the longest. The second call comes at once: a password may
/// have changed just between a call and its use.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);

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
    login: Arc<Login>,
    /// The time from which on others are asked for.
    renewed_at: Tick,
    /// The end of their life, if it is known.
    ends_at: Tick,
    refused: bool,
    /// Whether a live connection was refused: others are asked for without a connection that needs them.
    again: bool,
}

/// The account of a client at one server.
#[derive(Default)]
pub(crate) struct Account {
    given: Option<Given>,
    /// The number of calls and of refusals in a row that led to nothing, and the time before which no other call is made.
    failures: u32,
    not_before: Tick,
    failure: Option<Failure>,
}

impl Account {
    /// What a new connection does.
    pub(crate) fn need(&self, now: Tick) -> Need {
        match (&self.given, &self.failure) {
            (Some(given), _) if !given.refused && now < given.renewed_at => Need::Use,
            (_, Some(_)) if now < self.not_before => self.outcome(now),
            _ => Need::Ask,
        }
    }

    /// What a connection does after a call that it waited for. Credentials whose life isn't over serve if there are no others.
    pub(crate) fn outcome(&self, now: Tick) -> Need {
        match (&self.given, &self.failure) {
            (Some(given), _) if !given.refused && now < given.ends_at => Need::Use,
            (_, Some(failure)) => Need::Rest(failure.clone()),
            _ => Need::Ask,
        }
    }

    /// The newest credentials.
    pub(crate) fn login(&self) -> Option<&Arc<Login>> {
        self.given.as_ref().map(|given| &given.login)
    }

    /// The time at which the provider is asked without a connection that needs it. It is not, before a first answer.
    pub(crate) fn due(&self) -> Tick {
        let Some(given) = &self.given else { return Tick::NEVER };
        match (given.refused, given.again) {
            (false, _) => given.renewed_at.max(self.not_before),
            (true, true) => self.not_before,
            // The next connection asks.
            (true, false) => Tick::NEVER,
        }
    }

    /// The provider has given these.
    pub(crate) fn answered(&mut self, credentials: Credentials, now: Tick) {
        let Credentials { user, password, life } = credentials;
        let login = Arc::new(Login { user, password: Some(password) });
        let (renewed_at, ends_at) = match life.map(|life| life.max(LEAST)) {
            // Of a life of 9 minutes or more, two thirds end 3 minutes before it does, as some clouds ask for.
            Some(life) => (now.after(life * 2 / 3), now.after(life)),
            None => (now.after(UNKNOWN), Tick::NEVER),
        };
        self.given = Some(Given { login, renewed_at, ends_at, refused: false, again: false });
        self.failure = None;
        // Whether they are good is known once the server accepts them.
        self.not_before = Tick::default();
    }

    /// The provider has failed. Says whether that is news that nobody would hear otherwise: connections go on by older credentials.
    pub(crate) fn failed(&mut self, failure: Failure, now: Tick) -> bool {
        let is_first = self.failure.is_none();
        self.failure = Some(failure);
        self.wait(now);
        is_first && matches!(self.outcome(now), Need::Use)
    }

    /// The server refuses these, to a connection that is live or to a new one. Says whether that is news. It isn't if others have come
    /// since, or another connection was refused.
    pub(crate) fn refused(&mut self, login: &Arc<Login>, failure: &Failure, is_live: bool, now: Tick) -> bool {
        let Some(given) = self.given.as_mut().filter(|given| Arc::ptr_eq(&given.login, login)) else { return false };
        given.again |= is_live;
        if std::mem::replace(&mut given.refused, true) {
            return false;
        }
        self.failure = Some(failure.clone());
        self.wait(now);
        true
    }

    /// The server accepts these.
    pub(crate) fn accepted(&mut self, login: &Arc<Login>) {
        if self.login().is_some_and(|known| Arc::ptr_eq(known, login)) && self.failure.is_none() {
            self.failures = 0;
        }
    }

    fn wait(&mut self, now: Tick) {
        self.not_before = now.after(pause(self.failures));
        self.failures = self.failures.saturating_add(1);
    }
}

/// The failure of a call that took too long.
pub(crate) fn late(span: Duration) -> Failure {
    Failure::not_applied(FailureKind::Timeout, format!("`credentials` gave no answer within {} ms", span.as_millis()))
}

/// The pause after a failure, behind so many others in a row.
fn pause(before: u32) -> Duration {
    let Some(doublings) = before.checked_sub(1) else { return Duration::ZERO };
    FIRST.saturating_mul(1 << doublings.min(10)).min(LONGEST)
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
