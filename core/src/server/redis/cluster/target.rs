//! Target of a cluster: the nodes of its URL, and what is needed to connect to any node.

use std::sync::Arc;

use rustls_pki_types::ServerName;

use crate::error::Error;
use crate::op::Failure;
use crate::options::ClientOptions;
use crate::server::redis::address::Address;
use crate::server::redis::address_map::AddressMap;
use crate::server::redis::cluster_url::ClusterUrl;
use crate::server::redis::login::Login;
use crate::server::redis::redacted::redacted;
use crate::server::redis::tls_names::{TlsNames, name};
use crate::server::redis::transport::tls::{self, Tls};
use crate::server::redis::url::{Endpoint, Target, check_credentials, login};

/// A cluster, before anything is known of it.
pub(crate) struct ClusterTarget {
    /// The address for messages: no user, no password.
    pub(crate) address: String,
    /// The nodes of the URL.
    pub(crate) seeds: Vec<Address>,
    login: Arc<Login>,
    tls: Option<Arc<Tls>>,
    hosts: Vec<String>,
    /// The name of all certificates, if there is one for all.
    tls_name: Option<ServerName<'static>>,
    address_map: AddressMap,
}

impl ClusterTarget {
    /// Reads a URL, and for TLS the certificate files.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL, a file or an address that can't be used.
    pub(crate) fn parse(text: &str, options: &ClientOptions) -> Result<Self, Error> {
        let url = ClusterUrl::parse(text).map_err(|why| Error::invalid("url", redacted(text), why))?;
        let (address, tls) = (url.address(), url.has_tls().then(|| tls::config(options)).transpose()?);
        let login = login(url.user, url.password);
        check_credentials(&login, text, options)?;
        Ok(Self {
            address,
            hosts: url.nodes.iter().map(|node| node.host.clone()).collect(),
            seeds: url.nodes,
            login,
            tls,
            tls_name: options.tls_name.as_deref().and_then(name),
            address_map: AddressMap::read(&options.address_map)?,
        })
    }

    /// The node that is announced at `announced`, or a node of the URL.
    ///
    /// # Errors
    /// `Tls` for a host that no certificate could have.
    pub(crate) fn node(&self, announced: &Address) -> Result<Target, Failure> {
        let place = self.address_map.reachable(announced).clone();
        let names = || TlsNames::announced(&announced.host, &self.hosts, self.tls_name.as_ref());
        let tls = self.tls.as_ref().map(|config| Ok((names()?, Arc::clone(config)))).transpose()?;
        let endpoint = Endpoint::Tcp { place, tls };
        Ok(Target { address: announced.to_string(), endpoint, login: Arc::clone(&self.login), database: 0 })
    }
}
