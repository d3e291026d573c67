//! Stream: a TCP connection to a host, within the connect timeout.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;

/// The time of silence after which the system asks a peer whether it is still there.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);

/// The pause between two such questions, and the number of questions after which the peer counts as gone.
pub(crate) const BETWEEN_QUESTIONS: Duration = Duration::from_secs(5);
pub(crate) const QUESTIONS: u32 = 3;

/// The time in which a peer has to acknowledge what was sent.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// The time that connecting may take, all stages together.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) at: Instant,
    pub(crate) span: Duration,
}

impl Limit {
    pub(crate) fn new(span: Duration) -> Self {
        Self { at: Instant::now() + span, span }
    }

    /// Waits for one stage. A stage `what` that doesn't end within the limit is a failure of `kind`.
    pub(crate) async fn keep<T>(self, kind: FailureKind, what: &str, stage: impl Future<Output = T>) -> Result<T, Failure> {
        let late = |_| Failure::not_applied(kind, format!("{what} within {} ms", self.span.as_millis()));
        timeout_at(self.at, stage).await.map_err(late)
    }
}

/// Tries the addresses one after the other: if several servers could answer, it is always the same one. Each address gets its share
/// of the time that is left, so that an address without any answer doesn't hide the others.
pub(crate) async fn tcp(place: &Address, limit: Limit) -> Result<TcpStream, Failure> {
    let addresses = resolve(place, limit).await?;
    let mut last = Failure::not_applied(FailureKind::Dns, format!("\"{}\" has no address", place.host));
    for (tried, address) in addresses.iter().enumerate() {
        let left = limit.at.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let part = Limit { at: Instant::now() + share, span: limit.span };
        match part.keep(FailureKind::Timeout, "no connection", TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Requests are small, and a caller waits for each of them. Without the option they are only slower.
                let _ = stream.set_nodelay(true);
                watch(&stream);
                return Ok(stream);
            }
            Ok(Err(error)) => last = unconnected(&error),
            Err(late) => last = late,
        }
    }
    Err(last)
}

/// Has the system end a connection whose peer has vanished without a word. Otherwise it would stay open for hours: a peer behind
/// a router that forgot the connection, or a machine that lost its power. A system that can't do all of it does a part.
fn watch(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(SILENCE);
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple", windows))]
    let keepalive = keepalive.with_interval(BETWEEN_QUESTIONS).with_retries(QUESTIONS);
    let _ = socket.set_tcp_keepalive(&keepalive);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
}

pub(crate) async fn resolve(Address { host, port }: &Address, limit: Limit) -> Result<Vec<SocketAddr>, Failure> {
    // An address needs no resolver, which would cost a thread.
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, *port)]);
    }
    let what = format!("\"{host}\" was not resolved");
    match limit.keep(FailureKind::Dns, &what, tokio::net::lookup_host((&**host, *port))).await? {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(Failure::not_applied(FailureKind::Dns, format!("\"{host}\" could not be resolved: {error}"))),
    }
}

/// The failure of a connection that was not made. If no server listens, or the host can't be reached, it is a refusal.
pub(crate) fn unconnected(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => FailureKind::Timeout,
        io::ErrorKind::PermissionDenied => FailureKind::Denied,
        _ => FailureKind::Refused,
    };
    Failure::not_applied(kind, format!("could not connect: {error}"))
}
