//! Listing: the answers that say which locks there are. Pure.

use redis::Value;

use crate::op::{Answer, Failure, FailureKind, Op, Reply, Verdict};

/// The answer to `SCAN` or `MGET`.
pub(crate) fn listed(op: &Op, parts: Vec<Value>) -> Answer {
    let verdict = match op {
        Op::Present { keys } => {
            let present: Vec<bool> = parts.iter().map(|value| !matches!(value, Value::Nil)).collect();
            (present.len() == keys.len()).then_some(Verdict::Present(present))
        }
        _ => scanned(parts),
    };
    let unreadable = || Failure::unknown(FailureKind::Protocol, format!("{} was answered with another form", op.name()));
    verdict.map(|verdict| Reply::new(verdict, 0, 0)).ok_or_else(unreadable)
}

fn scanned(parts: Vec<Value>) -> Option<Verdict> {
    let [next, Value::Array(keys)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let next = redis::from_redis_value(next).ok()?;
    // No lock of ours has a name that isn't UTF-8.
    let keys = keys.into_iter().filter_map(|key| redis::from_redis_value(key).ok()).collect();
    Some(Verdict::Scanned { next, keys })
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
        let scan = Op::Scan { listed: Listed::Fences, cursor: 0, part: "".into() };
        let keys = Value::Array(vec![text(b"{a}:~lt:fence"), text(b"\xff:~lt:fence")]);
        let reply = listed(&scan, vec![text(b"17179869184"), keys.clone()]).unwrap();
        assert_eq!(reply.verdict, Verdict::Scanned { next: 17_179_869_184, keys: vec!["{a}:~lt:fence".into()] });
        for parts in [vec![], vec![text(b"x"), keys.clone()], vec![keys], vec![text(b"1"), text(b"2")]] {
            assert_eq!(listed(&scan, parts).unwrap_err().kind, FailureKind::Protocol);
        }
        let present = Op::Present { keys: ["a".to_owned(), "b".to_owned()].into() };
        let reply = listed(&present, vec![text(b"x"), Value::Nil]).unwrap();
        assert_eq!(reply.verdict, Verdict::Present(vec![true, false]));
        assert!(listed(&present, vec![Value::Nil]).is_err());
    }
}
