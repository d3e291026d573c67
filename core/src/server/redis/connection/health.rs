//! Health: whether a server answers, known once for all connections to it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::callback;
use crate::op::Failure;
use crate::server::redis::connection::server_state::ServerState;

/// Whether the server fails, and the report of each change. Each change is reported once, by the transport of the connection that
/// saw it.
pub(crate) struct Health {
    failing: AtomicBool,
    report: Box<dyn Fn(ServerState) + Send + Sync>,
}

impl Health {
    /// The health of a server that nothing is known of.
    pub fn new(report: impl Fn(ServerState) + Send + Sync + 'static) -> Self {
        Self { failing: AtomicBool::new(false), report: Box::new(report) }
    }

    /// Reports a change.
    pub(crate) fn report(&self, state: ServerState) {
        callback::call_or_trace("the callback for a server's state", || (self.report)(state));
    }

    /// The server failed; gives the change to report.
    pub(crate) fn failed(&self, failure: &Failure) -> Option<ServerState> {
        (!self.failing.swap(true, Ordering::Relaxed)).then(|| ServerState::Failed(failure.clone()))
    }

    /// The server answered; gives the change to report.
    pub(crate) fn recovered(&self) -> Option<ServerState> {
        // This is asked after every answer: a read is cheaper than a swap.
        let recovered = self.failing.load(Ordering::Relaxed) && self.failing.swap(false, Ordering::Relaxed);
        recovered.then_some(ServerState::Recovered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::FailureKind;

    #[test]
    fn every_change_is_reported_once() {
        let health = Health::new(|_| ());
        let failure = Failure::not_applied(FailureKind::Refused, "no");
        assert_eq!(health.recovered(), None, "nothing was wrong");
        assert_eq!(health.failed(&failure), Some(ServerState::Failed(failure.clone())));
        assert_eq!(health.failed(&failure), None);
        assert_eq!(health.recovered(), Some(ServerState::Recovered));
        assert_eq!(health.recovered(), None);
    }
}
