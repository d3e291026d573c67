//! Credentials: a user and a password that change while a client lives, and who provides them.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A user and a password for a server, and how long they are good.
///
/// Its debug output hides the password.
///
/// ```
/// use std::time::Duration;
/// use locktender::Credentials;
///
/// let token = Credentials::new("hunter2").user("billing").expires_in(Duration::from_secs(900));
/// assert!(!format!("{token:?}").contains("hunter2"));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Credentials {
    pub(crate) user: Option<String>,
    pub(crate) password: String,
    pub(crate) life: Option<Duration>,
}

impl Credentials {
    /// The password of the server's default user, good for an unknown time: the provider is asked again after 5 minutes.
    ///
    /// ```
    /// # use locktender::Credentials;
    /// let credentials = Credentials::new("hunter2");
    /// ```
    pub fn new(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into(), life: None }
    }

    /// Sets the user.
    ///
    /// ```
    /// # use locktender::Credentials;
    /// let credentials = Credentials::new("hunter2").user("billing");
    /// ```
    pub fn user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Sets how long the credentials are good from now on. When two thirds of that are over, the provider is asked for the next ones.
    /// Less than a second counts as a second.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Credentials;
    /// let token = Credentials::new("token").user("billing").expires_in(Duration::from_secs(900));
    /// ```
    pub fn expires_in(self, life: Duration) -> Self {
        Self { life: Some(life), ..self }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).field("life", &self.life).finish_non_exhaustive()
    }
}

/// The future of a [`CredentialsProvider`].
pub type CredentialsFuture<'a> = Pin<Box<dyn Future<Output = Result<Credentials, Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// Provides credentials that change: tokens of a cloud, a secret store, a file. See
/// [`ClientBuilder::credentials`](crate::ClientBuilder::credentials).
///
/// A function without arguments that gives a future is a provider, too. Implement the trait to know which server asks.
///
/// ```
/// use locktender::{Client, Credentials, CredentialsFuture, CredentialsProvider};
///
/// struct File(&'static str);
///
/// impl CredentialsProvider for File {
///     fn credentials<'a>(&'a self, _server: &'a str) -> CredentialsFuture<'a> {
///         Box::pin(async { Ok(Credentials::new(std::fs::read_to_string(self.0)?.trim())) })
///     }
/// }
///
/// let client = Client::builder().url("redis://db.example").credentials(File("/run/secrets/redis")).build()?;
/// # Ok::<(), locktender::Error>(())
/// ```
pub trait CredentialsProvider: Send + Sync + 'static {
    /// Gives the credentials for the server at this address, which has no credentials in it.
    ///
    /// It runs on a thread of its own, with a tokio runtime at hand: it may block, and delays no renewal. For each server there is
    /// one call at a time. A call that takes longer than the client's connect timeout is given up: its future is dropped.
    ///
    /// # Errors
    /// Any error. It becomes `DENIED`, with the error as its [source](std::error::Error::source).
    fn credentials<'a>(&'a self, server: &'a str) -> CredentialsFuture<'a>;
}

impl<F, R, E> CredentialsProvider for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = Result<Credentials, E>> + Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    fn credentials<'a>(&'a self, _server: &'a str) -> CredentialsFuture<'a> {
        let answer = self();
        Box::pin(async { answer.await.map_err(Into::into) })
    }
}

/// A provider that the clones of a client's options share. Two are equal if they are the same one.
#[doc(hidden)]
#[derive(Clone)]
pub struct SharedProvider(Arc<dyn CredentialsProvider>);

impl SharedProvider {
    /// Shares a provider.
    ///
    /// ```
    /// # use locktender::{ClientOptions, Credentials, SharedProvider};
    /// let mut options = ClientOptions::default();
    /// options.credentials = Some(SharedProvider::new(|| async { Ok::<_, std::io::Error>(Credentials::new("hunter2")) }));
    /// ```
    #[must_use]
    pub fn new(provider: impl CredentialsProvider) -> Self {
        Self(Arc::new(provider))
    }

    /// The provider.
    pub(crate) fn provider(&self) -> &Arc<dyn CredentialsProvider> {
        &self.0
    }
}

impl fmt::Debug for SharedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedProvider")
    }
}

impl PartialEq for SharedProvider {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedProvider {}
