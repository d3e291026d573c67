//! Connect: an open socket behind its handshake, for a question or for subscriptions.

use std::future::poll_fn;
use std::sync::Arc;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
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
    let assessed = loop {
        let assessed = match read(&mut socket, &mut handshake.buffers).await {
            Ok(count) => handshake.introduced(count),
            Err(error) => Some(Err(handshake.closed(error))),
        };
        if let Some(assessed) = assessed {
            break assessed;
        }
    };
    if let Err(failure) = assessed {
        if handshake.is_refused() {
            settings.refused(handshake.login(), &failure, false, Tick::now());
        }
        return Err(failure);
    }
    settings.accepted(handshake.login());
    Ok((socket, std::mem::take(&mut handshake.buffers)))
}

/// Writes what is to be written, and reads once. An error of the socket, or its end (`None`). Dropping the future loses nothing.
pub(crate) async fn read(socket: &mut OpenSocket, buffers: &mut Buffers) -> Result<usize, Option<std::io::Error>> {
    match poll_fn(|context| socket.poll(buffers, context)).await {
        Ok(0) => Err(None),
        Ok(count) => Ok(count),
        Err(error) => Err(Some(error)),
    }
}
