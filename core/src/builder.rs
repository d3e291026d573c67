//! What a client is put together from.

use std::sync::Arc;

use crate::client::{Client, Inner};
use crate::error::Error;
use crate::event::Sink;
use crate::options::ClientOptions;
use crate::server::Server;
use crate::sources::{Source, Sources};

/// Puts a [`Client`] together.
#[must_use]
pub struct ClientBuilder {
    sources: Vec<Source>,
    options: ClientOptions,
    sink: Option<Arc<dyn Sink>>,
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        Self { sources: Vec::new(), options: ClientOptions::default(), sink: None }
    }

    /// Adds the server at `url`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.sources.push(Source::Url(url.into()));
        self
    }

    /// Adds the servers of one string, split at commas that are followed by `scheme://`.
    pub fn urls(mut self, urls: &str) -> Self {
        self.sources.extend(Source::split(urls));
        self
    }

    /// Adds a server of your own, or a scripted one.
    pub fn server(mut self, server: Arc<dyn Server>) -> Self {
        self.sources.push(Source::Own(server));
        self
    }

    /// Sets the options.
    pub fn options(mut self, options: ClientOptions) -> Self {
        self.options = options;
        self
    }

    /// Changes the options in place.
    pub fn configure(mut self, change: impl FnOnce(&mut ClientOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Sends the client's events to `sink`, besides `tracing`.
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Makes the client. No I/O. Without any server it is one of what `LOCKTENDER_URL` names: now, or if that isn't set yet, when it is
    /// first needed, so that a client may be made before the environment is complete.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL that is malformed or listed twice, and for bad options. That no server is named is told by the first
    /// operation.
    pub fn build(self) -> Result<Client, Error> {
        self.options.check()?;
        let sources = Sources::of(self.sources, &self.options)?;
        Ok(Client::of(Inner::new(sources, self.options, self.sink)))
    }
}
