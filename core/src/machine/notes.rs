//! Notes: what is written behind the owner in the value of a lock's key.

use super::state::{State, Value};
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::holder::{fence_of, is_ours, owner_of, shows_waiters, with_fence, with_waiters};

/// Writes something behind the value of the lock's key. Its expiry stays.
fn note(state: &mut State, keys: &Keys, changed: impl FnOnce(&str) -> Option<String>, now_us: u64) {
    let Some(entry) = state.get(keys.lock(), now_us) else { return };
    let left_ms = entry.left_ms(now_us);
    if let Some(value) = entry.text().filter(|value| is_ours(value) || mutant!(ForeignAnnotated)).and_then(changed) {
        state.put(keys.lock(), Value::Text(value.into()), now_us, left_ms);
    }
}

/// Has the value show the fence, if it shows none.
pub(super) fn show_fence(state: &mut State, keys: &Keys, fence: u64, now_us: u64) {
    let shown = |value: &str| with_fence(if mutant!(RenewalRewrites) { owner_of(value) } else { value }, fence);
    note(state, keys, |value| fence_of(value).is_none().then(|| shown(value)), now_us);
}

/// Has the value show that a client waits.
pub(super) fn note_waiters(state: &mut State, keys: &Keys, now_us: u64) {
    note(state, keys, |value| (!shows_waiters(value)).then(|| with_waiters(value)), now_us);
}
