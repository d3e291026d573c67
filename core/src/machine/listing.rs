//! Listing: which locks and jobs there are. A server with many keys shows them part by part, and this one all at once.

use crate::machine::State;
use crate::name::Listed;
use crate::op::{Reply, Verdict};

/// All keys of this kind that contain `part`.
pub(super) fn scan(state: &State, listed: Listed, part: &str, now_us: u64) -> Reply {
    let keys = state.iter(now_us).map(|(key, _)| key).filter(|key| listed.may_be(key) && key.contains(part));
    Reply::new(Verdict::Scanned { next: 0, keys: keys.map(str::to_owned).collect() }, 0, 0)
}

/// Which of the keys are strings.
pub(super) fn present(state: &State, keys: &[String], now_us: u64) -> Reply {
    let is_string = |key: &String| state.get(key, now_us).is_some_and(|entry| entry.text().is_some());
    Reply::new(Verdict::Present(keys.iter().map(is_string).collect()), 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Value;

    #[test]
    fn a_scan_shows_fences_and_nothing_else() {
        let mut state = State::new();
        for key in ["a", "{a}:~lt:fence", "{a}:~lt:queue", "{b}:~lt:fence", "{x}c:~lt:tag:fence", "{gone}:~lt:fence"] {
            let ttl = (key == "{gone}:~lt:fence").then_some(1);
            state.put(key, Value::Text("7".into()), 0, ttl);
        }
        state.put("list", Value::Foreign("list".into()), 0, None);
        let found = |part: &str| match scan(&state, Listed::Fences, part, 10_000).verdict {
            Verdict::Scanned { next: 0, keys } => keys,
            other => panic!("{other:?}"),
        };
        assert_eq!(found(""), ["{a}:~lt:fence", "{b}:~lt:fence", "{x}c:~lt:tag:fence"]);
        assert_eq!(found("b"), ["{b}:~lt:fence"]);
        let keys = ["a", "b", "list"].map(str::to_owned);
        assert_eq!(present(&state, &keys, 10_000).verdict, Verdict::Present(vec![true, false, false]));
    }
}
