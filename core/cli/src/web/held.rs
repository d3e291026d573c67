//! Held: a lock that is held now, as the page gets it.

use locktender::host::cli::is_claim;
use locktender::{LockInfo, Remaining};
use serde_json::{Value, json};

use super::client_events;
use super::line::{process, row, since_1970, who};
use crate::shown;

/// Who holds a lock that is kept for a waiter, for a moment.
const CLAIMED: &str = "nobody: kept for the next waiter";

/// A lock's end is sent again if it differs by so many milliseconds: a remaining time is never measured at the same moment.
const SAME: u64 = 200;

/// When a hold began by its holder's clock, if its owner value says so.
pub(super) fn began_by_holder(info: &LockInfo) -> Option<u64> {
    info.fields.as_ref()?.at.map(since_1970)
}

/// A lock that is held now.
#[derive(PartialEq, Eq)]
pub(super) struct Lock {
    owner: String,
    holder: String,
    row: String,
    since: u64,
    until: Option<u64>,
    fence: Option<u64>,
    waiters: u64,
    queue: Vec<String>,
}

impl Lock {
    pub(super) fn of(info: &LockInfo, now: u64) -> Self {
        let holder = if is_claim(&info.owner) { CLAIMED.to_owned() } else { shown::holder(info) };
        Self {
            owner: info.owner.clone(),
            row: info.fields.as_ref().map_or_else(|| holder.clone(), row),
            holder,
            since: began_by_holder(info).unwrap_or_else(|| client_events::began(info.fence.unwrap_or_default(), now)).min(now),
            until: match info.remaining {
                Remaining::For(left) => Some(now + left.as_millis() as u64),
                Remaining::Forever => None,
                _ => Some(now),
            },
            fence: info.fence,
            waiters: info.waiters,
            queue: info.queue.iter().map(|waiter| who(&process(waiter))).collect(),
        }
    }

    /// Whether a page that shows the one shows the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let is_same_end = match (self.until, other.until) {
            (Some(one), Some(other)) => one.abs_diff(other) < SAME,
            (one, other) => one == other,
        };
        is_same_end
            && (&self.owner, self.fence, self.waiters, &self.queue) == (&other.owner, other.fence, other.waiters, &other.queue)
    }

    pub(super) fn json(&self, name: &str) -> Value {
        json!({
            "name": name, "holder": self.holder, "lane": self.row, "since": self.since, "until": self.until,
            "fence": self.fence.map(|fence| fence.to_string()), "waiters": self.waiters, "queue": self.queue,
        })
    }
}
