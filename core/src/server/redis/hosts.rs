//! Hosts: the parts of a URL that names several hosts, as those of Sentinel and of Cluster do. Pure.

use std::net::Ipv6Addr;

use crate::server::redis::address::Address;
use crate::server::redis::mistakes::{ESCAPES, FRAGMENT, PORT};
use crate::wording::Text;

/// What the hosts are, for messages, and the port of one that names none.
pub(crate) struct Noun {
    pub(crate) one: &'static str,
    pub(crate) default_port: u16,
}

/// The parts of a URL. Path and query are as they stand there.
pub(crate) struct Parts<'a> {
    /// In small letters.
    pub(crate) scheme: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) hosts: Vec<Address>,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
}

impl<'a> Parts<'a> {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// A sentence that says what is wrong. It has no part of the URL that may be a password.
    pub(crate) fn read(text: &'a str, form: &'static str, noun: &Noun) -> Result<Self, Text> {
        let (scheme, rest) = text.split_once("://").ok_or(form)?;
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before.split_at(before.find('/').unwrap_or(before.len()));
        if path.contains('@') || query.contains('@') {
            return Err(ESCAPES.into());
        }
        if rest.contains('#') {
            return Err(Text::new(FRAGMENT, []));
        }
        let (login, hosts) = authority.rsplit_once('@').map_or((None, authority), |(login, hosts)| (Some(login), hosts));
        let (user, password) = login.map_or((None, None), |login| match login.split_once(':') {
            Some((user, password)) => (Some(user), Some(password)),
            None => (Some(login), None),
        });
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user: user.filter(|user| !user.is_empty()).map(decoded).transpose()?,
            password: password.map(decoded).transpose()?,
            hosts: addresses(hosts, noun)?,
            path,
            query,
        })
    }
}

fn addresses(hosts: &str, noun: &Noun) -> Result<Vec<Address>, Text> {
    let mut addresses = Vec::new();
    for host in hosts.split(',') {
        let address = address(host.trim(), noun)?;
        if addresses.contains(&address) {
            return Err(format!("names the {} {address} twice", noun.one).into());
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn address(text: &str, noun: &Noun) -> Result<Address, Text> {
    let no_host = || {
        let one = noun.one;
        Text::from(format!("each {one} is host or host:port, with a comma between two of them; one of these is no host"))
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let parts = rest.split_once(']').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok());
            let (host, port) = parts.ok_or_else(no_host)?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(PORT)?) })
        }
        None if text.parse::<Ipv6Addr>().is_ok() => {
            return Err(format!("an IPv6 address stands in brackets, as in [::1]:{}", noun.default_port).into());
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_fit = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_fit) {
        return Err(no_host());
    }
    let port = port.map_or(Ok(noun.default_port), |port| port.parse().ok().filter(|port| *port > 0).ok_or(PORT))?;
    Ok(Address { host: host.to_owned(), port })
}

/// A text without its percent escapes.
pub(crate) fn decoded(text: &str) -> Result<String, Text> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match byte {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => bytes.push(u8::try_from(16 * high + low).unwrap_or_default()),
                _ => return Err(ESCAPES.into()),
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|_| "has escapes that are no UTF-8".into())
}
