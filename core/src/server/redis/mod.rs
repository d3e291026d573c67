//! A Redis or Valkey server.
//!
//! One task on the runtime owns the connection ([`lane`]); [`RedisServer`] only feeds it. The crate `redis` appears nowhere
//! outside this directory.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

mod backoff;
mod codec;
mod connect;
mod dial;
mod lane;
mod link;
mod script;
mod stream;
mod tls;
mod url;

use self::connect::Settings;
use self::lane::{Lane, Message, closed};
use self::link::Job;
use self::url::Target;
use crate::error::Error;
use crate::options::ClientOptions;
use crate::server::{Completion, Failure, Fleet, Request, Server};

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It stopped answering, or answers that it can't serve.
    Failed(Failure),
    /// It answers again.
    Recovered,
}

/// One Redis or Valkey server behind one connection, which is made when it is first needed and replaced when it breaks.
pub struct RedisServer {
    address: String,
    lane: UnboundedSender<Message>,
}

impl RedisServer {
    /// A server at `url`: `redis://`, `rediss://` (TLS) or `unix://`. Does no network I/O; the certificate files of `options` are read.
    ///
    /// `fleet` is the quorum the server belongs to, `None` if it is the only one. Everything happens on `host`, where also
    /// `on_state` is called, once for every change; it must not block. An operation whose answer takes longer than
    /// `response_timeout` has an unknown outcome.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL or a certificate file that can't be used. Passwords are never shown.
    pub fn new(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        fleet: Option<Fleet>,
        host: Handle,
        on_state: impl Fn(ServerState) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        let target = Target::parse(url, options)?;
        let address = target.address.clone();
        let settings = Settings { target, fleet, connect_timeout: options.connect_timeout, response_timeout };
        let (lane, inbox) = unbounded_channel();
        host.spawn(Lane::new(Arc::new(settings), inbox, Box::new(on_state)).run());
        Ok(Arc::new(Self { address, lane }))
    }
}

/// Checks a URL and the certificate files without making a server.
pub(crate) fn check_url(url: &str, options: &ClientOptions) -> Result<(), Error> {
    Target::parse(url, options).map(|_| ())
}

/// A URL without its password, for messages.
pub(crate) fn redacted(url: &str) -> String {
    self::url::redacted(url)
}

impl Server for RedisServer {
    fn address(&self) -> &str {
        &self.address
    }

    fn submit(&self, request: Request, completion: Completion) {
        if let Err(refused) = self.lane.send(Message::Submit(Job { request, completion })) {
            // The lane has ended: closed, or its runtime is gone.
            if let Message::Submit(job) = refused.0 {
                job.completion.complete(Err(closed(false)));
            }
        }
    }

    fn close(&self) {
        // A lane that has ended is closed already.
        let _ = self.lane.send(Message::Close);
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("address", &self.address).finish_non_exhaustive()
    }
}
