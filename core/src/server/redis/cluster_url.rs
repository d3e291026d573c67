//! Cluster URL: the nodes to ask first, and the credentials for all nodes. Pure.

use crate::server::redis::address::Address;
use crate::server::redis::hosts::{Noun, Parts, decoded};
use crate::server::redis::mistakes::instead_of_parameter;
use crate::wording::Text;

/// The form of such a URL.
pub(crate) const FORM: &str = "redis+cluster://[user:password@]host[:6379][,host[:port]…]";

const PLAIN: [&str; 2] = ["redis+cluster", "valkey+cluster"];
const WITH_TLS: [&str; 2] = ["rediss+cluster", "valkeys+cluster"];

const NODES: Noun = Noun { one: "node", default_port: 6_379 };

/// The parts of a URL of Cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClusterUrl {
    pub(crate) scheme: String,
    pub(crate) nodes: Vec<Address>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// Whether a scheme in small letters is one of Cluster.
pub(crate) fn is_of_cluster(scheme: &str) -> bool {
    PLAIN.contains(&scheme) || WITH_TLS.contains(&scheme)
}

impl ClusterUrl {
    /// Whether the nodes speak TLS.
    pub(crate) fn has_tls(&self) -> bool {
        WITH_TLS.contains(&&*self.scheme)
    }

    /// The URL without its credentials.
    pub(crate) fn address(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(Address::to_string).collect();
        format!("{}://{}", self.scheme, hosts.join(","))
    }

    /// Reads a URL whose scheme is one of Cluster.
    ///
    /// # Errors
    /// A sentence that says what is wrong. It has no part of the URL that may be a password.
    pub(crate) fn parse(text: &str) -> Result<Self, Text> {
        let Parts { scheme, user, password, hosts, path, query } = Parts::read(text, FORM, &NODES)?;
        database(path.trim_matches('/'))?;
        let mut url = Self { scheme, nodes: hosts, user, password };
        let mut seen = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(&value.replace('+', " "))?;
            let place = match key {
                "db" => {
                    database(&value)?;
                    continue;
                }
                "user" | "username" => &mut url.user,
                "pass" | "password" => &mut url.password,
                other => return Err(instead_of_parameter(other, "db, user and pass")),
            };
            if seen.contains(&&key[..4]) {
                return Err(format!("the parameter {key:?} is there twice").into());
            }
            if place.replace(value).is_some() {
                return Err("names two users or passwords, before the hosts and behind the ?; leave one out".into());
            }
            seen.push(&key[..4]);
        }
        Ok(url)
    }
}

/// Refuses every database but the first.
fn database(number: &str) -> Result<(), Text> {
    match number {
        "" | "0" => Ok(()),
        _ => Err("a cluster has database 0 alone: leave the number out, and give each application a prefix".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_some_nodes_and_the_credentials_of_all() {
        for (text, address, user, password, has_tls) in [
            ("redis+cluster://a", "redis+cluster://a:6379", None, None, false),
            ("redis+cluster://a:1,b,[::1]:3/", "redis+cluster://a:1,b:6379,[::1]:3", None, None, false),
            ("rediss+cluster://ann:hun%40ter@a/0", "rediss+cluster://a:6379", Some("ann"), Some("hun@ter"), true),
            ("valkeys+cluster://:p,w@a,b", "valkeys+cluster://a:6379,b:6379", None, Some("p,w"), true),
            ("valkey+cluster://a?user=ann&pass=x+y&db=0", "valkey+cluster://a:6379", Some("ann"), Some("x y"), false),
        ] {
            let url = ClusterUrl::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
            assert_eq!(url.address(), address);
            assert_eq!((url.user.as_deref(), url.password.as_deref(), url.has_tls()), (user, password, has_tls), "{text}");
        }
    }

    #[test]
    fn a_url_that_means_something_else_is_refused() {
        for (text, words) in [
            ("redis+cluster://", "each node is host or host:port"),
            ("redis+cluster://a,,b", "each node is host or host:port"),
            ("redis+cluster://a,a:6379", "names the node a:6379 twice"),
            ("redis+cluster://a:0", "the port must be a number"),
            ("redis+cluster://::1", "stands in brackets, as in [::1]:6379"),
            ("redis+cluster://a/1", "database 0 alone"),
            ("redis+cluster://a?db=3", "database 0 alone"),
            ("redis+cluster://a/mymaster", "database 0 alone"),
            ("redis+cluster://u:p@a?password=q", "two users or passwords"),
            ("redis+cluster://a?user=b&username=c", "is there twice"),
            ("redis+cluster://a?timeout=3", "the option"),
            ("redis+cluster://a#b", "a # begins"),
            ("redis+cluster://a/p@b", "is written %2F"),
        ] {
            let why = format!("{:?}", ClusterUrl::parse(text).unwrap_err());
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
