//! Info: the facts about a server in its answer to `INFO`. Pure.

use redis::Value;

use crate::op::{Answer, Failure, FailureKind, Reply, ServerFacts, Verdict};

/// One field of an `INFO` reply.
pub(crate) fn field(info: &str, name: &str) -> Option<String> {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    info.lines().find_map(value)
}

/// The first two numbers of a version; 0 for what is no number.
pub(crate) fn version(info: &str, name: &str) -> Option<(u32, u32)> {
    let version = field(info, name)?;
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or_default());
    Some((numbers.next()?, numbers.next().unwrap_or_default()))
}

/// The answer to [`Op::Examine`](crate::op::Op::Examine).
pub(crate) fn examined(value: Value) -> Answer {
    let unreadable = |_| Failure::unknown(FailureKind::Protocol, "INFO was answered with no text");
    let info: String = redis::from_redis_value(value).map_err(unreadable)?;
    let get = |name: &str| field(&info, name);
    let version = match get("valkey_version") {
        Some(version) => format!("valkey {version}"),
        None => format!("redis {}", get("redis_version").unwrap_or_default()),
    };
    let persistence = match (get("aof_enabled").as_deref(), get("rdb_saves").as_deref()) {
        (Some("1"), _) => "aof",
        // Redis before 7.0 doesn't count its snapshots. There the time of the last snapshot is the time of the start.
        (_, None | Some("0")) => "none",
        _ => "rdb",
    };
    let facts = ServerFacts {
        version,
        role: get("role").unwrap_or_default(),
        persistence: persistence.to_owned(),
        eviction: get("maxmemory_policy").unwrap_or_default(),
        in_cluster: get("cluster_enabled").as_deref() == Some("1"),
        shows_replid: get("master_replid").is_some(),
        is_writable_replica: get("slave_read_only").as_deref() == Some("0"),
        replicas: get("connected_slaves").and_then(|count| count.parse().ok()).unwrap_or(0),
        sentinels: None,
        cluster: None,
    };
    let time_us = get("server_time_usec").and_then(|time| time.parse().ok()).unwrap_or(0);
    Ok(Reply::new(Verdict::Described(Box::new(facts)), time_us, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_described_by_what_it_says() {
        let info = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\nserver_time_usec:1795227730123456\r\n\
                    maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\nrdb_saves:3\r\nrole:master\r\nconnected_slaves:2\r\nmaster_replid:def\r\nrun_id:abc\r\n";
        let reply = examined(Value::BulkString(info.into())).unwrap();
        let [version, role, persistence, eviction] = ["valkey 9.1.2", "master", "rdb", "allkeys-lru"].map(str::to_owned);
        let facts =
            ServerFacts { version, role, persistence, eviction, replicas: 2, shows_replid: true, ..ServerFacts::default() };
        assert_eq!((reply.verdict, reply.time_us), (Verdict::Described(Box::new(facts.clone())), 1_795_227_730_123_456));
        let node = examined(Value::BulkString(format!("{info}cluster_enabled:1\r\n").into())).unwrap();
        assert_eq!(node.verdict, Verdict::Described(Box::new(ServerFacts { in_cluster: true, ..facts.clone() })));
        let replica = examined(Value::BulkString(format!("{info}slave_read_only:0\r\n").into())).unwrap();
        assert_eq!(replica.verdict, Verdict::Described(Box::new(ServerFacts { is_writable_replica: true, ..facts })));
        assert_eq!(field(info, "run_id").as_deref(), Some("abc"));
        assert_eq!(field(info, "run"), None);
        assert!(examined(Value::Nil).is_err());
    }
}
