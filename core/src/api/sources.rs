//! Sources: the servers of a client, and the places that name them.

use std::sync::{Arc, OnceLock};

use crate::api::urls::{IntoUrls, with_plain_scheme};
use crate::clock::millis;
use crate::error::Error;
use crate::event::callback::caught;
use crate::options::{ClientOptions, Failover, wire_millis};
use crate::server::{Server, redis};
use crate::wording::{Part, Text};

/// The environment variable with the default client's URL or URLs.
const URL_VARIABLE: &str = "LOCKTENDER_URL";

/// A source of a server.
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

    /// The address, without credentials.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Url(url) => redis::redacted(url),
            Self::Own(server) => caught(|| server.address().to_owned()).unwrap_or_default(),
        }
    }
}

/// The servers of a client: those that it was given, or those that the environment names as soon as it names some.
pub(crate) struct Sources(OnceLock<Vec<Source>>);

impl Sources {
    /// Checks the given servers, or those that the environment names by now.
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
    /// `INVALID_ARGUMENT` as long as no server is named, and if the environment names one wrongly.
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
    if std::env::var_os(URL_VARIABLE).is_some_and(|url| url.to_str().is_none()) {
        return Error::invalid("url", "", "LOCKTENDER_URL is not UTF-8");
    }
    let why = "no server is configured: give a URL or set LOCKTENDER_URL; redis://host, rediss://host, unix:///path, \
               redis+sentinel://host/service, redis+cluster://host, or memory://name for locks within one process";
    Error::invalid("url", "", why)
}

fn check(sources: &[Source], options: &ClientOptions) -> Result<(), Error> {
    if sources.len() > 1 {
        check_default_ttl(options)?;
    }
    check_replicas_timeout(sources, options)?;
    check_cluster(sources, options)?;
    check_address_map(sources, options)?;
    let mut seen = Vec::new();
    for source in sources {
        if let Source::Url(url) = source {
            check_url(url, options)?;
            check_tls(url, options)?;
            if seen.contains(&url) {
                let why = "the same server is listed twice; a quorum needs independent servers";
                return Err(Error::invalid("url", redis::redacted(url), why));
            }
            seen.push(url);
        }
    }
    Ok(())
}

/// Refuses a quorum whose locks could only be acquired with a ttl of their own.
fn check_default_ttl(options: &ClientOptions) -> Result<(), Error> {
    if wire_millis(options.lock.ttl) <= millis(options.max_ttl) {
        return Ok(());
    }
    let why = "is below the {ttl} that locks have by default, {}, so that none could be acquired: give the client a {ttl}, too";
    Err(Error::invalid_time("max_ttl", options.max_ttl, Text::new(why, [Part::Time(options.lock.ttl)])))
}

/// Refuses an option for TLS and a server without TLS: otherwise the traffic would be plaintext, without any warning.
fn check_tls(url: &str, options: &ClientOptions) -> Result<(), Error> {
    let given = [
        ("tls_ca", &options.tls_ca),
        ("tls_cert", &options.tls_cert),
        ("tls_key", &options.tls_key),
        ("tls_name", &options.tls_name),
    ];
    match given.iter().find(|(_, given)| given.is_some()) {
        Some((option, Some(given))) if !redis::speaks_tls(url) => {
            let server = Part::Words(redis::redacted(url));
            let why = Text::new("is for servers with TLS, and {} is none: write rediss://, or leave it out", [server]);
            Err(Error::invalid(option, given, why))
        }
        _ => Ok(()),
    }
}

/// Refuses a wait for replicas that lasts until its answer is taken for lost: then each grant would cost a connection.
fn check_replicas_timeout(sources: &[Source], options: &ClientOptions) -> Result<(), Error> {
    let response_timeout = options.response_timeout_for(sources.len() == 1);
    if options.min_replicas == 0 || options.replicas_timeout < response_timeout {
        return Ok(());
    }
    let why = Text::new("must be below {response_timeout}, {}", [Part::Time(response_timeout)]);
    Err(Error::invalid_time("replicas_timeout", options.replicas_timeout, why))
}

/// Refuses a cluster among several servers, and quarantine for one: a marker belongs to a server, and a cluster has no key that all
/// its nodes could see.
fn check_cluster(sources: &[Source], options: &ClientOptions) -> Result<(), Error> {
    let cluster = sources.iter().find_map(|source| match source {
        Source::Url(url) if redis::is_of_cluster(url) => Some(url),
        _ => None,
    });
    let Some(url) = cluster else { return Ok(()) };
    if sources.len() > 1 {
        let why = "a cluster is one server with many nodes, and never one of several servers: give its URL alone, with any of its \
                   nodes, or the URLs of independent servers";
        return Err(Error::invalid("url", redis::redacted(url), why));
    }
    if options.failover == Failover::Quarantine {
        let why = "is for single servers, Sentinel, and several servers; on a cluster, {min_replicas} makes replicas confirm each grant";
        return Err(Error::invalid("failover", "quarantine", Text::new(why, [])));
    }
    Ok(())
}

/// Refuses a map of addresses where nobody announces any.
fn check_address_map(sources: &[Source], options: &ClientOptions) -> Result<(), Error> {
    let announces =
        |source: &Source| matches!(source, Source::Url(url) if redis::is_of_sentinel(url) || redis::is_of_cluster(url));
    if options.address_map.is_empty() || sources.iter().any(announces) {
        return Ok(());
    }
    let why = "is for the addresses that sentinels or the nodes of a cluster announce, and no URL is redis+sentinel:// or redis+cluster://";
    Err(Error::invalid("address_map", &options.address_map, why))
}

fn check_url(url: &str, options: &ClientOptions) -> Result<(), Error> {
    match memory_name(url) {
        Some("") => Err(Error::invalid("url", url, "memory:// needs a name: memory://name")),
        Some(_) if options.min_replicas > 0 => {
            let why = Text::new("{} is a server in this process, and has no replicas", [Part::Words(url.to_owned())]);
            Err(Error::invalid("min_replicas", options.min_replicas, why))
        }
        Some(_) if options.credentials.is_some() => {
            Err(Error::invalid("credentials", url, "is for servers, and this is one in this process, which asks for none"))
        }
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
    use std::time::Duration;

    use crate::error::Code;
    use crate::{Client, Credentials};

    #[test]
    fn a_lock_that_is_silently_local_is_never_made() {
        let error = Client::open("").unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(Client::open("memory://").unwrap_err().code(), Code::InvalidArgument);
        for none in [Client::open([""; 0]), Client::open(Vec::<String>::new())] {
            assert_eq!(none.unwrap_err().code(), Code::InvalidArgument, "not what the environment names");
        }
    }

    #[test]
    fn tls_files_for_a_server_without_tls_are_refused() {
        for url in ["redis://h", "valkey://h", "unix:///run/redis.sock", "memory://tls-files", "redis://a,rediss://b"] {
            if cfg!(not(unix)) && url.contains("unix") {
                continue;
            }
            for option in ["tls_ca", "tls_cert", "tls_name"] {
                let builder = Client::builder().urls(url);
                let builder = match option {
                    "tls_ca" => builder.tls_ca("ca.pem"),
                    "tls_cert" => builder.tls_cert("c").tls_key("k"),
                    _ => builder.tls_name("db.example"),
                };
                let error = builder.build().unwrap_err();
                assert!(error.to_string().contains("write rediss://"), "{url} {option}: {error}");
            }
        }
    }

    #[test]
    fn an_option_for_servers_is_refused_where_it_would_do_nothing_or_harm() {
        let at = |url: &str| Client::builder().url(url);
        let error = at("memory://credentials")
            .credentials(async || Ok::<_, std::io::Error>(Credentials::new("secret")))
            .build()
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("credentials: is for servers"), "{error}");
        let late = |millis| at("redis://h").min_replicas(1).replicas_timeout(Duration::from_millis(millis));
        assert!(late(999).build().is_ok());
        let error = late(1_000).build().unwrap_err().to_string();
        assert!(error.starts_with("replicas_timeout: must be below response_timeout, 1s (given: 1s)"), "{error}");
        assert!(late(1_000).response_timeout(Duration::from_secs(2)).build().is_ok());
    }

    #[test]
    fn a_quorum_whose_default_ttl_is_above_max_ttl_is_refused_by_both_names() {
        let quorum = || Client::builder().urls(["memory://1", "memory://2", "memory://3"]).max_ttl(Duration::from_secs(5));
        let text = quorum().build().unwrap_err().to_string();
        assert!(text.starts_with("max_ttl: is below the ttl that locks have by default, 10s"), "{text}");
        assert!(quorum().ttl(Duration::from_secs(5)).build().is_ok());
        assert!(Client::builder().url("memory://1").max_ttl(Duration::from_secs(5)).build().is_ok(), "no quorum, no bound");
    }
}
