//! Sources: which servers a client has, and where they are named.

use std::sync::{Arc, OnceLock};

use crate::error::Error;
use crate::options::ClientOptions;
use crate::server::{Server, redis};

/// The environment variable with the default client's URL or URLs.
pub const URL_VARIABLE: &str = "LOCKTENDER_URL";

/// Where a server comes from.
#[derive(Clone)]
pub(crate) enum Source {
    Url(String),
    Own(Arc<dyn Server>),
}

impl Source {
    /// The servers of one string, split at commas that are followed by `scheme://`.
    pub(crate) fn split(urls: &str) -> impl Iterator<Item = Self> {
        split_urls(urls).map(|url| Self::Url(url.to_owned()))
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
    Some(Source::split(&urls).collect())
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
    use crate::Client;
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
