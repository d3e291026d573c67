//! Dialing: from a target to a connected socket, within the connect timeout. Where sentinels name the server, they are asked first.

use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::op::{Failure, FailureKind};
use crate::server::redis::sentinel::Named;
use crate::server::redis::settings::Settings;
use crate::server::redis::tls_names::TlsNames;
use crate::server::redis::transport::sentinels;
use crate::server::redis::transport::socket::Socket;
#[cfg(unix)]
use crate::server::redis::transport::stream::unconnected;
use crate::server::redis::transport::stream::{Limit, resolve, tcp};
use crate::server::redis::transport::tls::{Tls, shake_hands};
use crate::server::redis::url::{Endpoint, Service};

/// Connects a socket to the target, and does the TLS handshake where the target needs one.
pub(crate) async fn dial(settings: &Settings) -> Result<Socket, Failure> {
    let limit = Limit::new(settings.connect_timeout);
    if let Some(provided) = &settings.provided {
        provided.ready(&settings.target.address, limit).await?;
    }
    match &settings.target.endpoint {
        Endpoint::Tcp { place, tls } => {
            let stream = tcp(place, limit).await?;
            let Some((names, config)) = tls else { return Ok(Socket::Tcp(stream)) };
            secure(stream, (names, config), settings, limit).await
        }
        #[cfg(unix)]
        Endpoint::Unix { path } => {
            let connected = limit.keep(FailureKind::Timeout, "no connection", tokio::net::UnixStream::connect(path)).await?;
            Ok(Socket::Unix(connected.map_err(|error| unconnected(&error))?))
        }
        #[cfg(not(unix))]
        Endpoint::Unix { .. } => Err(Failure::not_applied(FailureKind::Other, "this system has no unix sockets")),
        Endpoint::Sentinel(service) => {
            let named = sentinels::find(service, limit).await?;
            let socket = to_named(service, &named, settings, limit).await;
            if service.known.lock().epoch() > named.epoch {
                let why = "the sentinels have named another primary since they were asked";
                return Err(Failure::not_applied(FailureKind::ReadOnly, why));
            }
            socket.map_err(|failure| Failure { message: about(&named, &failure.message), ..failure })
        }
    }
}

/// Connects to the primary that the sentinels name.
async fn to_named(service: &Service, named: &Named, settings: &Settings, limit: Limit) -> Result<Socket, Failure> {
    let stream = tcp(service.address_map.reachable(&named.address), limit).await?;
    let Some(config) = &service.primary_tls else { return Ok(Socket::Tcp(stream)) };
    let names = TlsNames::announced(&named.address.host, &service.hosts, service.tls_name.as_ref())?;
    secure(stream, (&names, config), settings, limit).await
}

fn about(named: &Named, why: &str) -> String {
    let state = if named.is_down { ", and take for down" } else { "" };
    format!("{}, the primary that the sentinels name{state}: {why}", named.address)
}

async fn secure(stream: TcpStream, tls: (&TlsNames, &Tls), settings: &Settings, limit: Limit) -> Result<Socket, Failure> {
    let [plain, _] = settings.schemes();
    let socket = shake_hands(stream, tls, (!settings.has_answered()).then_some(plain), limit).await?;
    settings.answered();
    Ok(socket)
}

/// The addresses that the target leads to now: none for a unix socket, and where nobody knows them.
pub(crate) async fn addresses(settings: &Settings) -> Vec<SocketAddr> {
    let limit = Limit::new(settings.connect_timeout);
    let found = match &settings.target.endpoint {
        Endpoint::Tcp { place, .. } => resolve(place, limit).await,
        Endpoint::Unix { .. } => return Vec::new(),
        Endpoint::Sentinel(service) => match sentinels::find(service, limit).await {
            Ok(named) => resolve(service.address_map.reachable(&named.address), limit).await,
            Err(failure) => Err(failure),
        },
    };
    found.unwrap_or_default()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use socket2::SockRef;

    use super::*;
    use crate::options::ClientOptions;
    use crate::server::redis::transport::stream::{BETWEEN_QUESTIONS, QUESTIONS, SILENCE, UNACKNOWLEDGED};

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
