//! History: the answers about what holders have noted. Pure.

use redis::Value;

use crate::name::HISTORY;
use crate::op::{Answer, Beside, Failure, FailureKind, HistoryEntry, HistoryNote, HoldState, Op, Reply, Verdict};
use crate::server::redis::commands::refusal;

/// Fences, and times in microseconds, are below this number. No client writes a larger one.
const LIMIT: u64 = 1 << 53;

/// The answer to `XADD` or `XREVRANGE`.
pub(crate) fn reply(op: &Op, value: Value) -> Answer {
    let verdict = match (op, value) {
        // The server doesn't say what is there.
        (_, Value::ServerError(error)) if error.code() == "WRONGTYPE" => {
            Verdict::Conflict { found: format!("value of another type at {HISTORY}") }
        }
        (_, Value::ServerError(error)) => return Err(refusal::failure(&error.into(), true)),
        (Op::Log(_), Value::BulkString(_)) => Verdict::Ok,
        // Who wrote something else there is no client of this version.
        (_, Value::Array(entries)) => Verdict::Logged(entries.into_iter().filter_map(entry).collect()),
        _ => {
            let message = format!("{} was answered with another form", op.name());
            return Err(Failure::unknown(FailureKind::Protocol, message));
        }
    };
    Ok(Reply::new(verdict, 0, 0))
}

fn entry(value: Value) -> Option<HistoryEntry> {
    let (id, fields): (String, Vec<String>) = redis::from_redis_value(value).ok()?;
    let (ms, number) = id.split_once('-')?;
    let field = |name: &str| Some(&**fields.chunks_exact(2).find(|pair| pair[0] == name)?.get(1)?);
    let note = HistoryNote {
        lock: field("l")?.into(),
        owner: field("o")?.into(),
        fence: field("f")?.parse().ok().filter(|fence| *fence < LIMIT)?,
        state: HoldState::read(field("s")?)?,
        beside: Beside::read(field("k").unwrap_or_default())?,
    };
    let ms = ms.parse().ok().filter(|ms| *ms < LIMIT / 1_000)?;
    Some(HistoryEntry { id: (ms, number.parse().ok()?), note })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn entries_are_read_and_what_others_wrote_is_left_out() {
        let op = Op::History { before: None, since_ms: 0, count: 9 };
        let of = |id: &str, fields: &[&str]| {
            Value::Array(vec![text(id), Value::Array(fields.iter().map(|field| text(field)).collect())])
        };
        let whole = ["l", "orders:42", "o", "host=w", "f", "7", "s", "released", "later", "x"];
        let reader = ["l", "orders:42", "o", "host=w", "f", "7", "s", "released", "k", "r"];
        let unknown = ["l", "orders:42", "o", "host=w", "f", "7", "s", "released", "k", "x"];
        let large = ["l", "orders:42", "o", "host=w", "f", "9007199254740992", "s", "released"];
        let answer = Value::Array(vec![
            of("5-1", &whole),
            of("4-0", &whole[..6]),
            of("x", &whole),
            of("3-0", &["a", "b"]),
            of("9007199254741-0", &whole),
            of("2-0", &large),
            of("1-0", &reader),
            of("1-0", &unknown),
        ]);
        let (lock, owner, state) = ("orders:42".into(), "host=w".into(), HoldState::Released);
        let note = HistoryNote { lock, owner, fence: 7, state, beside: Beside::Nobody };
        let of_reader = HistoryNote { beside: Beside::Readers, ..note.clone() };
        let entries = [HistoryEntry { id: (5, 1), note: note.clone() }, HistoryEntry { id: (1, 0), note: of_reader }].into();
        assert_eq!(reply(&op, answer).unwrap().verdict, Verdict::Logged(entries));
        assert_eq!(reply(&op, Value::Array(vec![])).unwrap().verdict, Verdict::Logged([].into()));
        assert_eq!(reply(&Op::Log(Box::new(note)), text("5-1")).unwrap().verdict, Verdict::Ok);
        let wrong = redis::parse_redis_value(b"-WRONGTYPE Operation against a key\r\n").unwrap();
        let found = "value of another type at {~lt}:log".to_owned();
        assert_eq!(reply(&op, wrong).unwrap().verdict, Verdict::Conflict { found });
        assert_eq!(reply(&op, Value::Nil).unwrap_err().kind, FailureKind::Protocol);
    }
}
