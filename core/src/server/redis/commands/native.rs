//! Native: a free lock that is taken by the server's own commands in one transaction, in place of a script. Pure.
//!
//! `SET … NX PX` takes the lock's key, and `XADD` to the clock of its slot gives the fence. Whatever a transaction doesn't say, or
//! can't do, a script does behind it: who waits, who holds the lock, and every case that needs a decision.

use redis::Value;

use crate::machine::fence_of_id;
use crate::mutant::mutant;
use crate::op::{Answer, Failure, FailureKind, Reply, Verdict};
use crate::server::redis::commands::refusal;

/// The number of answers to a transaction: to `MULTI`, `SET`, `XADD` and `EXEC`.
pub(crate) const ANSWERS: usize = 4;

/// What the answers to a transaction mean.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The operation is answered.
    Answered(Answer),
    /// The script does it.
    Script {
        /// Whether the transaction has taken the lock's key. If the script grants nothing, the key is given back.
        took: bool,
        /// Whether transactions are of no use on this connection.
        lasting: bool,
    },
    /// Nobody knows what was done, and the socket is of no use: later commands may be in the transaction, too.
    Broken,
}

/// The meaning of the answers to a transaction, in their order. A fence that isn't above the floor is none.
pub(crate) fn assess(floor: u64, mut answers: impl Iterator<Item = Value>) -> Outcome {
    let (Some(multi), Some(set), Some(xadd), Some(exec)) = (answers.next(), answers.next(), answers.next(), answers.next())
    else {
        return Outcome::Broken;
    };
    let is_queued = |value: &Value| matches!(value, Value::SimpleString(text) if text == "QUEUED");
    let is_error = |value: &Value| matches!(value, Value::ServerError(_));
    let is_set = |value: &Value| matches!(value, Value::Okay | Value::Nil);
    let is_id = |value: &Value| matches!(value, Value::BulkString(_));
    let is_begun = multi == Value::Okay;
    // Who gets the answers of another operation must not take them for its own.
    let are_its = (is_begun || is_error(&multi))
        && (is_queued(&set) || is_set(&set) || is_error(&set))
        && (is_queued(&xadd) || is_id(&xadd) || is_error(&xadd));
    if !are_its {
        return Outcome::Broken;
    }
    let took = set == Value::Okay;
    if mutant!(RefusedTransactionBelieved) {
        return executed(vec![set, xadd], floor);
    }
    if !is_begun {
        // Each command was executed alone, or refused for the same reason.
        return match first_error([&set, &xadd]) {
            Some(error) if !took && !is_of_use_by_script(&error) => Outcome::Answered(Err(error)),
            _ => Outcome::Script { took, lasting: true },
        };
    }
    match exec {
        // A proxy that doesn't know a command may refuse it by itself, and have the rest executed.
        Value::Array(results) if results.len() < 2 && (is_error(&set) || is_error(&xadd)) => {
            let took = is_queued(&set) && results.first() == Some(&Value::Okay);
            Outcome::Script { took, lasting: true }
        }
        Value::Array(results) => executed(results, floor),
        Value::ServerError(error) => {
            let exec = refusal::discarded(&error.into());
            // The server refuses the whole where it has refused a part, which says why.
            let why = first_error([&set, &xadd]).unwrap_or(exec);
            match why {
                why if is_of_use_by_script(&why) => Outcome::Script { took, lasting: true },
                // A right that was taken away since: the command was executed alone.
                _ if took => Outcome::Script { took, lasting: false },
                why => Outcome::Answered(Err(Failure { maybe_applied: false, ..why })),
            }
        }
        _ => Outcome::Broken,
    }
}

/// The results of a transaction that was executed.
fn executed(results: Vec<Value>, floor: u64) -> Outcome {
    let by_script = |took| Outcome::Script { took, lasting: false };
    let Ok([set, id]) = <[Value; 2]>::try_from(results) else { return Outcome::Broken };
    match (set, id) {
        (Value::Okay, Value::BulkString(id)) => match read(&id) {
            Some((ms, number)) => {
                // A clock may be ahead of its server: the id doesn't show the time.
                let reply = |fence| Reply { is_bare: true, ..Reply::new(Verdict::Vote, 0, fence) };
                fence_of_id((ms, number), floor).map_or(by_script(true), |fence| Outcome::Answered(Ok(reply(fence))))
            }
            None => Outcome::Broken,
        },
        // The lock is held. The script reports by whom, and enqueues the waiter.
        (Value::Nil, Value::BulkString(_)) => by_script(false),
        // A key of another type, an id that can't be larger, or a right that is missing: the script distinguishes them.
        (set @ (Value::Okay | Value::Nil | Value::ServerError(_)), Value::ServerError(_) | Value::BulkString(_)) => {
            by_script(set == Value::Okay)
        }
        _ => Outcome::Broken,
    }
}

fn read(id: &[u8]) -> Option<(u64, u64)> {
    let (ms, number) = std::str::from_utf8(id).ok()?.split_once('-')?;
    Some((ms.parse().ok()?, number.parse().ok()?))
}

fn first_error(answers: [&Value; 2]) -> Option<Failure> {
    answers.into_iter().find_map(|answer| match answer {
        Value::ServerError(error) => Some(refusal::failure(&error.clone().into(), true)),
        _ => None,
    })
}

/// The meaning of the answer to a release that compares and deletes.
pub(crate) fn compared(answer: Value) -> Outcome {
    match answer {
        Value::Int(1) => Outcome::Answered(Ok(Reply::new(Verdict::Ok, 0, 0))),
        // A client waits, or the lock is another's: the script reports that, and notifies the next waiter.
        Value::Int(0) => Outcome::Script { took: false, lasting: false },
        Value::ServerError(error) => match refusal::failure(&error.into(), true) {
            why if is_of_use_by_script(&why) => Outcome::Script { took: false, lasting: true },
            // The key is no string, or the server doesn't know the script.
            why if why.kind == FailureKind::Other => Outcome::Script { took: false, lasting: false },
            why => Outcome::Answered(Err(why)),
        },
        _ => Outcome::Broken,
    }
}

/// Whether a script may do what a command was refused for: the user may not run the command, or the server doesn't know it.
fn is_of_use_by_script(failure: &Failure) -> bool {
    failure.kind == FailureKind::Denied || failure.message.contains("unknown command")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::{Mutant, assert_each_noticed};

    fn value(bytes: &str) -> Value {
        redis::parse_redis_value(bytes.replace('|', "\r\n").as_bytes()).unwrap()
    }

    /// The meaning of the answers to `MULTI`, `SET`, `XADD` and `EXEC`, in short. The floor is 5,000.
    fn meaning(answers: [&str; ANSWERS]) -> String {
        match assess(5_000, answers.map(|answer| value(&format!("{answer}|"))).into_iter()) {
            Outcome::Answered(Ok(reply)) => format!("granted {} at {}", reply.fence, reply.time_us),
            Outcome::Answered(Err(failure)) => {
                assert!(!failure.maybe_applied, "{failure:?}");
                let redirect = if failure.redirect.is_some() { ", elsewhere" } else { "" };
                format!("{}{redirect}", failure.kind.as_str())
            }
            Outcome::Script { took, lasting } => {
                let took = if took { ", took it" } else { "" };
                format!("script{took}{}", if lasting { ", for good" } else { "" })
            }
            Outcome::Broken => "broken".to_owned(),
        }
    }

    #[test]
    fn every_answer_has_a_meaning() {
        answers_have_meanings();
        assert_each_noticed(
            [Mutant::RefusedTransactionBelieved, Mutant::FenceOverflows, Mutant::FloorIgnored],
            answers_have_meanings,
        );
    }

    #[test]
    fn a_release_that_does_not_delete_is_done_by_script() {
        let meaning = |answer: &str| match compared(value(&format!("{answer}|"))) {
            Outcome::Answered(Ok(_)) => "released",
            Outcome::Answered(Err(failure)) => failure.kind.as_str(),
            Outcome::Script { took: true, .. } | Outcome::Broken => "broken",
            Outcome::Script { lasting: true, .. } => "script, for good",
            Outcome::Script { lasting: false, .. } => "script",
        };
        for (answer, expected) in [
            (":1", "released"),
            (":0", "script"),
            ("-WRONGTYPE Operation against a key", "script"),
            ("-NOSCRIPT No matching script", "script"),
            ("-ERR unknown command 'DELIFEQ'", "script, for good"),
            ("-NOPERM no permissions to run 'delex'", "script, for good"),
            ("-READONLY You can't write", "read_only"),
            ("-MOVED 7 10.0.0.1:6379", "mismatch"),
            (":2", "broken"),
            ("+OK", "broken"),
        ] {
            assert_eq!(meaning(answer), expected, "{answer}");
        }
    }

    fn answers_have_meanings() {
        const QUEUED: [&str; 3] = ["+OK", "+QUEUED", "+QUEUED"];
        let queued = |exec| [QUEUED[0], QUEUED[1], QUEUED[2], exec];
        for (answers, expected) in [
            (queued("*2|+OK|$4|17-3"), "granted 17003 at 0"),
            // The id is no fence: too many in a millisecond, the floor, too large.
            (queued("*2|+OK|$7|17-1000"), "script, took it"),
            (queued("*2|+OK|$3|5-0"), "script, took it"),
            (queued("*2|+OK|$17|9007199254740-992"), "script, took it"),
            (queued("*2|$-1|$4|17-3"), "script"),
            // A key of another type, or a right that was taken away meanwhile.
            (queued("*2|+OK|-WRONGTYPE Operation against a key"), "script, took it"),
            (queued("*2|$-1|-ERR The stream has exhausted the last possible ID"), "script"),
            (queued("*2|-NOPERM no|$4|17-3"), "script"),
            // Nothing was done.
            (["+OK", "-OOM command not allowed", "+QUEUED", "-EXECABORT Transaction discarded"], "out_of_memory"),
            (["+OK", "+QUEUED", "-READONLY You can't write", "-EXECABORT Transaction discarded"], "read_only"),
            (
                ["+OK", "-MOVED 7 10.0.0.1:6379", "-MOVED 7 10.0.0.1:6379", "-EXECABORT Transaction discarded"],
                "mismatch, elsewhere",
            ),
            (["+OK", "-ASK 7 10.0.0.1:6379", "+QUEUED", "-EXECABORT Transaction discarded"], "mismatch, elsewhere"),
            (["+OK", "+QUEUED", "-TRYAGAIN Multiple keys", "-EXECABORT Transaction discarded"], "cluster_down, elsewhere"),
            (queued("-MISCONF Errors writing to the AOF"), "misconfigured"),
            (queued("-LOADING Redis is loading the dataset in memory"), "loading"),
            // The user may not run a command, or the server doesn't know it.
            (["+OK", "+QUEUED", "-NOPERM no permissions to run 'xadd'", "-EXECABORT Transaction discarded"], "script, for good"),
            (["+OK", "+QUEUED", "-ERR unknown command 'XADD'", "-EXECABORT Transaction discarded"], "script, for good"),
            (queued("-NOPERM no permissions to run 'exec'"), "script, for good"),
            // The reason stands behind the code.
            (queued("-EXECABORT Transaction discarded because of: OOM command not allowed when used memory"), "out_of_memory"),
            (queued("-EXECABORT Transaction discarded because of: READONLY You can't write"), "read_only"),
            (queued("-EXECABORT Transaction discarded because of: NOPERM no permissions"), "script, for good"),
            // A proxy has refused one of them, and had the other one executed.
            (["+OK", "+QUEUED", "-ERR unsupported command", "*1|+OK"], "script, took it, for good"),
            (["+OK", "+QUEUED", "-ERR unsupported command", "*1|$-1"], "script, for good"),
            (["+OK", "-ERR unsupported command", "+QUEUED", "*1|$4|17-3"], "script, for good"),
            // Without a transaction each command was executed alone.
            (["-ERR unknown command 'MULTI'", "+OK", "$4|17-3", "-ERR EXEC without MULTI"], "script, took it, for good"),
            (["-NOPERM no", "$-1", "$4|17-3", "-ERR EXEC without MULTI"], "script, for good"),
            (["-LOADING no", "-LOADING no", "-LOADING no", "-LOADING no"], "loading"),
            // A right that was taken away since: the key was set alone.
            (["+OK", "+OK", "+QUEUED", "-EXECABORT Transaction discarded"], "script, took it"),
            // Nobody knows what was done.
            (queued("+OK"), "broken"),
            ([":1", "+QUEUED", "+QUEUED", "*2|+OK|$4|17-3"], "broken"),
            (["+OK", "+OK", "*2|+OK|$4|17-3", ":1"], "broken"),
            (queued("*1|+OK"), "broken"),
            (queued("*2|+OK|+later"), "broken"),
            (queued("$-1"), "broken"),
        ] {
            assert_eq!(meaning(answers), expected, "{answers:?}");
        }
    }
}
