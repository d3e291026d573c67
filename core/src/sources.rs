//! Sources: which servers a client has, and where they are named.

use std::sync::{Arc, OnceLock};

use crate::error::Error;
use crate::options::ClientOptions;
use crate::server::{Server, redis};
use crate::urls::{IntoUrls, with_plain_scheme};

/// The environment variable with the default client's URL or URLs.
pub const URL_VARIABLE: &str = "LOCKTENDER_URL";

/// Where a server comes from.
#[derive(Clone)]
pub(crate) enum Source {
    Url(String),
    Own(Arc<dyn Server>),
}

impl Source {
    /// The server at a URL.
    pub(crate) fn url(url: String) -> Self {
        Self::Url(with_plain_scheme(url))
    }
}

/// The servers of a client: those that it was given, or those that the environment names once it names some.
pub(crate) struct Sources(OnceLock<Vec<Source>>);

impl Sources {
    /// Checks what was given, or what the environment names by now.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL that is malformed or listed twice.
    pub(crate) fn of(given: Vec<Source>, options: &ClientOptions) -> Result<Self, Error> {
        let known = OnceLock::new();
        let sources = if given.is_empty() { named_by_environment() } else { Some(given) };
        if let Some(sources) = sources {
            check(&sources, options)?;
            let _ = known.set(sources);
        }
        Ok(Self(known))
    }

    /// The servers.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` as long as none is named, and for what the environment names wrongly.
    pub(crate) fn known(&self, options: &ClientOptions) -> Result<&[Source], Error> {
        if let Some(sources) = self.0.get() {
            return Ok(sources);
        }
        let sources = named_by_environment().ok_or_else(nowhere)?;
        check(&sources, options)?;
        Ok(self.0.get_or_init(|| sources))
    }
}

fn named_by_environment() -> Option<Vec<Source>> {
    let urls = std::env::var(URL_VARIABLE).ok().filter(|urls| !urls.is_empty())?;
    Some(urls.into_urls().into_iter().map(Source::url).collect())
}

fn nowhere() -> Error {
    let why = "no server is configured: give a URL or set LOCKTENDER_URL; redis://host, rediss://host, unix:///path, \
               or memory://name for locks within one process";
    Error::invalid("url", "", why.to_owned())
}

fn check(sources: &[Source], options: &ClientOptions) -> Result<(), Error> {
    let mut seen = Vec::new();
    for source in sources {
        if let Source::Url(url) = source {
            check_url(url, options)?;
            if seen.contains(&url) {
                return Err(Error::invalid("url", redis::redacted(url), "the same server is listed twice".into()));
            }
            seen.push(url);
        }
    }
    Ok(())
}

fn check_url(url: &str, options: &ClientOptions) -> Result<(), Error> {
    match memory_name(url) {
        Some("") => Err(Error::invalid("url", url, "memory:// needs a name: memory://name".into())),
        Some(_) => Ok(()),
        None => redis::check_url(url, options),
    }
}

/// The name in `memory://name`.
pub(crate) fn memory_name(url: &str) -> Option<&str> {
    url.strip_prefix("memory://")
}

#[cfg(test)]
mod tests {
    use crate::Client;
    use crate::error::Code;

    #[test]
    fn a_lock_that_is_silently_local_is_never_made() {
        let error = Client::open("").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(Client::open("memory://").unwrap_err().code(), Code::InvalidArgument);
        for none in [Client::open([""; 0]), Client::open(Vec::<String>::new())] {
            assert_eq!(none.unwrap_err().code(), Code::InvalidArgument, "not what the environment names");
        }
    }
}
