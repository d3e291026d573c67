//! The options that say which servers are asked.

use std::time::Duration;

use clap::Args;
use locktender::{Client, ClientBuilder, Error, Failover};

/// The servers, and the beginning of their keys.
#[derive(Debug, Args)]
pub(super) struct Servers {
    /// A server's URL: redis://host, rediss://host (TLS), unix:///path, redis+sentinel://host,host/service or redis+cluster://host,host; several of them are a quorum [default: those in LOCKTENDER_URL]
    #[arg(long, value_name = "URL", display_order = 26)]
    server: Vec<String>,

    /// The prefix of all keys
    #[arg(long, value_name = "TEXT", display_order = 27)]
    prefix: Option<String>,
}

impl Servers {
    /// Whether the servers are given.
    pub(super) fn are_named(&self) -> bool {
        !self.server.is_empty() || std::env::var_os("LOCKTENDER_URL").is_some_and(|url| !url.is_empty())
    }

    pub(super) fn client(&self) -> Result<Client, Error> {
        self.build(Client::builder())
    }

    /// The client of an application, on the server at `url` unless others are named.
    pub(super) fn client_for(&self, url: Option<&str>, app: &str) -> Result<Client, Error> {
        let builder = Client::builder().app(app);
        self.build(if let Some(url) = url { builder.url(url) } else { builder })
    }

    /// The client of a quorum whose clients have this longest ttl.
    pub(super) fn quorum(&self, max_ttl: Option<Duration>) -> Result<Client, Error> {
        let builder = Client::builder();
        self.build(if let Some(max_ttl) = max_ttl { builder.max_ttl(max_ttl) } else { builder })
    }

    /// A client that no server refuses for its marker: one with quarantine compares it only when it acquires.
    pub(super) fn members(&self) -> Result<Client, Error> {
        let client = self.client()?;
        if client.addresses().len() > 1 { Ok(client) } else { self.build(Client::builder().failover(Failover::Quarantine)) }
    }

    fn build(&self, mut builder: ClientBuilder) -> Result<Client, Error> {
        if !self.server.is_empty() {
            builder = builder.urls(&*self.server);
        }
        if let Some(prefix) = &self.prefix {
            builder = builder.prefix(prefix);
        }
        builder.build()
    }
}
