//! Asking: nodes of a cluster are asked which node serves which slot.

use std::sync::Arc;

use redis::Value;
use tokio::task::JoinSet;

use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;
use crate::server::redis::cluster::mapping::Found;
use crate::server::redis::cluster::topology::Topology;
use crate::server::redis::commands::refusal;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::connect::connect;
use crate::server::redis::transport::stream::Limit;

/// Begins to ask nodes, each on a connection of its own that ends with the answer. The questions end with the set.
pub(crate) fn ask_each(nodes: Vec<(Address, Result<Settings, Failure>)>) -> JoinSet<(Address, Found)> {
    let mut asking = JoinSet::new();
    for (address, settings) in nodes {
        asking.spawn(async move {
            let report = match settings {
                Ok(settings) => {
                    let (limit, settings) = (Limit::new(settings.connect_timeout), Arc::new(settings));
                    let asked = ask(&settings, &address, limit);
                    limit.keep(FailureKind::Timeout, "no answer", asked).await.flatten()
                }
                Err(failure) => Err(failure),
            };
            (address, report)
        });
    }
    asking
}

async fn ask(settings: &Arc<Settings>, address: &Address, limit: Limit) -> Found {
    let (mut socket, mut buffers) = connect(settings).await?;
    buffers.replies.expect_map();
    buffers.output.end().extend(redis::cmd("CLUSTER").arg("SLOTS").get_packed_command());
    let answer = limit.keep(FailureKind::Timeout, "no map of slots", socket.next(&mut buffers)).await?;
    let answer = answer.and_then(Value::extract_error).map_err(|error| refused(&error))?;
    Topology::read(&answer, address).ok_or_else(|| {
        Failure::not_applied(FailureKind::Protocol, "CLUSTER SLOTS was answered with something else than a map of slots")
    })
}

/// The failure of a node that gives no map.
fn refused(error: &redis::RedisError) -> Failure {
    let failure = Failure { maybe_applied: false, ..refusal::failure(error, true) };
    let mentions = |words| error.detail().is_some_and(|detail| detail.contains(words));
    match (mentions("cluster support disabled"), mentions("unknown command")) {
        (true, _) => Failure::not_applied(FailureKind::Mismatch, refusal::NO_CLUSTER),
        (_, true) => Failure::not_applied(FailureKind::Mismatch, format!("{} ({})", refusal::KNOWS_NO_CLUSTER, failure.message)),
        _ => failure,
    }
}
