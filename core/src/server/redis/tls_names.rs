//! TLS names: the name that a node is asked for, and the names that its certificate may have. Pure.

use std::net::IpAddr;

use rustls_pki_types::ServerName;

use crate::op::{Failure, FailureKind};

/// The names of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsNames {
    /// The name that the node is asked for, by which it chooses its certificate (SNI). An address is not sent.
    pub(crate) asked: ServerName<'static>,
    /// The names of which the certificate has one.
    pub(crate) accepted: Vec<ServerName<'static>>,
}

impl TlsNames {
    /// One name for both.
    pub(crate) fn only(name: ServerName<'static>) -> Self {
        Self { accepted: vec![name.clone()], asked: name }
    }

    /// The names of a node that is announced at `host`, by sentinels whose URL has these `hosts`. A node that is announced by its
    /// address may have a certificate for that, or for a host of the URL. With a `fixed` name nothing else counts.
    ///
    /// # Errors
    /// `Tls` for a host that no certificate could have.
    pub(crate) fn announced(host: &str, hosts: &[String], fixed: Option<&ServerName<'static>>) -> Result<Self, Failure> {
        if let Some(fixed) = fixed {
            return Ok(Self::only(fixed.clone()));
        }
        let own = name(host).ok_or_else(|| Failure::not_applied(FailureKind::Tls, UNFIT))?;
        if host.parse::<IpAddr>().is_err() {
            return Ok(Self::only(own));
        }
        let of_url = hosts.iter().filter_map(|host| name(host));
        let mut accepted = vec![own.clone()];
        of_url.for_each(|name| accepted.extend(Some(name).filter(|name| !accepted.contains(name))));
        let asked = accepted.iter().find(|name| matches!(name, ServerName::DnsName(_))).cloned();
        Ok(Self { asked: asked.unwrap_or(own), accepted })
    }
}

/// A host as a certificate has it.
pub(crate) fn name(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).ok()
}

const UNFIT: &str = "this is no name that a certificate could have";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_asked_by_the_name_that_it_announces_and_one_with_an_address_by_the_name_of_the_url() {
        for (host, of_url, fixed, asked, accepted) in [
            ("db.example", &["s.example"][..], None, "db.example", &["db.example"][..]),
            ("db.example", &["s.example"], Some("one.example"), "one.example", &["one.example"]),
            ("10.0.0.1", &["s.example"], Some("one.example"), "one.example", &["one.example"]),
            ("10.0.0.1", &["s.example"], None, "s.example", &["10.0.0.1", "s.example"]),
            (
                "10.0.0.1",
                &["10.0.0.9", "s.example", "t.example"],
                None,
                "s.example",
                &["10.0.0.1", "10.0.0.9", "s.example", "t.example"],
            ),
            ("10.0.0.1", &["10.0.0.1", "10.0.0.9"], None, "10.0.0.1", &["10.0.0.1", "10.0.0.9"]),
            ("fd00::1", &["s.example"], None, "s.example", &["fd00::1", "s.example"]),
        ] {
            let of_url: Vec<String> = of_url.iter().map(|host| (*host).to_owned()).collect();
            let names = TlsNames::announced(host, &of_url, fixed.and_then(name).as_ref()).unwrap();
            let expected: Vec<_> = accepted.iter().map(|host| name(host).unwrap()).collect();
            assert_eq!((names.asked, names.accepted), (name(asked).unwrap(), expected), "{host} {fixed:?}");
        }
        assert_eq!(TlsNames::announced("no host", &[], None).unwrap_err().kind, FailureKind::Tls);
    }
}
