//! URL: the parts of a server's URL, and a form of it without its password.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use redis::{ConnectionAddr, IntoConnectionInfo};
use rustls_pki_types::ServerName;

use crate::error::Error;
use crate::options::ClientOptions;
use crate::server::redis::address::Address;
use crate::server::redis::address_map::AddressMap;
use crate::server::redis::cluster_url::{self, ClusterUrl};
use crate::server::redis::known_sentinels::Known;
use crate::server::redis::login::Login;
use crate::server::redis::mistakes::{ESCAPES, FRAGMENT, PORT, instead_of_parameter};
use crate::server::redis::redacted::redacted;
use crate::server::redis::sentinel_url::{self, SentinelUrl};
use crate::server::redis::tls_names::{TlsNames, name};
use crate::server::redis::transport::tls::{self, Tls};
use crate::sync::Mutex;
use crate::wording::Text;

const FORMS: &str = "a server is redis://[user:password@]host[:port][/database], rediss://… for TLS (valkey:// and valkeys:// mean the \
                     same), unix:///path[?db=2&user=…&pass=…], redis+sentinel://host[,host…]/service, redis+cluster://host[,host…], \
                     or memory://name";

const IN_QUOTES: &str = "has quotes around it: a shell takes them away, a file of settings may not; leave them out";

const NO_SOCKETS: &str =
    "locktender has no Unix sockets on this system: let the server listen on a port, and write redis://host:port";

/// The schemes of servers without TLS, in small letters.
const PLAIN: [&str; 5] = ["redis", "valkey", "unix", "redis+unix", "valkey+unix"];
const WITH_TLS: [&str; 2] = ["rediss", "valkeys"];

/// The scheme of a URL, in small letters.
fn scheme(text: &str) -> String {
    text.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase()
}

/// Whether the server at a URL speaks TLS, or one of the sentinels that name it.
pub(crate) fn speaks_tls(text: &str) -> bool {
    let scheme = scheme(text);
    let of_sentinel = || SentinelUrl::parse(text).is_ok_and(|url| url.primary_tls() || url.sentinel_tls);
    let of_cluster = || ClusterUrl::parse(text).is_ok_and(|url| url.has_tls());
    WITH_TLS.contains(&&*scheme)
        || sentinel_url::is_of_sentinel(&scheme) && of_sentinel()
        || cluster_url::is_of_cluster(&scheme) && of_cluster()
}

/// Whether a URL is one of Sentinel.
pub(crate) fn is_of_sentinel(text: &str) -> bool {
    sentinel_url::is_of_sentinel(&scheme(text))
}

/// Whether a URL is one of Cluster.
pub(crate) fn is_of_cluster(text: &str) -> bool {
    cluster_url::is_of_cluster(&scheme(text))
}

/// The text about a scheme that no server has.
fn no_scheme_of_ours(scheme: &str, text: &str) -> String {
    if text.starts_with(['"', '\'', '`', '“', '‘']) {
        return IN_QUOTES.to_owned();
    }
    if scheme.contains("sentinel") {
        return format!("a service of Sentinel is {}, and rediss+sentinel://… for TLS", sentinel_url::FORM);
    }
    if scheme.contains("cluster") {
        return format!("a cluster is {}, and rediss+cluster://… for TLS", cluster_url::FORM);
    }
    let host = text.split_once(':').map_or(text, |(host, _)| host);
    let bare = !text.contains(['/', '@', ' ']) && !host.is_empty() && text.len() < 100;
    match text.split_once(':').map_or(bare, |(_, port)| bare && port.parse::<u16>().is_ok()) {
        true => format!("the scheme is missing: write redis://{text}"),
        false => FORMS.to_owned(),
    }
}

/// The place of a server, and the credentials for it.
pub(crate) struct Target {
    /// The address for messages: no user, no password.
    pub(crate) address: String,
    pub(crate) endpoint: Endpoint,
    /// The URL's user and password.
    pub(crate) login: Arc<Login>,
    pub(crate) database: i64,
}

/// The place to connect to.
#[cfg_attr(not(unix), allow(dead_code, reason = "the path of a Unix socket, which is refused before"))]
pub(crate) enum Endpoint {
    Tcp { place: Address, tls: Option<(TlsNames, Arc<Tls>)> },
    Unix { path: PathBuf },
    Sentinel(Arc<Service>),
}

impl Endpoint {
    /// The service that sentinels watch, if they have to be asked for the place.
    pub(crate) fn service(&self) -> Option<&Arc<Service>> {
        if let Self::Sentinel(service) = self { Some(service) } else { None }
    }
}

/// A service that sentinels watch.
pub(crate) struct Service {
    pub(crate) name: String,
    /// The credentials for the sentinels.
    pub(crate) login: Login,
    /// TLS of the sentinels, and of the primary.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) primary_tls: Option<Arc<Tls>>,
    pub(crate) known: Mutex<Known>,
    /// The hosts of the URL, and the name of all certificates, if there is one for all.
    pub(crate) hosts: Vec<String>,
    pub(crate) tls_name: Option<ServerName<'static>>,
    pub(crate) address_map: AddressMap,
}

/// The address is all that a debugger's output or a log needs, and all that it may have.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Target {
    /// Reads a URL, and for TLS the certificate files.
    pub(crate) fn parse(text: &str, options: &ClientOptions) -> Result<Self, Error> {
        let target = Self::of_url(text, options)?;
        check_credentials(&target.login, text, options)?;
        Ok(target)
    }

    fn of_url(text: &str, options: &ClientOptions) -> Result<Self, Error> {
        let refuse = |why: &str| Error::invalid("url", redacted(text), why);
        let scheme = scheme(text);
        if sentinel_url::is_of_sentinel(&scheme) {
            return Self::of_sentinel(text, options);
        }
        if !PLAIN.contains(&&*scheme) && !WITH_TLS.contains(&&*scheme) {
            return Err(refuse(&no_scheme_of_ours(&scheme, text)));
        }
        // Before the URL is read: what reads it knows no such schemes then.
        if cfg!(not(unix)) && scheme.contains("unix") {
            return Err(refuse(NO_SOCKETS));
        }
        if cfg!(not(feature = "tls")) && WITH_TLS.contains(&&*scheme) {
            tls::config(options)?;
        }
        let url = redis::parse_redis_url(text).ok_or_else(|| refuse(mistake(text).unwrap_or(FORMS)))?;
        let mistaken = || mistake(text).map(refuse);
        if url.fragment().is_some() {
            let meant = || Error::invalid("url", redacted(text), Text::new(FRAGMENT, []));
            return Err(mistaken().unwrap_or_else(meant));
        }
        if url.port() == Some(0) {
            return Err(refuse(PORT));
        }
        let query = Query::read(url.query_pairs()).map_err(|why| Error::invalid("url", redacted(text), why))?;
        let wrong = |error: &redis::RedisError| refuse(&format!("{}; {FORMS}", wrong_part(error)));
        let info = url.into_connection_info().map_err(|error| mistaken().unwrap_or_else(|| wrong(&error)))?;
        let settings = info.redis_settings();
        if query.database.is_some() && has_path_database(&scheme, text) {
            return Err(refuse("names two databases, one behind the host and one as ?db=; leave one out"));
        }
        let before_host = if scheme.contains("unix") { (None, None) } else { (settings.username(), settings.password()) };
        if query.user.is_some() && before_host.0.is_some() || query.password.is_some() && before_host.1.is_some() {
            return Err(refuse("names two users or passwords, before the host and behind the ?; leave one out"));
        }
        let database = query.database.unwrap_or(settings.db());
        if database < 0 {
            return Err(refuse("a database number is 0 or more"));
        }
        let (place, endpoint) = match info.addr() {
            addr @ (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) => {
                let place = Address { host: bare(host).ok_or_else(|| refuse(FORMS))?, port: *port };
                let mut tls = None;
                if matches!(addr, ConnectionAddr::TcpTls { .. }) {
                    let fixed = options.tls_name.as_deref().map_or_else(|| name(&place.host), name);
                    let names = TlsNames::only(fixed.ok_or_else(|| refuse("the host is no name a certificate could have"))?);
                    tls = Some((names, tls::config(options)?));
                }
                (place.to_string(), Endpoint::Tcp { place, tls })
            }
            ConnectionAddr::Unix(path) => (path.display().to_string(), Endpoint::Unix { path: path.clone() }),
            _ => return Err(refuse(FORMS)),
        };
        let suffix = match (&endpoint, database) {
            (_, 0) => String::new(),
            (Endpoint::Unix { .. }, number) => format!("?db={number}"),
            (_, number) => format!("/{number}"),
        };
        Ok(Self {
            address: format!("{scheme}://{place}{suffix}"),
            endpoint,
            login: login(
                query.user.or(settings.username().map(str::to_owned)),
                query.password.or(settings.password().map(str::to_owned)),
            ),
            database,
        })
    }

    fn of_sentinel(text: &str, options: &ClientOptions) -> Result<Self, Error> {
        let url = SentinelUrl::parse(text).map_err(|why| Error::invalid("url", redacted(text), why))?;
        let (address, primary_tls) = (url.address(), url.primary_tls());
        let config = if primary_tls || url.sentinel_tls { Some(tls::config(options)?) } else { None };
        let service = Service {
            name: url.service,
            login: Login { user: url.sentinel_user, password: url.sentinel_password },
            tls: config.clone().filter(|_| url.sentinel_tls),
            primary_tls: config.filter(|_| primary_tls),
            hosts: url.sentinels.iter().map(|sentinel| sentinel.host.clone()).collect(),
            known: Mutex::new(Known::new(url.sentinels)),
            tls_name: options.tls_name.as_deref().and_then(name),
            address_map: AddressMap::read(&options.address_map)?,
        };
        let endpoint = Endpoint::Sentinel(Arc::new(service));
        Ok(Self { address, endpoint, login: login(url.user, url.password), database: url.database })
    }
}

/// Refuses credentials of a URL beside those of a provider.
pub(crate) fn check_credentials(login: &Login, text: &str, options: &ClientOptions) -> Result<(), Error> {
    if options.credentials.is_some() && login.password.is_some() {
        let why = "has a user or a password, and the option credentials gives them, too: leave one of them out";
        return Err(Error::invalid("url", redacted(text), why));
    }
    Ok(())
}

/// A user without a password has an empty one.
pub(crate) fn login(user: Option<String>, password: Option<String>) -> Arc<Login> {
    let password = password.or_else(|| user.as_ref().map(|_| String::new()));
    Arc::new(Login { user, password })
}

/// The error for a URL whose parts are ambiguous.
fn mistake(text: &str) -> Option<&'static str> {
    let (_, rest) = text.split_once("://")?;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if tail.contains('@') && !text.to_ascii_lowercase().contains("unix:") {
        return Some(ESCAPES);
    }
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let after_host = place.rfind(']').unwrap_or(0);
    let port = place[after_host..].split_once(':').map(|(_, port)| port)?;
    port.parse::<u16>().is_err().then_some(PORT)
}

/// Whether there is a text behind the host's slash.
fn has_path_database(scheme: &str, text: &str) -> bool {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let before_query = rest.split('?').next().unwrap_or_default();
    !scheme.contains("unix") && before_query.split_once('/').is_some_and(|(_, path)| !path.is_empty())
}

/// The parameters of a URL. An unknown one is refused: an option that is silently ignored is a trap.
#[derive(Default)]
struct Query {
    database: Option<i64>,
    user: Option<String>,
    password: Option<String>,
}

impl Query {
    fn read<'a>(pairs: impl Iterator<Item = (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)>) -> Result<Self, Text> {
        let mut query = Self::default();
        for (key, value) in pairs {
            let twice = match key.as_ref() {
                "db" => query.database.replace(value.parse().map_err(|_| "db must be a number")?).is_some(),
                "user" | "username" => query.user.replace(value.into_owned()).is_some(),
                "pass" | "password" => query.password.replace(value.into_owned()).is_some(),
                other => return Err(instead_of_parameter(other, "db, user and pass")),
            };
            if twice {
                return Err(format!("the parameter {key:?} is there twice").into());
            }
        }
        Ok(query)
    }
}

/// A host in the form for resolving: present, and decoded.
fn bare(host: &str) -> Option<String> {
    (!host.is_empty() && !host.contains('%')).then(|| host.to_owned())
}

/// The crate's error about a URL: the part that is wrong, without its content.
fn wrong_part(error: &redis::RedisError) -> String {
    error.to_string().split(" - ").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
