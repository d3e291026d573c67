//! Fence: the counter beside a lock, which every hold increases.

use std::sync::Arc;

use super::state::{Entry, State, Value};
use crate::mutant::mutant;

/// A fence is kept this long after the lock's end. A lock that was not used for longer counts as forgotten.
pub const KEPT_MS: u64 = 2 * 60 * 60 * 1_000;

/// A lower number is no time.
const FIRST_TIME: u64 = 1_000_000_000_000_000;

/// The first number that is too large for a fence: below it a JavaScript number and a Lua number hold every integer exactly.
pub const LIMIT: u64 = (1 << 53) - 1;

/// A proposal further from the server's clock is not believed, unless it follows the fence within that time. A fence far ahead of the
/// clock would be repeated after a failover: the replica may have lost the last ones, and its clock has not reached them.
const NEAR_US: u64 = 1_000_000;

/// The mark behind the number of a fence while a client may wait. Without it, nobody looks at the queue.
const MARK: char = 'q';

/// The value of a fence's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fence {
    /// 0 if there is none.
    pub(super) number: u64,
    pub(super) is_marked: bool,
    pub(super) exists: bool,
}

impl Fence {
    /// Whether the fence says that nobody waits.
    pub(super) const fn denies_waiters(self) -> bool {
        self.exists && !self.is_marked
    }
}

/// Reads the fence.
///
/// # Errors
/// The type and the key of a value that isn't a fence: no string, no number, or too large for one.
pub(super) fn read(state: &State, key: &str, now_us: u64) -> Result<Fence, String> {
    let Some(entry) = state.get(key, now_us) else { return Ok(Fence::default()) };
    let text = entry.text().unwrap_or_default();
    let digits = text.strip_suffix(MARK).unwrap_or(text);
    let number = if is_number(digits) { digits.parse().ok() } else { None };
    match number {
        Some(number) if number < LIMIT => Ok(Fence { number, is_marked: digits.len() < text.len(), exists: true }),
        _ => Err(at(entry, key)),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the key has a text without the mark: then a release looks no further, whatever the text is.
pub(super) fn shows_no_waiters(state: &State, key: &str, now_us: u64) -> bool {
    state.get(key, now_us).and_then(Entry::text).is_some_and(|text| !text.ends_with(MARK))
}

/// Whether a proposal may be a fence: then a single server writes it before it has seen the fence that is there.
pub(crate) fn is_time(proposal: u64) -> bool {
    (FIRST_TIME..LIMIT).contains(&proposal)
}

/// Marks the fence, because a client waits.
pub(super) fn mark(state: &mut State, key: &str, now_us: u64) {
    if mutant!(WaiterNotMarked) {
        return;
    }
    match state.get(key, now_us).map(|entry| (entry.text().map(str::to_owned), entry.left_ms(now_us))) {
        None => state.put(key, Value::Text(format!("0{MARK}").into()), now_us, Some(KEPT_MS)),
        Some((Some(text), left_ms)) if is_number(&text) => {
            state.put(key, Value::Text(format!("{text}{MARK}").into()), now_us, left_ms);
        }
        Some(_) => {}
    }
}

/// The type and the key of an entry that doesn't belong there.
pub(super) fn at(entry: &Entry, key: &str) -> String {
    format!("{} at {key}", entry.value.type_name())
}

/// Writes the fence of a lock that remains for `left_ms`, and keeps it for two hours more. So a release need not write it.
pub(super) fn write(state: &mut State, key: &str, fence: u64, is_marked: bool, left_ms: u64, now_us: u64) {
    let text: Arc<str> = if is_marked { format!("{fence}{MARK}").into() } else { fence.to_string().into() };
    state.put(key, Value::Text(text), now_us, Some(left_ms.saturating_add(KEPT_MS)));
}

/// The vote for a proposal: always above `fence`.
pub(super) fn vote(fence: u64, proposal: u64, now_us: u64) -> u64 {
    let follows = (fence + 1..=fence + NEAR_US).contains(&proposal);
    let is_near = follows || proposal.abs_diff(now_us) <= NEAR_US || mutant!(FarProposalBelieved);
    let believed = if is_time(proposal) && is_near { proposal } else { now_us };
    believed.max(fence + u64::from(!mutant!(VoteRepeats)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_vote_is_a_near_proposal_or_one_more_than_the_fence() {
        const NOW: u64 = 1_800_000_000_000_000;
        const HOUR: u64 = 3_600 * NEAR_US;
        for (fence, proposal, expected, why) in [
            (0, NOW, NOW, "the proposal is new"),
            (NOW, NOW, NOW + 1, "the proposal was taken"),
            (NOW + 9, NOW, NOW + 10, "the proposal is old"),
            (0, NOW + NEAR_US, NOW + NEAR_US, "a second ahead is believed"),
            (0, NOW + NEAR_US + 1, NOW, "more is not"),
            (0, NOW - NEAR_US, NOW - NEAR_US, "a second behind is believed"),
            (0, NOW - NEAR_US - 1, NOW, "more is not"),
            (0, 0, NOW, "a client without a clock"),
            (NOW + HOUR, NOW + HOUR + NEAR_US, NOW + HOUR + NEAR_US, "it follows the fence"),
            (NOW + HOUR, NOW + HOUR + NEAR_US + 1, NOW + HOUR + 1, "it is far from fence and clock"),
            (7, 8, NOW, "it is no time"),
            (LIMIT - 1, NOW, LIMIT, "the last number"),
            (LIMIT - 9, LIMIT, LIMIT - 8, "it is too large for a fence"),
        ] {
            assert_eq!(vote(fence, proposal, NOW), expected, "{why}");
        }
    }

    #[test]
    fn a_proposal_is_believed_within_a_second_of_fence_or_clock() {
        a_vote_is_a_near_proposal_or_one_more_than_the_fence();
    }

    #[test]
    fn a_server_that_believes_every_proposal_is_noticed() {
        use crate::mutant::{Mutant, assert_noticed};
        assert_noticed(Mutant::FarProposalBelieved, a_vote_is_a_near_proposal_or_one_more_than_the_fence);
    }

    #[test]
    fn what_is_no_fence_is_named() {
        let mut state = State::new();
        let fence = |number, is_marked| Ok(Fence { number, is_marked, exists: true });
        for (text, expected) in [
            ("0", fence(0, false)),
            ("007", fence(7, false)),
            ("7q", fence(7, true)),
            ("9007199254740990", fence(LIMIT - 1, false)),
            ("9007199254740991", Err(())),
            ("99999999999999999999999", Err(())),
            ("", Err(())),
            ("-1", Err(())),
            ("1.5", Err(())),
            ("1e3", Err(())),
            (" 1", Err(())),
            ("garbage", Err(())),
            ("q", Err(())),
            ("7qq", Err(())),
            ("7 q", Err(())),
        ] {
            state.put("f", Value::Text(text.into()), 0, None);
            assert_eq!(read(&state, "f", 0).map_err(|found| assert_eq!(found, "string at f")), expected, "{text:?}");
        }
        state.put("f", Value::Foreign("list".into()), 0, None);
        assert_eq!(read(&state, "f", 0), Err("list at f".to_owned()));
        assert_eq!(read(&state, "absent", 0), Ok(Fence::default()));
    }

    #[test]
    fn a_mark_changes_neither_number_nor_expiry() {
        let mut state = State::new();
        for (text, expected) in [("7", "7q"), ("007", "007q"), ("7q", "7q"), ("garbage", "garbage")] {
            state.put("f", Value::Text(text.into()), 0, Some(10));
            mark(&mut state, "f", 0);
            let entry = state.get("f", 0).unwrap();
            assert_eq!((entry.text(), entry.left_ms(0)), (Some(expected), Some(10)));
            assert_eq!(shows_no_waiters(&state, "f", 0), text == "garbage", "{text}");
        }
        mark(&mut state, "new", 0);
        assert_eq!(state.get("new", 0).and_then(|entry| Some((entry.text()?, entry.left_ms(0)?))), Some(("0q", KEPT_MS)));
    }
}
