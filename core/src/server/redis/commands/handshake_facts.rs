//! Handshake facts: what a server reports about itself when a connection is made. Pure.

use std::sync::Arc;

use redis::Value;

use crate::error::quoted::quoted;
use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::comparison::Comparison;
use crate::server::redis::commands::replies::text;
use crate::server::redis::commands::{info, refusal};

/// The replication id of a node, as the node shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replid {
    /// The node's `master_replid`.
    pub(crate) id: Arc<str>,
    /// The id of the node's process.
    pub(crate) run_id: Option<Arc<str>>,
    /// Whether the node shows no replication id before this one.
    pub(crate) is_first: bool,
    /// The replication id before this one, if the node shows it: its `master_replid2`.
    pub(crate) before: Option<Arc<str>>,
}

/// The facts about a server. A server that doesn't permit `INFO` shows none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandshakeFacts {
    /// The id of the server's process.
    pub(crate) run_id: Option<Arc<str>>,
    /// Whether the server has what Redis 7.0 has, such as script flags.
    pub(crate) is_since_7: bool,
    /// Whether the server called itself a primary.
    pub(crate) is_primary: bool,
    /// Whether it has no replica, and had none in the last hour: nothing can take its place.
    pub(crate) is_alone: bool,
    /// The way in which it compares and deletes.
    pub(crate) comparison: Comparison,
    /// Whether it has transactions, and the user may use them.
    pub(crate) has_transactions: bool,
    /// Whether the user may not begin one.
    pub(crate) denies_transactions: bool,
    /// The server's replication id.
    pub(crate) replid: Option<Replid>,
    /// The server's clock, in microseconds since the epoch.
    pub(crate) time_us: Option<u64>,
    /// Whether it is a node of a cluster, and used as one.
    pub(crate) in_cluster: bool,
}

impl HandshakeFacts {
    /// The replication id, by which a server's marker shows whether the server may have forgotten something.
    pub(crate) fn replid_text(&self) -> Option<&str> {
        self.replid.as_ref().map(|replid| &*replid.id)
    }

    /// Takes the answer to `INFO server`. One of several independent servers, or one with a marker, `has_marker`.
    ///
    /// # Errors
    /// `Mismatch` for a sentinel, for a node of a cluster among several servers, and for a server in place of such a node: whatever
    /// it holds, it is no such server.
    pub(crate) fn server(&mut self, info: &Value, has_marker: bool) -> Result<(), Failure> {
        let Some(info) = text(info) else { return Ok(()) };
        // Valkey has a word of its own for the mode.
        let mode = info::field(info, "redis_mode").or_else(|| info::field(info, "server_mode"));
        let why = match mode.as_deref() {
            Some("sentinel") => Some(refusal::SENTINEL.to_owned()),
            Some("cluster") if has_marker => Some(refusal::cluster("its mode is cluster")),
            Some("standalone") if self.in_cluster => Some(refusal::NO_CLUSTER.to_owned()),
            _ => None,
        };
        if let Some(why) = why {
            return Err(Failure::not_applied(FailureKind::Mismatch, why));
        }
        self.run_id = info::field(info, "run_id").map(Arc::from);
        self.time_us = info::field(info, "server_time_usec").and_then(|time| time.parse().ok());
        self.comparison = Comparison::of(info);
        // Valkey shows a Redis version, too: the one that it is compatible with.
        self.is_since_7 = matches!(info::version(info, "redis_version"), Some((7.., _)));
        Ok(())
    }

    /// Takes the answer to `INFO replication`, which comes after `INFO server`.
    ///
    /// # Errors
    /// `ReadOnly` for a replica: it may lack the latest locks, and must not answer for the primary.
    pub(crate) fn replication(&mut self, info: &Value) -> Result<(), Failure> {
        let Some(info) = text(info) else { return Ok(()) };
        let get = |name: &str| info::field(info, name);
        if get("role").as_deref() == Some("slave") {
            let primary = format!("{}:{}", get("master_host").unwrap_or_default(), get("master_port").unwrap_or_default());
            let why = format!("this is a replica of {}, and locks are only on the primary", quoted(&primary));
            return Err(Failure::not_applied(FailureKind::ReadOnly, why));
        }
        self.is_primary = get("role").as_deref() == Some("master");
        // A server keeps what a replica has to catch up with for an hour behind the last one.
        self.is_alone = ["connected_slaves", "repl_backlog_active"].iter().all(|name| get(name).as_deref() == Some("0"));
        let before = get("master_replid2");
        let is_first = before.as_ref().is_some_and(|before| before.bytes().all(|digit| digit == b'0'));
        let before = before.filter(|_| !is_first).map(Arc::from);
        self.replid = get("master_replid").map(|id| Replid { id: id.into(), run_id: self.run_id.clone(), is_first, before });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(lines: &[&str]) -> Value {
        Value::BulkString(lines.join("\r\n").into())
    }

    #[test]
    fn a_version_is_compared_by_its_first_number() {
        for (version, expected) in
            [("6.2.14", false), ("7.0.0", true), ("7.2.4", true), ("8.2.3", true), ("255.255.255", true), ("?", false)]
        {
            let mut facts = HandshakeFacts::default();
            facts.server(&info(&["# Server", &format!("redis_version:{version}"), "run_id:abc"]), true).unwrap();
            assert_eq!((facts.is_since_7, facts.run_id.as_deref()), (expected, Some("abc")), "{version}");
        }
    }

    #[test]
    fn a_server_that_is_none_is_refused_by_its_mode() {
        let (single, one_of_several, cluster) = ((false, false), (true, false), (false, true));
        for (field, mode, (has_marker, in_cluster), words) in [
            ("redis_mode", "sentinel", single, Some("this is a sentinel")),
            ("server_mode", "sentinel", one_of_several, Some("this is a sentinel")),
            ("redis_mode", "sentinel", cluster, Some("this is a sentinel")),
            ("redis_mode", "cluster", one_of_several, Some("node of a cluster")),
            ("server_mode", "cluster", one_of_several, Some("node of a cluster")),
            ("redis_mode", "cluster", single, None),
            ("server_mode", "cluster", cluster, None),
            ("redis_mode", "standalone", one_of_several, None),
            ("redis_mode", "standalone", cluster, Some("no node of a cluster")),
            ("no_mode", "at_all", cluster, None),
        ] {
            let mut facts = HandshakeFacts { in_cluster, ..HandshakeFacts::default() };
            let assessed = facts.server(&info(&[&format!("{field}:{mode}")]), has_marker);
            let message = assessed.err().map(|failure| (failure.kind, failure.message));
            assert_eq!(message.is_some(), words.is_some(), "{mode}");
            if let (Some((kind, message)), Some(words)) = (message, words) {
                assert!(kind == FailureKind::Mismatch && message.contains(words), "{message}");
            }
        }
    }

    #[test]
    fn only_a_primary_passes_the_handshake() {
        let replica = info(&["# Replication", "role:slave", "master_host:10.0.0.1", "master_port:6380"]);
        let failure = HandshakeFacts::default().replication(&replica).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::ReadOnly, false));
        assert!(failure.message.contains("replica of 10.0.0.1:6380"), "{failure}");
        for (lines, is_primary) in [(&["role:master"][..], true), (&["a_proxy:knows_no_role"], false), (&[], false)] {
            let mut facts = HandshakeFacts::default();
            facts.replication(&info(lines)).unwrap();
            assert_eq!(facts.is_primary, is_primary, "{lines:?}");
        }
        let lines = [("master_replid2:0000", true, None), ("master_replid2:00a0", false, Some("00a0")), ("no:0", false, None)];
        for (line, is_first, before) in lines {
            let mut facts = HandshakeFacts { run_id: Some("r".into()), ..HandshakeFacts::default() };
            facts.replication(&info(&["role:master", "master_replid:abc", line])).unwrap();
            let (run_id, before) = (Some("r".into()), before.map(Arc::from));
            assert_eq!(facts.replid, Some(Replid { id: "abc".into(), run_id, is_first, before }), "{line}");
        }
        let mut unknown = HandshakeFacts::default();
        unknown.replication(&Value::Nil).unwrap();
        assert_eq!(unknown, HandshakeFacts::default());
    }
}
