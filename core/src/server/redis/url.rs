//! URL: the parts of a server's URL, and a form of it without its password.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use redis::{ConnectionAddr, IntoConnectionInfo};
use rustls::pki_types::ServerName;

use crate::error::Error;
use crate::options::ClientOptions;
use crate::server::redis::transport::tls;
use crate::wording::{Part, Text};

const FORMS: &str = "a server is redis://[user:password@]host[:port][/database], rediss://… for TLS (valkey:// and valkeys:// mean the \
                     same), or unix:///path[?db=2&user=…&pass=…]";

/// The schemes of servers without TLS, in small letters.
const PLAIN: [&str; 5] = ["redis", "valkey", "unix", "redis+unix", "valkey+unix"];
const WITH_TLS: [&str; 2] = ["rediss", "valkeys"];

/// Whether a scheme, in any case, is the scheme of a server with TLS.
pub(crate) fn speaks_tls(scheme: &str) -> bool {
    WITH_TLS.contains(&scheme.to_ascii_lowercase().as_str())
}

/// The text about a scheme that no server has.
fn no_scheme_of_ours(scheme: &str, text: &str) -> String {
    if scheme.contains("sentinel") {
        return "Sentinel URLs are not supported yet; what works is the primary's own URL, or that of a name or proxy which always \
                leads to the primary"
            .to_owned();
    }
    if scheme.contains("cluster") {
        return "Cluster URLs are not supported yet; what works is a server without cluster mode, redis://host".to_owned();
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
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: i64,
}

/// The place to connect to.
pub(crate) enum Endpoint {
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16, name: ServerName<'static>, config: Arc<rustls::ClientConfig> },
    Unix { path: PathBuf },
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
        let refuse = |why: &str| Error::invalid("url", redacted(text), why);
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        if !PLAIN.contains(&scheme.as_str()) && !speaks_tls(&scheme) {
            return Err(refuse(&no_scheme_of_ours(&scheme, text)));
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
            ConnectionAddr::Tcp(host, port) => {
                let host = bare(host).ok_or_else(|| refuse(FORMS))?;
                (format!("{}:{port}", bracketed(&host)), Endpoint::Tcp { host, port: *port })
            }
            ConnectionAddr::TcpTls { host, port, .. } => {
                let host = bare(host).ok_or_else(|| refuse(FORMS))?;
                let name =
                    ServerName::try_from(host.clone()).map_err(|_| refuse("the host is no name a certificate could have"))?;
                let config = tls::config(options)?;
                (format!("{}:{port}", bracketed(&host)), Endpoint::Tls { host, port: *port, name, config })
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
            user: query.user.or(settings.username().map(str::to_owned)),
            password: query.password.or(settings.password().map(str::to_owned)),
            database,
        })
    }
}

const PORT: &str = "the port must be a number from 1 to 65535";

const ESCAPES: &str = "in a user or a password / is written %2F, ? is %3F, # is %23, @ is %40 and % is %25";

const FRAGMENT: &str = "a # begins what has no meaning here: in a user or a password it is written %23; certificate checks can't be \
                        switched off: give the authority's certificate with the option {tls_ca}";

/// What is wrong with a URL whose parts can't be told apart.
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
                other => return Err(instead_of_parameter(other)),
            };
            if twice {
                return Err(format!("the parameter {key:?} is there twice").into());
            }
        }
        Ok(query)
    }
}

/// What to do instead of giving this parameter: those of other clients have an option here.
fn instead_of_parameter(key: &str) -> Text {
    let said = match key.to_ascii_lowercase().replace('-', "_").as_str() {
        // The end of a password, which must not be shown.
        rest if rest.contains('@') => return ESCAPES.into(),
        "ssl_ca_certs" | "ssl_ca_path" | "cacert" | "tls_ca" => {
            "the parameter {} is no part of a URL here: give the file as {tls_ca}"
        }
        "ssl_certfile" | "tls_cert" => "the parameter {} is no part of a URL here: give the file as {tls_cert}",
        "ssl_keyfile" | "tls_key" => "the parameter {} is no part of a URL here: give the file as {tls_key}",
        "ssl" | "tls" => "the parameter {} is no part of a URL here: a URL with TLS begins with rediss://",
        ssl if ["ssl", "tls", "insecure", "verify", "reject"].iter().any(|begin| ssl.starts_with(begin)) => {
            "the parameter {} does not exist: certificate checks can't be switched off; give the authority's certificate with the option \
             {tls_ca}"
        }
        "socket_timeout" | "timeout" => "the parameter {} is no part of a URL here: give the option {response_timeout}",
        "socket_connect_timeout" | "connect_timeout" => {
            "the parameter {} is no part of a URL here: give the option {connect_timeout}"
        }
        _ => "the parameter {} is no part of a URL here: there are db, user and pass, and all else is an option",
    };
    Text::new(said, [Part::Words(format!("{key:?}"))])
}

/// A host in the form for resolving: present, and decoded.
fn bare(host: &str) -> Option<String> {
    (!host.is_empty() && !host.contains('%')).then(|| host.to_owned())
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// A URL, well-formed or not, in which everything that may be a password is masked: the part before the last `@`, the part after a
/// `?` or `#`, and a "port" that isn't a number.
pub(crate) fn redacted(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let mut shown = if text.contains("://") { format!("{scheme}://") } else { String::new() };
    let tail_at = rest.find(['?', '#']);
    let rest = match (rest.rfind('@'), tail_at) {
        // An `@` behind a `?` may belong to either; nothing is safe to show.
        (Some(at), Some(tail)) if tail < at => return shown + "***",
        (Some(at), _) => {
            shown.push_str("***@");
            &rest[at + 1..]
        }
        (None, _) => rest,
    };
    let (rest, tail) = rest.find(['?', '#']).map_or((rest, ""), |at| (&rest[..at], "?***"));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let after_host = if authority.starts_with('[') { authority.find(']').unwrap_or(0) } else { 0 };
    match authority[after_host..].find(':').map(|at| authority.split_at(after_host + at)) {
        Some((host, port)) if host.is_empty() || !port[1..].bytes().all(|byte| byte.is_ascii_digit()) => {
            shown.push_str(&format!("{host}:***"));
        }
        _ => shown.push_str(authority),
    }
    shown + path + tail
}

/// The crate's error about a URL: the part that is wrong, without its content.
fn wrong_part(error: &redis::RedisError) -> String {
    error.to_string().split(" - ").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn parse(url: &str) -> Result<Target, Error> {
        Target::parse(url, &ClientOptions::default())
    }

    #[test]
    fn urls_say_what_redis_clients_take_them_to_say() {
        for (url, address, user, password, database) in [
            ("redis://localhost", "redis://localhost:6379", None, None, 0),
            ("redis://localhost/", "redis://localhost:6379", None, None, 0),
            ("redis://:s3cret@db.example:7000/4", "redis://db.example:7000/4", None, Some("s3cret"), 4),
            ("redis://ann:p%40ss%2Fw%25rd@h/0", "redis://h:6379", Some("ann"), Some("p@ss/w%rd"), 0),
            ("redis://ann@h", "redis://h:6379", Some("ann"), None, 0),
            ("redis://h?db=3&user=bob&pass=x%20y", "redis://h:6379/3", Some("bob"), Some("x y"), 3),
            ("redis://[::1]:6380/2", "redis://[::1]:6380/2", None, None, 2),
            ("unix:///run/redis.sock", "unix:///run/redis.sock", None, None, 0),
            ("REDIS://Db.Example/1", "redis://Db.Example:6379/1", None, None, 1),
            ("redis://h/?db=4", "redis://h:6379/4", None, None, 4),
            ("valkey://ann:p@h:7000/2", "valkey://h:7000/2", Some("ann"), Some("p"), 2),
            ("valkey+unix:///run/valkey.sock?db=1", "valkey+unix:///run/valkey.sock?db=1", None, None, 1),
            ("redis+unix:///a%20b.sock?db=2&pass=p&user=u", "redis+unix:///a b.sock?db=2", Some("u"), Some("p"), 2),
        ] {
            let target = parse(url).unwrap();
            let found = (&*target.address, target.user.as_deref(), target.password.as_deref(), target.database);
            assert_eq!(found, (address, user, password, database), "{url}");
        }
    }

    #[test]
    fn a_url_that_is_none_is_an_argument_error_without_its_password() {
        for url in [
            "",
            "localhost",
            "localhost:6379",
            "http://x:hunter2@localhost",
            "redis:hunter2@localhost",
            "redis://",
            "redis://:hunter2",
            "redis://:hunter2@",
            "redis://host:hunter2",
            "redis://x:hun/ter2@localhost:port",
            "redis://x:hunter2@localhost/notanumber",
            "redis://x:hunter2@localhost/-1",
            "redis://x:hunter2@localhost?db=one",
            "redis://localhost?passwort=hunter2",
            "redis://x:hun?ter2@localhost",
            "redis://x:1?hunter2@localhost",
            "redis://x:1/hunter2@localhost",
            "redis://x:1#hunter2@localhost",
            "redis://x:hunter2@localhost#insecure",
            "redis://x:%ff@localhost",
            "unix://relative/path",
            "unix:///path?pass=hunter2&db=x",
            "unix:///path?pass=hun@ter2&db=x",
            "redis://x:hunter2@localhost/3?db=4",
            "redis://x:hunter2@localhost?db=3&db=4",
            "redis://x:hunter2@localhost?pass=hunter2",
            "redis://x:hunter2@localhost?user=y",
            "redis+sentinel://x:hunter2@a,b/primary",
            "rediss+cluster://x:hunter2@a",
        ] {
            let error = parse(url).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{url}");
            let text = format!("{error} {error:?}");
            assert!(!text.contains("ter2") && !text.contains("hun"), "{url}: {text}");
            assert!(text.starts_with("url: "), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        for (url, told) in [
            ("redis+sentinel://a,b/primary", "Sentinel URLs are not supported yet; what works is"),
            ("SENTINEL://a", "Sentinel URLs are not supported yet"),
            ("redis-cluster://a", "Cluster URLs are not supported yet; what works is"),
            ("localhost", "write redis://localhost"),
            ("localhost:6380", "write redis://localhost:6380"),
            ("db.example", "write redis://db.example"),
            ("hunter2@host", "a server is redis://"),
            ("http://localhost", "valkeys:// mean the same"),
            ("redis://h/3?db=4", "two databases"),
            ("redis://ann@h?user=bob", "two users"),
            ("redis://h?db=1&db=1", "there twice"),
            ("redis://h:0", "the port must be a number from 1 to 65535"),
            ("redis://h:65536", "the port must be a number from 1 to 65535"),
            ("redis://ann:p@h:99999/1", "the port must be a number from 1 to 65535"),
            ("redis://[::1]:port", "the port must be a number from 1 to 65535"),
            ("redis://ann:a/b@h", "/ is written %2F"),
            ("redis://ann:a?b@h:6379", "? is %3F"),
            ("redis://ann:1/b@h:6379", "/ is written %2F"),
            ("redis://ann:1#b@h:6379", "# is %23"),
            ("redis://h#insecure", "it is written %23; certificate checks can't be switched off: give"),
            ("rediss://h?ssl_cert_reqs=none", "certificate checks can't be switched off"),
            ("rediss://h?ssl_check_hostname=false", "certificate checks can't be switched off"),
            ("rediss://h?ssl_ca_certs=/ca.pem", "give the file as tls_ca"),
            ("redis://h?socket_timeout=5", "give the option response_timeout"),
            ("redis://h?protocol=3", "there are db, user and pass"),
        ] {
            let text = parse(url).unwrap_err().to_string();
            assert!(text.contains(told), "{url}: {text}");
        }
    }

    #[test]
    fn a_scheme_has_no_case_and_may_be_valkeys() {
        for (scheme, tls) in [("Redis", false), ("valkey", false), ("unix", false), ("RedisS", true), ("VALKEYS", true)] {
            assert_eq!(speaks_tls(scheme), tls, "{scheme}");
        }
        let options = ClientOptions { tls_ca: Some("/none.pem".into()), ..ClientOptions::default() };
        assert!(Target::parse("VALKEYS://h", &options).unwrap_err().to_string().starts_with("tls_ca: "), "it reads the file");
    }

    #[test]
    fn what_is_shown_of_a_target_has_no_credentials() {
        let target = parse("redis://ann:hunter2@localhost/1").unwrap();
        assert_eq!(format!("{target:?}"), "Target { address: \"redis://localhost:6379/1\", .. }");
    }

    #[test]
    fn a_certificate_file_that_cannot_be_read_is_named() {
        let options = ClientOptions { tls_ca: Some("/does/not/exist.pem".into()), ..ClientOptions::default() };
        let error = Target::parse("rediss://localhost", &options).unwrap_err();
        assert!(error.to_string().starts_with("tls_ca: ") && error.to_string().contains("/does/not/exist.pem"), "{error}");
    }
}
