//! Open: how a program gets a client.

use super::Client;
use crate::api::builder::ClientBuilder;
use crate::api::urls::IntoUrls;
use crate::error::Error;

impl Client {
    /// A client of the server at a URL, or of the quorum of several, with default options. No I/O.
    ///
    /// Several URLs are a list, or one text with commas between them. The schemes are `redis`, `valkey`, `rediss` and `valkeys` (with
    /// TLS), `unix`, and `memory` for locks within this process.
    ///
    /// ```
    /// use locktender::Client;
    /// let one = Client::open("redis://localhost")?;
    /// let quorum = Client::open(["redis://a", "redis://b", "redis://c"])?;
    /// let the_same = Client::open("redis://a,redis://b,redis://c")?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL that is malformed or of an unknown scheme, and for an empty list.
    pub fn open(urls: impl IntoUrls) -> Result<Self, Error> {
        Self::builder().urls(urls).build()
    }

    /// A client of the servers that the environment's `LOCKTENDER_URL` names: one URL, or several with commas between them.
    ///
    /// ```no_run
    /// let client = locktender::Client::from_env()?; // LOCKTENDER_URL=redis://localhost
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not set, or as [`Client::open`].
    pub fn from_env() -> Result<Self, Error> {
        let client = Self::builder().build()?;
        client.0.sources()?;
        Ok(client)
    }

    /// A builder, for a client with options.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-client-builder").ttl(Duration::from_secs(30)).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }
}
