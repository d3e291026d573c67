//! What a client is put together from.

use std::sync::Arc;

use crate::client::{Client, Inner, Source, URL_VARIABLE, memory_name};
use crate::error::Error;
use crate::event::Sink;
use crate::options::ClientOptions;
use crate::server::Server;
use crate::server::redis;

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
        self.sources.extend(split_urls(urls).map(|url| Source::Url(url.to_owned())));
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

    /// Makes the client. Without any server it is one of what `LOCKTENDER_URL` names. No I/O.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL that is malformed, listed twice or missing, and for bad options.
    pub fn build(mut self) -> Result<Client, Error> {
        if self.sources.is_empty() {
            let urls = std::env::var(URL_VARIABLE).ok().filter(|urls| !urls.is_empty());
            let why = || {
                "no server is configured: give a URL or set LOCKTENDER_URL; redis://host, rediss://host, unix:///path, \
                 or memory://name for locks within one process"
                    .to_owned()
            };
            let urls = urls.ok_or_else(|| Error::invalid("url", "", why()))?;
            self = self.urls(&urls);
        }
        self.options.check()?;
        let mut seen = Vec::new();
        for source in &self.sources {
            if let Source::Url(url) = source {
                check_url(url, &self.options)?;
                if seen.contains(&url) {
                    return Err(Error::invalid("url", redis::redacted(url), "the same server is listed twice".into()));
                }
                seen.push(url);
            }
        }
        Ok(Client::of(Inner::new(self.sources, self.options, self.sink)))
    }
}

fn check_url(url: &str, options: &ClientOptions) -> Result<(), Error> {
    match memory_name(url) {
        Some("") => Err(Error::invalid("url", url, "memory:// needs a name: memory://name".into())),
        Some(_) => Ok(()),
        None => redis::check_url(url, options),
    }
}

/// Splits at commas that are followed by `scheme://`.
fn split_urls(urls: &str) -> impl Iterator<Item = &str> {
    let is_scheme = |text: &str| {
        text.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        })
    };
    let mut rest = Some(urls);
    std::iter::from_fn(move || {
        let text = rest?;
        let cut = text.match_indices(',').map(|(at, _)| at).find(|at| is_scheme(text[at + 1..].trim_start()));
        rest = cut.map(|at| text[at + 1..].trim_start());
        Some(cut.map_or(text, |at| &text[..at]).trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn a_list_is_split_where_a_url_begins() {
        let split = |urls: &'static str| split_urls(urls).collect::<Vec<_>>();
        assert_eq!(split("redis://a"), ["redis://a"]);
        assert_eq!(split("redis://a,redis://b, memory://c"), ["redis://a", "redis://b", "memory://c"]);
        assert_eq!(split("redis+sentinel://h1,h2/master/0"), ["redis+sentinel://h1,h2/master/0"]);
        assert_eq!(split("redis://:p,w@a,rediss://b"), ["redis://:p,w@a", "rediss://b"]);
    }

    #[test]
    fn a_lock_that_is_silently_local_is_never_made() {
        let error = Client::open("").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(Client::open("memory://").unwrap_err().code(), Code::InvalidArgument);
    }
}
