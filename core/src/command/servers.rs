//! The options that say which servers are asked.

use clap::Args;

use crate::Client;
use crate::error::Error;

/// The servers, and the beginning of their keys.
#[derive(Debug, Args)]
pub(super) struct Servers {
    /// A server's URL; several of them are a quorum [default: those in LOCKTENDER_URL]
    #[arg(long, value_name = "URL", display_order = 26)]
    server: Vec<String>,

    /// The beginning of all keys
    #[arg(long, value_name = "TEXT", display_order = 27)]
    prefix: Option<String>,
}

impl Servers {
    pub(super) fn client(&self) -> Result<Client, Error> {
        let mut builder = Client::builder();
        if !self.server.is_empty() {
            builder = builder.urls(&*self.server);
        }
        if let Some(prefix) = &self.prefix {
            builder = builder.prefix(prefix);
        }
        builder.build()
    }
}
