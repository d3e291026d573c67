//! Options: plain data, every default in one place, validated here for all languages.

/// Makes options with a value each, of one list with their defaults.
macro_rules! with_defaults {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $option:ident: $type:ty = $default:expr;)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $option: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($option: $default,)* }
            }
        }
    };
}

mod app;
mod job;
mod lock;
mod members;
mod span;
mod unknown;
mod value;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use rustls_pki_types::ServerName;

use crate::credentials::SharedProvider;
use crate::error::Error;
use crate::name::{check_category, check_prefix};
use crate::owner::host_name;
use crate::wording::Text;

use app::check_app;
pub(crate) use job::since_epoch;
pub use job::{JobOverrides, Overlap};
pub use lock::{LockOptions, LockOverrides, Wait};
pub use members::{instead_of_event, instead_of_member, instead_of_member_of_several};
pub(crate) use span::MAX_SPAN;
pub use span::{MAX_TTL, MIN_TTL, milliseconds, seconds, suspicious};
pub(crate) use span::{check_span, wire_millis};
pub(crate) use unknown::NO_SCHEDULE;
pub use unknown::{Place, instead_of, options_of};
pub use value::{OptionRow, Options, Value, ValueKind};
use value::{from_value, option_rows};

/// The most replicas that a client may wait for.
const MAX_REPLICAS: u32 = 100;

impl LockOptions {
    fn check(&self) -> Result<(), Error> {
        check_span("ttl", self.ttl)?;
        check_span("min_hold", self.min_hold)?;
        check_span("grace", self.grace)?;
        self.category.as_deref().map_or(Ok(()), check_category)?;
        if let Wait::For(span) = self.wait {
            check_span("wait", span)?;
        }
        self.max_hold.map_or(Ok(()), |span| check_span("max_hold", span))
    }
}

/// The choices of [`Failover`].
const FAILOVERS: &str = "must be \"confirm\" or \"quarantine\"";

/// What a client does when another node answers for its server. A replica that was promoted may lack the locks that were granted
/// last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failover {
    /// Every hold is confirmed at once, and one that the new node lacks is lost. Two holders at a time are possible until then.
    #[default]
    Confirm,
    /// The new node grants nothing for [`max_ttl`](crate::ClientBuilder::max_ttl), and holds that it lacks are written there again. So a
    /// lock that the replica never received is not granted twice. All clients of the server need it, with the same `max_ttl`. A
    /// server that is new grants nothing for `max_ttl` either, unless [`Client::initialize_quorum`](crate::Client::initialize_quorum)
    /// vouches for it.
    Quarantine,
}

/// Reads the names `confirm` and `quarantine`.
impl FromStr for Failover {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "confirm" => Ok(Self::Confirm),
            "quarantine" => Ok(Self::Quarantine),
            other => Err(Error::invalid("failover", other, FAILOVERS)),
        }
    }
}

from_value! {
    Failover: Value::Text(name) => name.parse()?;
}

macro_rules! client_options {
    ($($(#[$doc:meta])* $option:ident $(($($kind:tt)+))?: $type:ty = $default:expr;)*) => {
        with_defaults! {
            /// The options of a client, each with a value. [`ClientOptions::default`] has the defaults.
            ///
            /// ```
            /// use locktender::{Client, ClientOptions};
            ///
            /// let mut options = ClientOptions::default();
            /// options.prefix = "prod:".into();
            /// let client = Client::builder().url("memory://docs-options").options(options).build()?;
            /// # Ok::<(), locktender::Error>(())
            /// ```
            #[doc(hidden)]
            pub struct ClientOptions {
                $($(#[$doc])* $option: $type = $default;)*
            }
        }

        option_rows! { ClientOptions: $($option $(($($kind)+))?,)* }
    };
}

client_options! {
    /// The prefix of every lock's key. Default empty; at most 256 bytes of UTF-8, without NUL.
    prefix(Text): String = String::new();
    /// The application's name, a part of each owner value. Default: the environment's `LOCKTENDER_APP`, else none; at most 256 bytes
    /// of UTF-8, without NUL.
    app(Text): Option<String> = None;
    /// The longest that making a connection may take, TLS included. Default 1 s; from 1 ms to 366 days.
    connect_timeout(Time): Duration = Duration::from_secs(1);
    /// The longest that a server's answer may take. Default 1 s, and 200 ms with more than one server; from 1 ms to 366 days.
    response_timeout(Time): Option<Duration> = None;
    /// How long an operation keeps trying while no majority can be reached, without the time in which this process is stopped.
    /// Default 5 s; from 1 ms to 366 days.
    unavailable_after(Time): Duration = Duration::from_secs(5);
    /// The longest that a hold may remain on a quorum, and so how long a server that is new or lost its data doesn't vote. Default
    /// 60 s; from 10 ms to 24 h. The same for all clients of the quorum.
    max_ttl(Time): Duration = Duration::from_secs(60);
    /// What is done when another node answers for a single server. Default [`Failover::Confirm`]. A quorum has its own quarantine.
    failover(Choice(FAILOVERS)): Failover = Failover::default();
    /// How many replicas have to confirm a grant, and every extension, before it counts. Default 0; at most 100. Not for servers that
    /// have no replicas: on a server in this process (`memory://`) it is refused.
    min_replicas(Count(0, MAX_REPLICAS)): u32 = 0;
    /// How long a server waits for its replicas. Default 100 ms; from 1 ms to 366 days.
    replicas_timeout(Time): Duration = Duration::from_millis(100);
    /// What gives the user and the password, for servers whose URL has none. Default none; see
    /// [`ClientBuilder::credentials`](crate::ClientBuilder::credentials).
    credentials(Function): Option<SharedProvider> = None;
    /// A PEM file with the authorities to trust instead of the system's. Default none.
    tls_ca(Path): Option<String> = None;
    /// A PEM file with the client's certificate. Default none.
    tls_cert(Path): Option<String> = None;
    /// A PEM file with the client certificate's key. Default none.
    tls_key(Path): Option<String> = None;
    /// The name that every server with TLS is asked for, and that its certificate must have. Default: that of each server.
    tls_name(Text): Option<String> = None;
    /// The address at which a node is reached, by the address that sentinels or a cluster announce; each with its port.
    /// Default empty.
    address_map(Addresses): BTreeMap<String, String> = BTreeMap::new();
    /// Whether this client's holds are noted in the history of a single server or of a cluster. Default true.
    history(Switch): bool = true;
    /// Whether the events `acquired`, `extended`, `released` and `handed_over` have the level info instead of debug. Default false.
    log_holds(Switch): bool = false;
    /// Whether operations do their I/O on the tokio runtime in which they are called, otherwise on this crate's own thread. Default true;
    /// false in a program built with `panic = "abort"`. See
    /// [`ClientBuilder::callers_runtime`](crate::ClientBuilder::callers_runtime).
    callers_runtime: bool = !cfg!(panic = "abort");
    /// The options of this client's locks that have none of their own.
    lock: LockOptions = LockOptions::default();
}

impl ClientOptions {
    /// The response timeout of a client of a single server, or of a quorum.
    #[must_use]
    pub(crate) fn response_timeout_for(&self, single_server: bool) -> Duration {
        let default = if single_server { Duration::from_secs(1) } else { Duration::from_millis(200) };
        self.response_timeout.unwrap_or(default)
    }

    /// The application, from the option or the environment.
    #[doc(hidden)]
    #[must_use]
    pub fn app_name(&self) -> Option<String> {
        self.app.clone().or_else(|| std::env::var("LOCKTENDER_APP").ok())
    }

    /// Checks every option.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the option and what was given.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_prefix(&self.prefix)?;
        check_app(&self.app_name().unwrap_or_default(), &host_name())?;
        check_span("connect_timeout", self.connect_timeout)?;
        self.response_timeout.map_or(Ok(()), |span| check_span("response_timeout", span))?;
        check_span("unavailable_after", self.unavailable_after)?;
        check_span("max_ttl", self.max_ttl)?;
        check_span("replicas_timeout", self.replicas_timeout)?;
        if self.min_replicas > MAX_REPLICAS {
            return Err(Error::invalid("min_replicas", self.min_replicas, format!("at most {MAX_REPLICAS}")));
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            let alone = self.tls_cert.as_ref().or(self.tls_key.as_ref()).map_or("", String::as_str);
            return Err(Error::invalid("tls_cert", alone, Text::new("{tls_cert} and {tls_key} go together", [])));
        }
        let is_name = |name: &String| ServerName::try_from(name.as_str()).is_ok();
        if let Some(name) = self.tls_name.as_ref().filter(|name| !is_name(name)) {
            return Err(Error::invalid("tls_name", name, "is no name or address that a certificate could have"));
        }
        self.lock.check()
    }
}
