//! Checks: options that a kind of lock doesn't have, and those that a quorum bounds.

use std::time::Duration;

use super::Spec;
use crate::clock::millis;
use crate::error::Error;
use crate::name::Kind;
use crate::op::QuorumConfig;
use crate::options::{LockOptions, wire_millis};
use crate::wording::{Part, Text};

/// The most permits of a semaphore.
const MOST_PERMITS: u32 = 10_000;

impl Spec {
    /// Checks the options, and takes out what this kind of lock ignores of the client's defaults.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`.
    pub(super) fn check(&self, options: &mut LockOptions, quorum_config: Option<QuorumConfig>) -> Result<(), Error> {
        self.check_min_hold(options)?;
        self.check_fair(options)?;
        if let Kind::Semaphore(permits) = self.kind
            && !(1..=MOST_PERMITS).contains(&permits)
        {
            return Err(Error::invalid("permits", permits, "must be from 1 to 10000"));
        }
        if quorum_config.is_some() {
            self.check_spans(options)?;
        }
        if quorum_config.is_some_and(|config| config.servers > 1) { self.check_quorum(options) } else { Ok(()) }
    }

    fn check_min_hold(&self, options: &mut LockOptions) -> Result<(), Error> {
        let why = match self.kind {
            Kind::Exclusive | Kind::Quorum => return Ok(()),
            Kind::Job => "a job has none: it is done or not, and {retention} says how long that is remembered",
            Kind::Read | Kind::Semaphore(_) => "only a lock with one holder has it",
            Kind::Several => "several locks at once have none: each of them may have it alone",
        };
        if self.settings.min_hold.is_some_and(|min_hold| !min_hold.is_zero()) {
            return Err(Error::invalid_time("min_hold", options.min_hold, Text::new(why, [])));
        }
        options.min_hold = Duration::ZERO;
        Ok(())
    }

    fn check_fair(&self, options: &mut LockOptions) -> Result<(), Error> {
        if self.kind != Kind::Several {
            return Ok(());
        }
        if self.settings.fair == Some(true) {
            let why =
                "several locks at once have no order of their own: their caller waits for one of them at a time; leave it out";
            return Err(Error::invalid("fair", true, Text::new(why, [])));
        }
        options.fair = false;
        Ok(())
    }

    /// A server with a marker forgets no hold that ends within `max_ttl`.
    fn check_spans(&self, options: &LockOptions) -> Result<(), Error> {
        let longest = self.client.options.max_ttl;
        let LockOptions { ttl, grace, min_hold, .. } = *options;
        let bounded = [
            ("ttl", ttl, ttl, "on a quorum a {ttl} is at most the client's {max_ttl}, which is {}"),
            (
                "grace",
                grace,
                ttl.saturating_add(grace),
                "on a quorum a {ttl} and its {grace} are together at most the client's {max_ttl}, which is {}",
            ),
            ("min_hold", min_hold, min_hold, "on a quorum it is at most the client's {max_ttl}, which is {}"),
        ];
        match bounded.into_iter().find(|(_, _, span, _)| wire_millis(*span) > millis(longest)) {
            Some((option, given, _, why)) => Err(Error::invalid_time(option, given, Text::new(why, [Part::Time(longest)]))),
            None => Ok(()),
        }
    }

    fn check_quorum(&self, options: &LockOptions) -> Result<(), Error> {
        if options.fair {
            let why = "a quorum has no fair locks: independent servers can't agree on who is first; leave it out";
            return Err(Error::invalid("fair", true, Text::new(why, [])));
        }
        let why = match self.kind {
            Kind::Exclusive | Kind::Quorum => return Ok(()),
            Kind::Job => {
                "a quorum has no jobs: a server that loses its data votes again after {max_ttl}, and a job that is done would run once \
                 more; use one server, with appendfsync always"
            }
            Kind::Read | Kind::Semaphore(_) => {
                "a quorum has no locks that several hold at once: independent servers can't agree on how many hold it; use one server"
            }
            Kind::Several => {
                "a quorum has no locks of several names: independent servers can't agree on who has all of them; use one server"
            }
        };
        let argument = if self.kind == Kind::Several { "names" } else { "name" };
        Err(Error::invalid(argument, &self.name, Text::new(why, [])))
    }
}
