//! Asking: nodes of a cluster are asked which node serves which slot.

use std::future::poll_fn;
use std::sync::Arc;

use redis::{RedisResult, Value};
use tokio::task::JoinSet;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;
use crate::server::redis::cluster::topology::Topology;
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::effect::Role;
use crate::server::redis::connection::handshake::Handshake;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::dial::dial;
use crate::server::redis::transport::socket::OpenSocket;
use crate::server::redis::transport::stream::Limit;

/// What a node says: the map, and the nodes that it names.
pub(crate) type Told = Result<(Topology, Vec<Address>), Failure>;

/// Begins to ask nodes, each on a connection of its own that ends with the answer. The questions end with the set.
pub(crate) fn ask_each(nodes: Vec<(Address, Result<Settings, Failure>)>) -> JoinSet<(Address, Told)> {
    let mut asking = JoinSet::new();
    for (address, settings) in nodes {
        asking.spawn(async move {
            let told = match settings {
                Ok(settings) => {
                    let (limit, settings) = (Limit::new(settings.connect_timeout), Arc::new(settings));
                    let asked = ask(&settings, &address, limit);
                    limit.keep(FailureKind::Timeout, "no answer", asked).await.flatten()
                }
                Err(failure) => Err(failure),
            };
            (address, told)
        });
    }
    asking
}

/// Connects to a node, and says who we are. A provider whose credentials the node refuses is asked for others, once.
pub(super) async fn connect(settings: &Arc<Settings>) -> Result<(OpenSocket, Buffers), Failure> {
    match connect_once(settings).await {
        Err(failure) if failure.kind == FailureKind::Denied && settings.provided.is_some() => connect_once(settings).await,
        connected => connected,
    }
}

async fn connect_once(settings: &Arc<Settings>) -> Result<(OpenSocket, Buffers), Failure> {
    let mut socket = OpenSocket::new(dial(settings).await?);
    // The caller keeps the time. A replica knows the map, too, so nothing is asked of the node but that.
    let mut handshake = Handshake::begin(settings, Role::Listening, Tick::NEVER);
    let judged = loop {
        let judged = match read(&mut socket, &mut handshake.buffers).await {
            Ok(count) => {
                handshake.buffers.replies.filled(count);
                handshake.read()
            }
            Err(error) => Some(Err(handshake.closed(error))),
        };
        if let Some(judged) = judged {
            break judged;
        }
    };
    if let Err(failure) = judged {
        if handshake.is_refused() {
            settings.refused(handshake.login(), &failure, false, Tick::now());
        }
        return Err(failure);
    }
    settings.accepted(handshake.login());
    Ok((socket, std::mem::take(&mut handshake.buffers)))
}

async fn ask(settings: &Arc<Settings>, address: &Address, limit: Limit) -> Told {
    let (mut socket, mut buffers) = connect(settings).await?;
    buffers.replies.expect_map();
    buffers.output.end().extend(redis::cmd("CLUSTER").arg("SLOTS").get_packed_command());
    let answer = limit.keep(FailureKind::Timeout, "no map of slots", next(&mut socket, &mut buffers)).await?;
    let answer = answer.and_then(Value::extract_error).map_err(|error| refused(&error))?;
    Topology::read(&answer, address).ok_or_else(|| {
        Failure::not_applied(FailureKind::Protocol, "CLUSTER SLOTS was answered with something else than a map of slots")
    })
}

/// Writes what is to be written, and reads once. An error of the socket, or its end (`None`). Dropping the future loses nothing.
pub(super) async fn read(socket: &mut OpenSocket, buffers: &mut Buffers) -> Result<usize, Option<std::io::Error>> {
    match poll_fn(|context| socket.poll(buffers, context)).await {
        Ok(0) => Err(None),
        Ok(count) => Ok(count),
        Err(error) => Err(Some(error)),
    }
}

async fn next(socket: &mut OpenSocket, buffers: &mut Buffers) -> RedisResult<Value> {
    loop {
        if let Some(value) = buffers.replies.next() {
            return value;
        }
        match read(socket, buffers).await {
            Ok(count) => buffers.replies.filled(count),
            Err(error) => return Err(error.unwrap_or_else(|| std::io::ErrorKind::UnexpectedEof.into()).into()),
        }
    }
}

/// The failure of a node that gives no map.
fn refused(error: &redis::RedisError) -> Failure {
    let failure = Failure { maybe_applied: false, ..refusal::failure(error, true) };
    let says = |words| error.detail().is_some_and(|detail| detail.contains(words));
    match (says("cluster support disabled"), says("unknown command")) {
        (true, _) => Failure::not_applied(FailureKind::Mismatch, refusal::NO_CLUSTER),
        (_, true) => Failure::not_applied(FailureKind::Mismatch, format!("{} ({})", refusal::KNOWS_NO_CLUSTER, failure.message)),
        _ => failure,
    }
}
