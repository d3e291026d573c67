//! Address: the host and the port of a node or a sentinel.

use std::fmt;
use std::net::Ipv6Addr;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Reads a host and a port; an IPv6 address stands in brackets.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').filter(|host| host.parse::<Ipv6Addr>().is_ok())?,
            None => Some(host).filter(|host| host.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_')))?,
        };
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port })
    }

    /// The address that this node names: without a host it is this node's.
    pub(crate) fn elsewhere(&self, host: &str, port: u16) -> Self {
        Self { host: if host.is_empty() { self.host.clone() } else { host.to_owned() }, port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if *port == 0 {
            // A server by its URL.
            return f.write_str(host);
        }
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
