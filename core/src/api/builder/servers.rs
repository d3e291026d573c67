//! Servers: how a client gets to them: credentials, certificates, and addresses that are reached elsewhere.

use super::ClientBuilder;
use crate::api::setters::setters;
use crate::credentials::{CredentialsProvider, SharedProvider};

setters! { ClientBuilder, configure:
    /// Has `provider` give the user and the password for every server of the client, whatever its URL is. Default none: the URLs have
    /// them. The credentials of sentinels stay in the URL. With `memory://` it is refused.
    ///
    /// The provider is asked before a new connection, if its last answer has passed two thirds of its life, and by itself at that time:
    /// then the new credentials go to every live connection (`AUTH`), between its commands. No hold is lost by that. A password that
    /// the server refuses is asked for once more, at once. If that is refused, too, operations fail with `DENIED`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::{Client, Credentials};
    /// # async fn token() -> Result<String, std::io::Error> { Ok("token".into()) }
    /// let provider = || async {
    ///     Ok::<_, std::io::Error>(Credentials::new(token().await?).user("billing").expires_in(Duration::from_secs(900)))
    /// };
    /// let client = Client::builder().url("rediss://db.example").credentials(provider).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    credentials(provider: impl CredentialsProvider) |options| options.credentials = Some(SharedProvider::new(provider));

    /// A PEM file with the authorities to trust instead of the system's, for `rediss://`. Default none.
    ///
    /// ```
    /// # use locktender::Client;
    /// let no_file = Client::builder().url("rediss://db.example").tls_ca("/none/ca.pem").build();
    /// assert!(no_file.unwrap_err().to_string().starts_with("tls_ca: "));
    /// ```
    tls_ca(file: impl Into<String>) |options| options.tls_ca = Some(file.into());

    /// A PEM file with the client's certificate, for `rediss://`; it needs [`ClientBuilder::tls_key`]. Default none.
    ///
    /// ```
    /// # use locktender::Client;
    /// let alone = Client::builder().url("rediss://db.example").tls_cert("client.pem").build();
    /// assert_eq!(alone.unwrap_err().argument(), Some("tls_cert"));
    /// ```
    tls_cert(file: impl Into<String>) |options| options.tls_cert = Some(file.into());

    /// A PEM file with the private key of [`ClientBuilder::tls_cert`]. Default none.
    ///
    /// ```no_run
    /// # use locktender::Client;
    /// let client = Client::builder().url("rediss://db.example").tls_cert("client.pem").tls_key("client.key").build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    tls_key(file: impl Into<String>) |options| options.tls_key = Some(file.into());

    /// The name that every server with TLS is asked for (SNI), and that its certificate must have, whatever its host is. Default: the
    /// host of the URL, and for a node that sentinels or a cluster announce the announced host. The sentinels count, too, if they
    /// speak TLS.
    ///
    /// A node that is announced by its address may have a certificate for that, or for a host of the URL.
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder().url("rediss://127.0.0.1:7000").tls_name("db.example").build()?; // through a tunnel
    /// # Ok::<(), locktender::Error>(())
    /// ```
    tls_name(name: impl Into<String>) |options| options.tls_name = Some(name.into());
}

impl ClientBuilder {
    /// Where a node is reached that sentinels or a cluster announce at `announced`: at `reachable`. Both are a host and a port. For port
    /// forwarding, NAT and containers; each call adds one. Certificates have the announced name. Default: each node where it is
    /// announced.
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder()
    ///     .url("redis+sentinel://localhost:26379/mymaster")
    ///     .address_map("10.0.0.1:6379", "localhost:7001")
    ///     .address_map("10.0.0.2:6379", "localhost:7002")
    ///     .build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn address_map(mut self, announced: impl Into<String>, reachable: impl Into<String>) -> Self {
        self.options.address_map.insert(announced.into(), reachable.into());
        self
    }
}
