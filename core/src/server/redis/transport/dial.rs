//! Dialing: from a target to a connected socket, within the connect timeout.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::op::{Failure, FailureKind};
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::socket::Socket;
use crate::server::redis::transport::tls;
use crate::server::redis::url::Endpoint;

/// The time of silence after which the system asks a peer whether it is still there.
const SILENCE: Duration = Duration::from_secs(15);

/// The pause between two such questions, and the number of questions after which the peer counts as gone.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(5);
const QUESTIONS: u32 = 3;

/// The silence in a TLS handshake after which a server is asked for an answer without TLS, and at most a quarter of the whole time.
const DUMB: Duration = Duration::from_millis(250);

/// The time in which a peer has to acknowledge what was sent.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// The time that connecting may take, all stages together.
#[derive(Clone, Copy)]
struct Limit {
    at: Instant,
    span: Duration,
}

impl Limit {
    fn new(span: Duration) -> Self {
        Self { at: Instant::now() + span, span }
    }

    /// Waits for one stage. A stage `what` that doesn't end within the limit is a failure of `kind`.
    async fn keep<T>(self, kind: FailureKind, what: &str, stage: impl Future<Output = T>) -> Result<T, Failure> {
        let late = |_| Failure::not_applied(kind, format!("{what} within {} ms", self.span.as_millis()));
        timeout_at(self.at, stage).await.map_err(late)
    }
}

/// Connects a socket to the target, and does the TLS handshake where the target needs one.
pub(crate) async fn dial(settings: &Settings) -> Result<Socket, Failure> {
    let limit = Limit::new(settings.connect_timeout);
    match &settings.target.endpoint {
        Endpoint::Tcp { host, port } => Ok(Socket::Tcp(tcp(host, *port, limit).await?)),
        Endpoint::Tls { host, port, name, config } => {
            let stream = tcp(host, *port, limit).await?;
            shake_hands(stream, (name.clone(), Arc::clone(config)), settings, limit).await
        }
        #[cfg(unix)]
        Endpoint::Unix { path } => {
            let connected = limit.keep(FailureKind::Timeout, "no connection", tokio::net::UnixStream::connect(path)).await?;
            Ok(Socket::Unix(connected.map_err(|error| unconnected(&error))?))
        }
        #[cfg(not(unix))]
        Endpoint::Unix { .. } => Err(Failure::not_applied(FailureKind::Other, "this system has no unix sockets")),
    }
}

/// Tries the addresses one after the other: if several servers could answer, it is always the same one. Each address gets its share
/// of the time that is left, so that an address without any answer doesn't hide the others.
async fn tcp(host: &str, port: u16, limit: Limit) -> Result<TcpStream, Failure> {
    let addresses = resolve(host, port, limit).await?;
    let mut last = Failure::not_applied(FailureKind::Dns, format!("\"{host}\" has no address"));
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

/// The addresses of the target; none for a unix socket, and where nobody knows them.
pub(crate) async fn addresses(settings: &Settings) -> Vec<SocketAddr> {
    match &settings.target.endpoint {
        Endpoint::Tcp { host, port } | Endpoint::Tls { host, port, .. } => {
            resolve(host, *port, Limit::new(settings.connect_timeout)).await.unwrap_or_default()
        }
        Endpoint::Unix { .. } => Vec::new(),
    }
}

async fn resolve(host: &str, port: u16, limit: Limit) -> Result<Vec<SocketAddr>, Failure> {
    // An address needs no resolver, which would cost a thread.
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let what = format!("\"{host}\" was not resolved");
    match limit.keep(FailureKind::Dns, &what, tokio::net::lookup_host((host, port))).await? {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) => Err(Failure::not_applied(FailureKind::Dns, format!("\"{host}\" could not be resolved: {error}"))),
    }
}

async fn shake_hands(
    stream: TcpStream,
    (name, config): (ServerName<'static>, Arc<rustls::ClientConfig>),
    settings: &Settings,
    limit: Limit,
) -> Result<Socket, Failure> {
    let peer = stream.peer_addr().ok().filter(|_| !settings.has_answered());
    let shaking = limit.keep(FailureKind::Tls, "no TLS handshake", TlsConnector::from(config).connect(name, stream));
    let shaken = tokio::select! {
        biased;
        shaken = shaking => shaken,
        () = answers_without_tls(peer, limit) => return Err(tls::plain()),
    };
    match shaken {
        Ok(Ok(stream)) => {
            settings.answered();
            Ok(Socket::Tls(Box::new(stream)))
        }
        Ok(Err(error)) => Err(tls::failure(&error, settings.has_answered())),
        Err(late) if settings.has_answered() => Err(late),
        Err(late) => Err(Failure { message: late.message + tls::DOUBT, ..late }),
    }
}

/// Ends when what listens at `peer` answers a command without TLS. A Redis without TLS takes the begin of a handshake for a command
/// that is not complete, and waits in silence; so it is asked on another connection. A server that shakes hands soon is not asked.
async fn answers_without_tls(peer: Option<SocketAddr>, limit: Limit) {
    let ask = async {
        tokio::time::sleep((limit.span / 4).min(DUMB)).await;
        let mut stream = TcpStream::connect(peer?).await.ok()?;
        stream.write_all(b"PING\r\n").await.ok()?;
        stream.read_u8().await.ok().filter(|first| matches!(first, b'+' | b'-'))
    };
    if ask.await.is_none() {
        std::future::pending().await
    }
}

/// The failure of a connection that was not made. If no server listens, or the host can't be reached, it is a refusal.
fn unconnected(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => FailureKind::Timeout,
        io::ErrorKind::PermissionDenied => FailureKind::Denied,
        _ => FailureKind::Refused,
    };
    Failure::not_applied(kind, format!("could not connect: {error}"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::options::ClientOptions;

    #[test]
    fn the_system_watches_over_every_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let settings = Settings::new(&url, &ClientOptions::default(), Duration::from_secs(1), None).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let Ok(Socket::Tcp(stream)) = runtime.block_on(dial(&settings)) else { panic!("no TCP connection") };
        // A socket that threads drive is the same one.
        let stream = stream.into_std().unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), SILENCE);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), BETWEEN_QUESTIONS);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), QUESTIONS);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED));
    }
}
