//! Listing: the answers that say which locks there are. Pure.

use redis::Value;

use crate::op::holder::begins_as_ours;
use crate::op::{Answer, Cursor, Failure, FailureKind, Op, Reply, Verdict};
use crate::server::redis::commands::refusal;

/// The answer to `SCAN`.
pub(crate) fn scanned(op: &Op, parts: Vec<Value>) -> Answer {
    let unreadable = || Failure::unknown(FailureKind::Protocol, format!("{} was answered with another form", op.name()));
    read(parts).map(|verdict| Reply::new(verdict, 0, 0)).ok_or_else(unreadable)
}

fn read(parts: Vec<Value>) -> Option<Verdict> {
    let [next, Value::Array(keys)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let next = Cursor { own: redis::from_redis_value(next).ok()?, place: 0 };
    // No lock of ours has a name that isn't UTF-8.
    let keys = keys.into_iter().filter_map(|key| redis::from_redis_value(key).ok()).collect();
    Some(Verdict::Scanned { next, keys })
}

/// The answer to `GETRANGE`. The key may be one of another type by now.
pub(crate) fn peeked(value: Value) -> Answer {
    let begins = match value {
        Value::BulkString(beginning) => begins_as_ours(&beginning),
        Value::ServerError(error) if error.code() == "WRONGTYPE" => false,
        Value::ServerError(error) => return Err(refusal::failure(&error.into(), true)),
        _ => return Err(Failure::unknown(FailureKind::Protocol, "a peek was answered with another form")),
    };
    Ok(Reply::new(Verdict::Peeked(begins), 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Listed;

    fn text(bytes: &[u8]) -> Value {
        Value::BulkString(bytes.to_vec())
    }

    #[test]
    fn answers_are_read_and_others_refused() {
        let scan = Op::Scan { listed: Listed::Records, cursor: Cursor::default(), part: "".into() };
        let keys = Value::Array(vec![text(b"{a}:~lt:job"), text(b"\xff:~lt:job")]);
        let reply = scanned(&scan, vec![text(b"17179869184"), keys.clone()]).unwrap();
        assert_eq!(
            reply.verdict,
            Verdict::Scanned { next: Cursor { own: 17_179_869_184, place: 0 }, keys: vec!["{a}:~lt:job".into()] }
        );
        for parts in [vec![], vec![text(b"x"), keys.clone()], vec![keys], vec![text(b"1"), text(b"2")]] {
            assert_eq!(scanned(&scan, parts).unwrap_err().kind, FailureKind::Protocol);
        }
        for (beginning, expected) in [
            ("host=w", true),
            ("app=bi", true),
            ("kept a", true),
            ("read h", true),
            ("permit", true),
            ("sessio", false),
            ("", false),
        ] {
            assert_eq!(peeked(text(beginning.as_bytes())).unwrap().verdict, Verdict::Peeked(expected), "{beginning}");
        }
        assert!(peeked(Value::Nil).is_err());
    }
}
