//! A stand-in for the real codec, until the scripts are there.

use std::time::Duration;

use redis::{Cmd, ErrorKind, RedisError, Value};

use crate::error::Remaining;
use crate::server::{Answer, Failure, FailureKind, Op, Reply, Verdict};

/// How a script is named to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    BySha,
    ByText,
}

const ACQUIRE: &str = "local t=redis.call('TIME') if redis.call('SET',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return {'vote',t[1],1} end return {'held',t[1],1}";
const EXTEND: &str = "local t=redis.call('TIME') if redis.call('GET',KEYS[1])==ARGV[1] then redis.call('PEXPIRE',KEYS[1],ARGV[2]) return {'ok',t[1],1} end return {'no',t[1],1}";
const RELEASE: &str = "local t=redis.call('TIME') if redis.call('GET',KEYS[1])==ARGV[1] then redis.call('DEL',KEYS[1]) return {'ok',t[1],1} end return {'no',t[1],1}";
const GREET: &str = "local t=redis.call('TIME') return {'ok',t[1],0}";

pub(super) fn command(op: &Op, _run_id: Option<&str>, form: Form) -> Cmd {
    let (text, keys, owner, ttl) = match op {
        Op::Acquire { keys, owner, ttl_ms, .. } => (ACQUIRE, Some(keys), &**owner, *ttl_ms),
        Op::Extend { keys, owner, ttl_ms, .. } => (EXTEND, Some(keys), &**owner, *ttl_ms),
        Op::Release { keys, owner } => (RELEASE, Some(keys), &**owner, 0),
        _ => (GREET, None, "", 0),
    };
    let mut command = match form {
        Form::ByText => redis::cmd("EVAL").arg(text).take(),
        Form::BySha => redis::cmd("EVALSHA").arg(redis::Script::new(text).get_hash()).take(),
    };
    match keys {
        Some(keys) => command.arg(4).arg(&keys.in_order()[..]).arg(owner).arg(ttl),
        None => command.arg(0),
    };
    command
}

pub(super) fn reply(_op: &Op, value: Value) -> Answer {
    let (word, time, fence): (String, u64, u64) = redis::from_redis_value(value)
        .map_err(|error| Failure::unknown(FailureKind::Protocol, error.to_string()))?;
    let verdict = match word.as_str() {
        "vote" => Verdict::Vote,
        "held" => Verdict::Held,
        "ok" => Verdict::Ok,
        _ => Verdict::No,
    };
    Ok(Reply::new(verdict, time, fence, None, Remaining::For(Duration::ZERO)))
}

pub(super) fn failure(error: &RedisError, sent: bool) -> Failure {
    let kind = match error.code() {
        Some("NOAUTH" | "WRONGPASS" | "NOPERM") => FailureKind::Denied,
        Some("LOADING") => FailureKind::Loading,
        Some("READONLY") => FailureKind::ReadOnly,
        _ if error.is_timeout() => FailureKind::Timeout,
        _ if error.is_io_error() => FailureKind::Disconnected,
        _ if error.kind() == ErrorKind::Parse => FailureKind::Protocol,
        _ => FailureKind::Other,
    };
    Failure { maybe_applied: sent, ..Failure::not_applied(kind, error.to_string()) }
}
