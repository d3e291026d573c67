//! Refusals: the meaning of a server's error, whether it promises that nothing was done, and its text for people.

#[cfg(feature = "tls")]
use std::sync::Arc;

use redis::RedisError;

use crate::error::quoted::quoted;
use crate::op::{Answer, Failure, FailureKind, Op, Redirect, Reply, Verdict};
use crate::server::redis::commands::comparison::Comparison;
use crate::server::redis::commands::rights;

/// Adds advice to the failure of an operation, if the server refused it for want of a right.
pub(crate) fn advise(failure: &mut Failure, op: &Op, in_cluster: bool, comparison: Comparison) {
    // The server doesn't name the key that the error is about.
    if let Some(keys) = op.keys().filter(|_| lacks_rights(failure)) {
        failure.message += &rights::advice(keys, in_cluster, comparison);
    }
}

/// The answer of a node that served an operation as if it had not been asked to, because it refused `ASKING`.
pub(crate) fn unasked(answer: Answer, refused: &RedisError) -> Answer {
    match answer {
        Err(Failure { redirect: Some(_), .. }) => Err(Failure { maybe_applied: true, redirect: None, ..failure(refused, true) }),
        Ok(Reply { verdict: Verdict::Probed { mut missing }, time_us, fence, .. }) => {
            missing.push(rights::ASKING.to_owned());
            Ok(Reply::new(Verdict::Probed { missing }, time_us, fence))
        }
        other => other,
    }
}

/// Adds to the answer to a probe that the server has refused transactions.
pub(crate) fn without_transactions(reply: &mut Reply) {
    if let Verdict::Probed { missing } = &mut reply.verdict {
        missing.push(rights::MULTI.to_owned());
    }
}

/// Whether a known user was refused because a right is missing. A user that the server doesn't know is another case.
fn lacks_rights(failure: &Failure) -> bool {
    failure.kind == FailureKind::Denied && failure.maybe_applied
}

/// What the server sent that ended TLS. One that wants a client certificate sends that only after the handshake.
#[cfg(feature = "tls")]
pub(crate) fn tls_alert(error: &RedisError) -> Option<String> {
    let shared = std::error::Error::source(error)?.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?;
    let inner = shared.downcast_ref::<std::io::Error>()?.get_ref()?;
    inner.downcast_ref().map(rustls::Error::to_string)
}

/// There is none without TLS.
#[cfg(not(feature = "tls"))]
pub(crate) fn tls_alert(_error: &RedisError) -> Option<String> {
    None
}

/// The failure for an error. `sent` says whether the operation had left for the server.
pub(crate) fn failure(error: &RedisError, sent: bool) -> Failure {
    if let Some(code) = error.code() {
        let detail = error.detail().unwrap_or_default();
        let (kind, refused) = refusal(code, detail);
        let failure = Failure::unknown(kind, sentence(code, detail));
        return Failure { maybe_applied: sent && !refused, redirect: redirect(code, detail).map(Box::new), ..failure };
    }
    let kind = match error.kind() {
        redis::ErrorKind::AuthenticationFailed => FailureKind::Denied,
        redis::ErrorKind::Parse | redis::ErrorKind::UnexpectedReturnType => FailureKind::Protocol,
        _ if error.is_timeout() => FailureKind::Timeout,
        _ if error.is_connection_refusal() => FailureKind::Refused,
        _ if error.is_io_error() || error.is_connection_dropped() => FailureKind::Disconnected,
        _ => FailureKind::Other,
    };
    // The crate adds the kind of an error behind its sentence.
    let message = error.to_string();
    let sentence = message.strip_suffix(&format!(" - {:?}", error.kind())).unwrap_or(&message);
    Failure { maybe_applied: sent, ..Failure::unknown(kind, quoted(sentence)) }
}

/// The failure of a transaction of which nothing was done: `EXECABORT Transaction discarded because of: OOM command …`.
pub(crate) fn discarded(error: &RedisError) -> Failure {
    let reason = error.detail().and_then(|detail| detail.split_once("because of: ")).map(|(_, reason)| format!("-{reason}\r\n"));
    match reason.and_then(|reason| redis::parse_redis_value(reason.as_bytes()).ok()) {
        Some(redis::Value::ServerError(reason)) => failure(&reason.into(), true),
        _ => failure(error, true),
    }
}

/// What a node of a cluster says of an operation that it doesn't serve: `MOVED 3999 127.0.0.1:6381`. An IPv6 address has no brackets
/// there.
fn redirect(code: &str, detail: &str) -> Option<Redirect> {
    let place = || {
        let (slot, address) = detail.split_once(' ')?;
        let (host, port) = address.rsplit_once(':')?;
        // A node that doesn't know its own name says `?`.
        let host = if host == "?" { "" } else { host };
        Some((slot.parse().ok()?, host.to_owned(), port.parse().ok()?))
    };
    match code {
        "MOVED" => place().map(|(slot, host, port)| Redirect::Moved { slot, host, port }),
        "ASK" => place().map(|(_, host, port)| Redirect::Ask { host, port }),
        "TRYAGAIN" => Some(Redirect::TryAgain),
        _ => None,
    }
}

/// Whether the server has no scripts at all, or lets no user run them.
pub(crate) fn knows_no_scripts(code: &str, detail: &str) -> bool {
    let lower = detail.to_ascii_lowercase();
    let unknown = ["unknown command", "unsupported command", "not support", "disabled command"];
    code == "ERR" && lower.contains("eval") && unknown.iter().any(|words| lower.contains(words)) && !lower.contains("script")
}

/// The text of an error for people, with the server's own words.
fn sentence(code: &str, detail: &str) -> String {
    let message = quoted(format!("{code} {detail}").trim_end());
    match inner_code(code, detail) {
        "MOVED" | "ASK" | "CROSSSLOT" => cluster(&message),
        "NOSCRIPT" => format!("scripts are not kept on this server, not even the one that it has just been sent ({message})"),
        _ if knows_no_scripts(code, detail) => {
            // The script stands behind these words.
            let words = message.split(", with args").next().unwrap_or_default();
            format!("this server does not allow EVAL, which locks need ({words})")
        }
        _ => message,
    }
}

/// The advice for people where a node of a cluster answers.
pub(crate) fn cluster(message: &str) -> String {
    format!(
        "this is a node of a cluster: write redis+cluster://host:port, with the host and the port of any of its nodes ({message})"
    )
}

/// The advice for people where a server without cluster mode answers.
pub(crate) const NO_CLUSTER: &str = "this is no node of a cluster: a server without cluster mode is redis://host:port";

/// The advice for people where a server answers that doesn't know the command.
pub(crate) const KNOWS_NO_CLUSTER: &str = "this is no node of a cluster: a sentinel is redis+sentinel://host:port/service, and a server \
                                           without cluster mode redis://host:port";

/// The advice for people where a sentinel answers.
pub(crate) const SENTINEL: &str = "this is a sentinel, and locks are on the primary that it watches: write \
                                   redis+sentinel://host:port/service, with the host and the port of the sentinel and the name of the \
                                   service";

/// Whether a command inside a script failed because a right is missing.
pub(crate) fn is_denial(error: &str) -> bool {
    let (code, detail) = error.split_once(' ').unwrap_or((error, ""));
    // Some versions give the error without a code.
    [refusal(code, detail), refusal("ERR", error)].iter().any(|(kind, _)| *kind == FailureKind::Denied)
}

/// The kind of a server's error, and whether the error promises that nothing was done.
///
/// The errors with that promise come before a script starts, or instead of its first write. `NOPERM` may come between two writes.
fn refusal(code: &str, detail: &str) -> (FailureKind, bool) {
    match inner_code(code, detail) {
        "LOADING" => (FailureKind::Loading, true),
        "READONLY" => (FailureKind::ReadOnly, true),
        "MISCONF" | "NOREPLICAS" => (FailureKind::Misconfigured, true),
        "OOM" => (FailureKind::OutOfMemory, true),
        "CLUSTERDOWN" | "TRYAGAIN" | "MASTERDOWN" => (FailureKind::ClusterDown, true),
        // One node of a cluster is not the server that its URL means.
        "MOVED" | "ASK" | "CROSSSLOT" => (FailureKind::Mismatch, true),
        "NOAUTH" | "WRONGPASS" => (FailureKind::Denied, true),
        "NOPERM" => (FailureKind::Denied, false),
        "NOSCRIPT" | "BUSY" | "NOPROTO" => (FailureKind::Other, true),
        _ if knows_no_scripts(code, detail) => (FailureKind::Denied, true),
        // A right that is missing inside a script has no code of its own: the first text is as of Redis 7.0, the second as of 6.2.
        _ if detail.contains("ACL failure in script") => (FailureKind::Denied, false),
        _ if detail.contains("The user executing the script can't") => (FailureKind::Denied, false),
        _ => (FailureKind::Other, false),
    }
}

/// The code of a command's error inside a script. Redis 6.2 wraps it: `ERR Error running script (…): @user_script: 5: -OOM command
/// …`.
fn inner_code<'a>(code: &'a str, detail: &'a str) -> &'a str {
    if code != "ERR" || !detail.starts_with("Error running script") {
        return code;
    }
    let inner = detail.rsplit_once(": -").and_then(|(_, inner)| inner.split(' ').next());
    inner.unwrap_or(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_scripts_says_so_in_its_own_way_and_a_person_reads_it_in_ours() {
        for (detail, expected) in [
            ("unknown command `EVAL`, with args beginning with: `local x = 1`", true),
            ("unknown command 'evalsha'", true),
            ("command eval not support for normal user", true),
            ("unsupported command 'EVAL'", true),
            ("unknown command `SSUBSCRIBE`, with args beginning with: `news`", false),
            ("Error running script (call to f_1): Unknown Redis command called from script, eval", false),
            ("value is not an integer", false),
        ] {
            assert_eq!(knows_no_scripts("ERR", detail), expected, "{detail}");
            assert!(!sentence("ERR", detail).contains("local x"), "{detail}");
        }
        assert_eq!(
            sentence("ERR", "unknown command `EVAL`, with args beginning with: `local x`"),
            "this server does not allow EVAL, which locks need (ERR unknown command `EVAL`)"
        );
    }

    #[test]
    fn a_node_of_a_cluster_says_where_else() {
        let moved = |slot, host: &str, port| Some(Redirect::Moved { slot, host: host.to_owned(), port });
        let ask = |host: &str, port| Some(Redirect::Ask { host: host.to_owned(), port });
        for (code, detail, expected) in [
            ("MOVED", "3999 127.0.0.1:6381", moved(3_999, "127.0.0.1", 6_381)),
            ("MOVED", "16383 node.example:7000", moved(16_383, "node.example", 7_000)),
            ("MOVED", "0 ::1:7000", moved(0, "::1", 7_000)),
            ("MOVED", "0 :7000", moved(0, "", 7_000)),
            ("MOVED", "0 ?:7000", moved(0, "", 7_000)),
            ("ASK", "3999 127.0.0.1:6381", ask("127.0.0.1", 6_381)),
            ("TRYAGAIN", "Multiple keys request during rehashing of slot", Some(Redirect::TryAgain)),
            ("MOVED", "3999", None),
            ("MOVED", "3999 host:port", None),
            ("ASK", "no place", None),
            ("CLUSTERDOWN", "Hash slot not served", None),
        ] {
            assert_eq!(redirect(code, detail), expected, "{code} {detail}");
        }
    }

    #[test]
    fn what_a_server_says_stays_on_its_line_and_is_not_long() {
        let message = sentence("ERR", &format!("\u{1b}[31m\nINFO:root:fine {}", "x".repeat(1 << 20)));
        assert!(message.starts_with("ERR \\u{1b}[31m\\nINFO:root:fine xxx") && message.chars().count() < 230, "{message}");
    }
}
