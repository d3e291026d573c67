//! Sentinel URL: the sentinels to ask, the service that they watch, and the credentials for both. Pure.

use crate::server::redis::address::Address;
use crate::server::redis::hosts::{Noun, Parts, decoded};
use crate::server::redis::mistakes::instead_of_parameter;
use crate::wording::Text;

/// The form of such a URL.
pub(crate) const FORM: &str =
    "redis+sentinel://[user:password@]host[:26379][,host[:port]…]/service[/database][?sentinel_user=…&sentinel_password=…]";

const PLAIN: [&str; 2] = ["redis+sentinel", "valkey+sentinel"];
const WITH_TLS: [&str; 2] = ["rediss+sentinel", "valkeys+sentinel"];

const SENTINELS: Noun = Noun { one: "sentinel", default_port: 26_379 };

const PARAMETERS: &str = "db, user, pass, sentinel_user, sentinel_password and sentinel_tls";

/// The parts of a URL of Sentinel. `user` and `password` are for the primary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SentinelUrl {
    pub(crate) scheme: String,
    pub(crate) sentinels: Vec<Address>,
    pub(crate) service: String,
    pub(crate) database: i64,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) sentinel_user: Option<String>,
    pub(crate) sentinel_password: Option<String>,
    /// Whether the sentinels speak TLS. The scheme says it of the primary.
    pub(crate) sentinel_tls: bool,
}

/// Whether a scheme in small letters is one of Sentinel.
pub(crate) fn is_of_sentinel(scheme: &str) -> bool {
    PLAIN.contains(&scheme) || WITH_TLS.contains(&scheme)
}

impl SentinelUrl {
    /// Whether the primary speaks TLS.
    pub(crate) fn primary_tls(&self) -> bool {
        WITH_TLS.contains(&&*self.scheme)
    }

    /// The URL without its credentials.
    pub(crate) fn address(&self) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(Address::to_string).collect();
        let database = if self.database == 0 { String::new() } else { format!("/{}", self.database) };
        format!("{}://{}/{}{database}", self.scheme, hosts.join(","), self.service)
    }

    /// Reads a URL whose scheme is one of Sentinel.
    ///
    /// # Errors
    /// A sentence that says what is wrong. It has no part of the URL that may be a password.
    pub(crate) fn parse(text: &str) -> Result<Self, Text> {
        let Parts { scheme, user, password, hosts, path, query } = Parts::read(text, FORM, &SENTINELS)?;
        let mut url = Self {
            scheme,
            sentinels: hosts,
            service: String::new(),
            database: 0,
            user,
            password,
            sentinel_user: None,
            sentinel_password: None,
            sentinel_tls: false,
        };
        url.sentinel_tls = url.primary_tls();
        let database = url.take_path(path)?;
        url.take_query(query, database)?;
        Ok(url)
    }

    /// Takes the service and the database behind the hosts; gives the database.
    fn take_path(&mut self, path: &str) -> Result<Option<i64>, Text> {
        let mut segments = path.strip_prefix('/').unwrap_or_default().splitn(2, '/');
        self.service = decoded(segments.next().unwrap_or_default())?;
        if self.service.is_empty() {
            return Err("names no service: behind the hosts stands the name that the sentinels watch the primary by, as in \
                        redis+sentinel://host/mymaster"
                .into());
        }
        if self.service.chars().any(char::is_control) {
            return Err("the name of a service has no control characters".into());
        }
        match segments.next().unwrap_or_default().trim_end_matches('/') {
            "" => Ok(None),
            number => Ok(Some(database(number)?)),
        }
    }

    /// Takes the parameters behind the `?`.
    fn take_query(&mut self, query: &str, mut database_of_path: Option<i64>) -> Result<(), Text> {
        let (mut seen, mut database_of_query) = (Vec::new(), None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(&value.replace('+', " "))?;
            let key = match key {
                "username" => "user",
                "password" => "pass",
                key => key,
            };
            match key {
                "db" => database_of_query = Some(database(&value)?),
                "user" | "pass" => {
                    let place = if key == "user" { &mut self.user } else { &mut self.password };
                    if place.is_some() && !seen.contains(&key) {
                        return Err("names two users or passwords, before the hosts and behind the ?; leave one out".into());
                    }
                    *place = Some(value);
                }
                "sentinel_user" | "sentinel_username" => self.sentinel_user = Some(value),
                "sentinel_password" => self.sentinel_password = Some(value),
                "sentinel_tls" => {
                    self.sentinel_tls = match &*value {
                        "yes" => true,
                        "no" => false,
                        _ => return Err("sentinel_tls is yes or no".into()),
                    };
                }
                other => return Err(instead_of_parameter(other, PARAMETERS)),
            }
            if seen.contains(&key) {
                return Err(format!("the parameter {key:?} is there twice").into());
            }
            seen.push(key);
        }
        if self.sentinel_user.is_some() && self.sentinel_password.is_none() {
            return Err("has a sentinel_user without a sentinel_password".into());
        }
        if database_of_path.is_some() && database_of_query.is_some() {
            return Err("names two databases, one behind the service and one as ?db=; leave one out".into());
        }
        self.database = database_of_path.take().or(database_of_query).unwrap_or(0);
        Ok(())
    }
}

fn database(text: &str) -> Result<i64, Text> {
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| "what stands behind the service is a database: a number, 0 or more".into())
}

#[cfg(test)]
#[path = "sentinel_url_tests.rs"]
mod tests;
