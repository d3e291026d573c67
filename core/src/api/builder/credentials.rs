//! The option about credentials of a [`ClientBuilder`].

use super::ClientBuilder;
use crate::credentials::{CredentialsProvider, SharedProvider};

impl ClientBuilder {
    /// Has `provider` give the user and the password for every server of the client, whatever its URL is. Default none: the URLs have
    /// them. The credentials of sentinels stay in the URL, and `memory://` needs none.
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
    pub fn credentials(mut self, provider: impl CredentialsProvider) -> Self {
        self.options.credentials = Some(SharedProvider::new(provider));
        self
    }
}
