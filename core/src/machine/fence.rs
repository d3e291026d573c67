//! Fence: the counter beside a lock, which every hold increases.

use std::sync::Arc;

use super::state::{Entry, State, Value};
use crate::mutant::mutant;

/// A fence is kept this long after the lock's end; a lock unused for longer counts as forgotten.
pub const KEPT_MS: u64 = 24 * 60 * 60 * 1_000;

/// The first number that is too large for a fence: below it a JavaScript number and a Lua number hold every integer exactly.
pub const LIMIT: u64 = (1 << 53) - 1;

/// A proposal further ahead of the server's clock is not believed.
const AHEAD_US: u64 = 60 * 60 * 1_000_000;

/// A proposal further behind the server's clock is not believed.
const BEHIND_US: u64 = 1_000_000;

/// Reads the fence, 0 if there is none.
///
/// # Errors
/// The type and the key of a value that isn't a fence: no string, no number, or too large for one.
pub(super) fn read(state: &State, key: &str, now_us: u64) -> Result<u64, String> {
    let Some(entry) = state.get(key, now_us) else { return Ok(0) };
    let number = entry.text().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    match number.and_then(|text| text.parse().ok()) {
        Some(fence) if fence < LIMIT => Ok(fence),
        _ => Err(at(entry, key)),
    }
}

/// The type and the key of an entry that doesn't belong there.
pub(super) fn at(entry: &Entry, key: &str) -> String {
    format!("{} at {key}", entry.value.type_name())
}

/// Writes the fence of a lock that remains for `left_ms`, and keeps it for a day more. So a release need not write it.
pub(super) fn write(state: &mut State, key: &str, fence: u64, left_ms: u64, now_us: u64) {
    let text: Arc<str> = fence.to_string().into();
    state.put(key, Value::Text(text), now_us, Some(left_ms.saturating_add(KEPT_MS)));
}

/// The vote for a proposal: always above `fence`.
pub(super) fn vote(fence: u64, proposal: u64, now_us: u64) -> u64 {
    let believed = now_us.saturating_sub(BEHIND_US)..=now_us.saturating_add(AHEAD_US);
    let proposal = if believed.contains(&proposal) { proposal } else { now_us };
    proposal.max(fence + u64::from(!mutant!(VoteRepeats)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_is_the_proposal_or_one_more_than_the_fence() {
        const NOW: u64 = 1_800_000_000_000_000;
        for (fence, proposal, expected, why) in [
            (0, NOW, NOW, "the proposal is new"),
            (NOW, NOW, NOW + 1, "the proposal was taken"),
            (NOW + 9, NOW, NOW + 10, "the proposal is old"),
            (0, NOW + AHEAD_US, NOW + AHEAD_US, "an hour ahead is believed"),
            (0, NOW + AHEAD_US + 1, NOW, "more is not"),
            (0, NOW - BEHIND_US, NOW - BEHIND_US, "a second behind is believed"),
            (0, NOW - BEHIND_US - 1, NOW, "more is not"),
            (0, 0, NOW, "a client without a clock"),
            (LIMIT - 1, NOW, LIMIT, "the last number"),
        ] {
            assert_eq!(vote(fence, proposal, NOW), expected, "{why}");
        }
    }

    #[test]
    fn what_is_no_fence_is_named() {
        let mut state = State::new();
        for (text, expected) in [
            ("0", Ok(0)),
            ("007", Ok(7)),
            ("9007199254740990", Ok(LIMIT - 1)),
            ("9007199254740991", Err(())),
            ("99999999999999999999999", Err(())),
            ("", Err(())),
            ("-1", Err(())),
            ("1.5", Err(())),
            ("1e3", Err(())),
            (" 1", Err(())),
            ("garbage", Err(())),
        ] {
            state.put("f", Value::Text(text.into()), 0, None);
            assert_eq!(read(&state, "f", 0).map_err(|found| assert_eq!(found, "string at f")), expected, "{text:?}");
        }
        state.put("f", Value::Foreign("list".into()), 0, None);
        assert_eq!(read(&state, "f", 0), Err("list at f".to_owned()));
        assert_eq!(read(&state, "absent", 0), Ok(0));
    }
}
