//! Settings: the values with which every connection to one server is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Tick;
use crate::error::Error;
use crate::op::{Failure, QuorumConfig};
use crate::options::ClientOptions;
use crate::server::redis::login::Login;
use crate::server::redis::transport::provided::Provided;
use crate::server::redis::url::{Endpoint, Target};

/// The values that connecting needs, fixed for a server's life, and whether they have proved right.
pub struct Settings {
    pub(crate) target: Target,
    /// The name of the connections.
    pub(crate) name: String,
    pub(crate) quorum_config: Option<QuorumConfig>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    /// `None` if no replica has to confirm anything.
    pub(crate) replicas: Option<ReplicaTerms>,
    pub(crate) answered: AtomicBool,
    /// Whether the server has begun a transaction and not ended it, or has hung up on it: it is not asked again.
    pub(crate) has_no_transactions: AtomicBool,
    /// The account whose credentials are used instead of the URL's.
    pub(crate) provided: Option<Arc<Provided>>,
    /// Whether the server is a node of a cluster.
    pub(crate) in_cluster: bool,
    /// Whether the caller's runtime may do the I/O of its operations.
    pub(crate) callers_runtime: bool,
}

/// How many replicas have to confirm what is written, and how long a server waits for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplicaTerms {
    pub(crate) replicas: u32,
    pub(crate) timeout: Duration,
}

impl Settings {
    /// The credentials for the server, as they are now.
    pub(crate) fn login(&self) -> Arc<Login> {
        let provided = self.provided.as_ref().and_then(|provided| provided.login(&self.target.address));
        provided.unwrap_or_else(|| Arc::clone(&self.target.login))
    }

    /// The server accepts these credentials.
    pub(crate) fn accepted(&self, login: &Arc<Login>) {
        if let Some(provided) = &self.provided {
            provided.accepted(&self.target.address, login);
        }
    }

    /// The server refuses these credentials, to a live connection or a new one; returns whether that is news for their provider.
    pub(crate) fn refused(&self, login: &Arc<Login>, failure: &Failure, is_live: bool, now: Tick) -> bool {
        let refused = |provided: &Arc<Provided>| provided.refused(&self.target.address, login, failure, is_live, now);
        self.provided.as_ref().is_some_and(refused)
    }

    /// Notes that the server has answered as these settings expect.
    pub(crate) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Whether the server has ever answered. Then a broken connection is no reason to suspect the URL.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// The longest that a hold may remain, for a server with a marker.
    pub(crate) fn max_ttl(&self) -> Option<Duration> {
        self.quorum_config.map(|config| Duration::from_millis(config.max_ttl_ms))
    }

    /// Whether the server is a single one, and in quarantine after a failover. Then its replication id has to be known.
    pub(crate) fn needs_replid(&self) -> bool {
        self.quorum_config.is_some_and(|config| config.servers == 1)
    }

    /// The settings of a server at `url`. Reads certificate files, but does no network I/O.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL or a certificate file that can't be used.
    pub fn new(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        quorum_config: Option<QuorumConfig>,
    ) -> Result<Self, Error> {
        Ok(Self { quorum_config, ..Self::of(Target::parse(url, options)?, options, response_timeout) })
    }

    /// The settings of the server at `target`, which is alone.
    pub(crate) fn of(target: Target, options: &ClientOptions, response_timeout: Duration) -> Self {
        let terms = ReplicaTerms { replicas: options.min_replicas, timeout: options.replicas_timeout };
        Self {
            target,
            name: name(options.app_name().as_deref()),
            quorum_config: None,
            connect_timeout: options.connect_timeout,
            response_timeout,
            replicas: Some(terms).filter(|terms| terms.replicas > 0),
            answered: AtomicBool::default(),
            has_no_transactions: AtomicBool::default(),
            provided: None,
            in_cluster: false,
            callers_runtime: options.callers_runtime,
        }
    }

    /// The scheme of the URL without TLS, and of the URL with TLS.
    pub(crate) fn schemes(&self) -> [&'static str; 2] {
        match self.target.endpoint {
            _ if self.in_cluster => ["redis+cluster", "rediss+cluster"],
            Endpoint::Sentinel(_) => ["redis+sentinel", "rediss+sentinel"],
            Endpoint::Tcp { .. } | Endpoint::Unix { .. } => ["redis", "rediss"],
        }
    }
}

/// The name of the connections in `CLIENT LIST`: `locktender`, and the application behind a colon. A name may have no white space,
/// and only the letters of English.
pub(crate) fn name(app: Option<&str>) -> String {
    let mut name = String::from("locktender");
    for (at, byte) in app.unwrap_or_default().bytes().enumerate() {
        name.push_str(if at == 0 { ":" } else { "" });
        name.push(if byte.is_ascii_graphic() { char::from(byte) } else { '_' });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_called_after_its_application() {
        for (app, expected) in [
            (None, "locktender"),
            (Some(""), "locktender"),
            (Some("billing"), "locktender:billing"),
            (Some("billing job\n"), "locktender:billing_job_"),
            (Some("größer"), "locktender:gr____er"),
        ] {
            assert_eq!(name(app), expected);
        }
    }
}
