//! The counter of fencing tokens beside a lock.

use std::sync::Arc;

use super::state::{Entry, State, Value};

/// A fence is kept this long after its last use; a lock unused for longer counts as forgotten.
pub const KEPT_MS: u64 = 24 * 60 * 60 * 1_000;

/// Fences stay below 2^53, so that a JavaScript number and a Lua number hold them exactly.
pub const LIMIT: u64 = 1 << 53;

/// A proposal further ahead of the server's clock is not believed.
const AHEAD_US: u64 = 60 * 60 * 1_000_000;

/// A proposal further behind the server's clock is not believed.
const BEHIND_US: u64 = 1_000_000;

/// Reads the fence, 0 if there is none.
///
/// # Errors
/// The type and the key of what isn't a fence: no string, no number, or too large for one.
pub(super) fn read(state: &State, key: &str, now_us: u64) -> Result<u64, String> {
    let Some(entry) = state.get(key, now_us) else { return Ok(0) };
    let number = entry.text().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    match number.and_then(|text| text.parse().ok()) {
        Some(fence) if fence < LIMIT => Ok(fence),
        _ => Err(at(entry, key)),
    }
}

/// Names what was found where it doesn't belong.
pub(super) fn at(entry: &Entry, key: &str) -> String {
    format!("{} at {key}", entry.value.type_name())
}

/// Writes the fence and keeps it for another day.
pub(super) fn write(state: &mut State, key: &str, fence: u64, now_us: u64) {
    let text: Arc<str> = fence.to_string().into();
    state.put(key, Value::Text(text), now_us, Some(KEPT_MS));
}

/// The vote for a proposal: always above `fence`. `None` if there is no such number left.
pub(super) fn vote(fence: u64, proposal: u64, now_us: u64) -> Option<u64> {
    let believed = now_us.saturating_sub(BEHIND_US)..=now_us.saturating_add(AHEAD_US);
    let proposal = if believed.contains(&proposal) { proposal } else { now_us };
    Some(proposal.max(fence + 1)).filter(|vote| *vote < LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vote_is_the_proposal_or_one_more_than_the_fence() {
        const NOW: u64 = 1_800_000_000_000_000;
        for (fence, proposal, expected, why) in [
            (0, NOW, Some(NOW), "the proposal is new"),
            (NOW, NOW, Some(NOW + 1), "the proposal was taken"),
            (NOW + 9, NOW, Some(NOW + 10), "the proposal is old"),
            (0, NOW + AHEAD_US, Some(NOW + AHEAD_US), "an hour ahead is believed"),
            (0, NOW + AHEAD_US + 1, Some(NOW), "more is not"),
            (0, NOW - BEHIND_US, Some(NOW - BEHIND_US), "a second behind is believed"),
            (0, NOW - BEHIND_US - 1, Some(NOW), "more is not"),
            (0, 0, Some(NOW), "a client without a clock"),
            (LIMIT - 2, NOW, Some(LIMIT - 1), "the last number"),
            (LIMIT - 1, NOW, None, "no number is left"),
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
            ("9007199254740991", Ok(LIMIT - 1)),
            ("9007199254740992", Err(())),
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
