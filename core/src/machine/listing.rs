//! Listing: which locks and jobs there are. A server with many keys shows them part by part, and this one all at once.

use crate::machine::{Entry, State};
use crate::name::Listed;
use crate::op::holder::begins_as_ours;
use crate::op::{Cursor, Reply, Verdict};

/// All keys of this kind that contain `part`.
pub(super) fn scan(state: &State, listed: Listed, part: &str, now_us: u64) -> Reply {
    let is_listed = |entry: &Entry| listed != Listed::Locks || entry.text().is_some();
    let keys = state.iter(now_us).filter(|(_, entry)| is_listed(entry)).map(|(key, _)| key);
    let keys = keys.filter(|key| listed.may_be(key) && key.contains(part));
    Reply::new(Verdict::Scanned { next: Cursor::default(), keys: keys.map(str::to_owned).collect() }, 0, 0)
}

/// Whether the value of a key begins as one of this library.
pub(super) fn peek(state: &State, key: &str, now_us: u64) -> Reply {
    let value = state.get(key, now_us).and_then(Entry::text).unwrap_or_default();
    Reply::new(Verdict::Peeked(begins_as_ours(value.as_bytes())), 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Value;

    #[test]
    fn a_scan_shows_strings_that_are_no_side_keys_and_a_peek_says_which_are_ours() {
        let mut state = State::new();
        for key in ["a", "b", "{a}:~lt:queue", "{~lt}:marker", "gone"] {
            state.put(key, Value::Text(format!("host={key}").into()), 0, (key == "gone").then_some(1));
        }
        state.put("foreign", Value::Text("session".into()), 0, None);
        state.put("list", Value::Foreign("list".into()), 0, None);
        let found = |part: &str| match scan(&state, Listed::Locks, part, 10_000).verdict {
            Verdict::Scanned { keys, .. } => keys,
            other => panic!("{other:?}"),
        };
        assert_eq!(found(""), ["a", "b", "foreign"]);
        assert_eq!(found("b"), ["b"]);
        for (key, ours) in [("a", true), ("foreign", false), ("list", false), ("gone", false)] {
            assert_eq!(peek(&state, key, 10_000).verdict, Verdict::Peeked(ours), "{key}");
        }
    }
}
