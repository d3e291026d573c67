//! Look: whether the name of a server, or its sentinels, still lead to the node at the other end of a connection.
//!
//! A name may move to another node while the old one still answers, such as a primary that is isolated from its replicas. No
//! error reports that. So the name is asked for again from time to time, or the sentinels are, and a node that is new there is
//! asked. If it has another replication id, all connections leave the old node.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::time::timeout;

use crate::clock::Tick;
use crate::server::redis::connection::handshake::Handshake;
use crate::server::redis::connection::primary::Primary;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::connect::complete_handshake;
use crate::server::redis::transport::dial::{addresses, dial};
use crate::server::redis::transport::socket::OpenSocket;

/// Looks once. A node that doesn't answer, or is none for locks, changes nothing: the connection to `peer` is still there. Without
/// a known peer the handshake is made in any case.
pub(crate) async fn look(settings: Arc<Settings>, primary: Arc<Primary>, peer: Option<SocketAddr>) {
    if let Some(peer) = peer {
        let addresses = addresses(&settings).await;
        if addresses.is_empty() || addresses.contains(&peer) {
            return;
        }
    }
    let Ok(socket) = dial(&settings).await else { return };
    let address = socket.peer();
    let (mut socket, mut handshake) = (OpenSocket::new(socket), Handshake::begin(&settings, Tick::NEVER));
    let shaken = timeout(settings.connect_timeout, complete_handshake(&mut socket, &mut handshake)).await;
    // A node that hangs up, or refuses the client, shows nothing.
    let Ok(Ok(Ok(facts))) = shaken else { return };
    let now = Tick::now();
    if let Ok((accepted, failover)) = primary.on_connected(&facts, address, settings.max_ttl(), now) {
        primary.disconnected(accepted.replid, now);
        if let Some(failover) = failover {
            primary.health.report(failover);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::options::ClientOptions;
    use crate::server::redis::commands::handshake_facts::HandshakeFacts;
    use crate::server::redis::connection::server_state::ServerState;

    /// A node that answers the questions of a handshake, and hangs up.
    fn node(role: &'static str, replid: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 65_536]);
                let info = format!("role:{role}\r\nmaster_replid:{replid}\r\n");
                let marker_reply = "*5\r\n$2\r\nok\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n-NOPERM\r\n-NOPERM\r\n";
                let _ = write!(stream, "$0\r\n\r\n${}\r\n{info}\r\n+OK\r\n{marker_reply}", info.len());
            }
        });
        address
    }

    /// The state that a look reports, for a client with the replication id `old` that is connected to `peer`.
    fn seen(node: SocketAddr, peer: SocketAddr) -> Option<ServerState> {
        let (sender, received) = channel();
        let primary = Arc::new(Primary::new(move |state| drop(sender.send(state))));
        let url = format!("redis://{node}");
        let settings = Arc::new(Settings::new(&url, &ClientOptions::default(), Duration::from_secs(60), None).unwrap());
        let info = |text: &str| redis::Value::BulkString(text.into());
        let mut facts = HandshakeFacts::default();
        facts.replication(&info("role:master\r\nmaster_replid:old")).unwrap();
        primary.on_connected(&facts, Some(peer), None, Tick::now()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(look(settings, Arc::clone(&primary), Some(peer)));
        received.try_recv().ok()
    }

    #[test]
    fn a_name_that_leads_to_a_new_primary_is_a_failover_and_nothing_else_is() {
        let elsewhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let new = node("master", "new");
        let Some(ServerState::FailedOver(replid)) = seen(new, elsewhere) else { panic!("nothing was seen") };
        assert_eq!((&*replid.old_replid, &*replid.new_replid, replid.address), ("old", "new", Some(new.to_string())));
        assert_eq!(seen(new, new), None, "it leads to the peer");
        assert_eq!(seen(node("slave", "new"), elsewhere), None, "a replica");
        assert_eq!(seen(node("master", "old"), elsewhere), None, "another way to the same node");
        assert_eq!(seen(elsewhere, new), None, "nobody");
    }
}
