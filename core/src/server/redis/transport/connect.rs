//! Connect: an open socket behind its handshake, for a question or for subscriptions.

use std::io;
use std::sync::Arc;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::handshake_facts::HandshakeFacts;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::handshake::Handshake;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::dial::dial;
use crate::server::redis::transport::socket::OpenSocket;

/// Connects to a node, and names the client. A provider whose credentials the node refuses is asked for others, once.
pub(crate) async fn connect(settings: &Arc<Settings>) -> Result<(OpenSocket, Buffers), Failure> {
    match connect_once(settings).await {
        Err(failure) if failure.kind == FailureKind::Denied && settings.provided.is_some() => connect_once(settings).await,
        connected => connected,
    }
}

async fn connect_once(settings: &Arc<Settings>) -> Result<(OpenSocket, Buffers), Failure> {
    let mut socket = OpenSocket::new(dial(settings).await?);
    // The caller keeps the time.
    let mut handshake = Handshake::introduce(settings);
    let assessed = complete_handshake(&mut socket, &mut handshake).await;
    if let Err(failure) = assessed.unwrap_or_else(|error| Err(handshake.closed(error))) {
        if handshake.is_refused {
            settings.refused(&handshake.login, &failure, false, Tick::now());
        }
        return Err(failure);
    }
    settings.accepted(&handshake.login);
    Ok((socket, std::mem::take(&mut handshake.buffers)))
}

/// Completes a handshake: gives its end, or an error as [`OpenSocket::read`].
pub(crate) async fn complete_handshake(
    socket: &mut OpenSocket,
    handshake: &mut Handshake,
) -> Result<Result<HandshakeFacts, Failure>, Option<io::Error>> {
    loop {
        let count = socket.read(&mut handshake.buffers).await?;
        handshake.buffers.replies.filled(count);
        if let Some(assessed) = handshake.read() {
            return Ok(assessed);
        }
    }
}
