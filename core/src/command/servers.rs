//! The options that say which servers are asked.

use clap::Args;

use crate::error::Error;
use crate::{Client, ClientBuilder};

/// The servers, and the beginning of their keys.
#[derive(Debug, Args)]
pub(super) struct Servers {
    /// A server's URL: redis://host, rediss://host (TLS), unix:///path, redis+sentinel://host,host/service or redis+cluster://host,host; several of them are a quorum [default: those in LOCKTENDER_URL]
    #[arg(long, value_name = "URL", display_order = 26)]
    server: Vec<String>,

    /// The beginning of all keys
    #[arg(long, value_name = "TEXT", display_order = 27)]
    prefix: Option<String>,
}

impl Servers {
    /// Whether somebody has said which servers.
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
