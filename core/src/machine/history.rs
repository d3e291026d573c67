//! History: the last holds that lasted, of all locks of the server.

use std::collections::VecDeque;
use std::sync::Arc;

use super::fence::at;
use super::found::conflict;
use super::state::{State, Value};
use crate::name::HISTORY;
use crate::op::history::HISTORY_LENGTH;
use crate::op::{HistoryEntry, HistoryNote, Reply, Verdict};

/// The entries, the last one at the end.
///
/// # Errors
/// The refusal, if the key holds something else.
fn entries(state: &State, now_us: u64) -> Result<Option<&VecDeque<HistoryEntry>>, Reply> {
    match state.get(HISTORY, now_us) {
        None => Ok(None),
        Some(entry) => match &entry.value {
            Value::Log(entries) => Ok(Some(entries)),
            _ => Err(conflict(0, at(entry, HISTORY), now_us)),
        },
    }
}

/// Adds a note. Its id is above all earlier ones.
pub(super) fn log(state: &mut State, note: &HistoryNote, now_us: u64) -> Result<Reply, Reply> {
    let last = entries(state, now_us)?.and_then(VecDeque::back).map(|entry| entry.id);
    let now = (now_us / 1_000, 0);
    let id = last.filter(|last| *last >= now).map_or(now, |(ms, count)| (ms, count + 1));
    state.put_entry(HISTORY, HistoryEntry { id, note: note.clone() }, HISTORY_LENGTH, now_us);
    Ok(Reply::new(Verdict::Ok, 0, 0))
}

/// The last entries before an id and not before a time, the last one first.
pub(super) fn show(state: &State, before: Option<(u64, u64)>, since_ms: u64, count: u32, now_us: u64) -> Result<Reply, Reply> {
    let entries = entries(state, now_us)?;
    let is_shown = |entry: &&HistoryEntry| before.is_none_or(|before| entry.id < before) && entry.id.0 >= since_ms;
    let shown = entries.into_iter().flatten().rev().filter(is_shown).take(count as usize);
    Ok(Reply::new(Verdict::Logged(shown.cloned().collect::<Arc<[_]>>()), 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Beside, HoldState};

    const T: u64 = 1_800_000_000_000_000;

    fn note(fence: u64) -> HistoryNote {
        HistoryNote { lock: "a".into(), owner: "host=w".into(), fence, state: HoldState::Released, beside: Beside::Nobody }
    }

    fn fences(state: &State, before: Option<(u64, u64)>, since_ms: u64, count: u32) -> Vec<u64> {
        match show(state, before, since_ms, count, T).unwrap().verdict {
            Verdict::Logged(entries) => entries.iter().map(|entry| entry.note.fence).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_entries_are_kept_and_shown_in_parts() {
        let mut state = State::new();
        for number in 0..HISTORY_LENGTH as u64 + 10 {
            // The server's clock is set back once.
            let at = if number == 7 { T - 5_000_000 } else { T + number * 1_000 };
            log(&mut state, &note(number), at).unwrap();
        }
        let last = HISTORY_LENGTH as u64 + 9;
        assert_eq!(fences(&state, None, 0, 2), [last, last - 1]);
        assert_eq!(fences(&state, Some((T / 1_000 + 20, 0)), 0, 100).as_slice(), (10..20).rev().collect::<Vec<_>>());
        assert_eq!(fences(&state, None, T / 1_000 + last, 100), [last]);
    }

    #[test]
    fn ids_rise_within_a_millisecond_and_where_the_clock_is_set_back() {
        let mut state = State::new();
        for at in [T, T + 999, T - 1_000, T + 1_000] {
            log(&mut state, &note(1), at).unwrap();
        }
        let Verdict::Logged(entries) = show(&state, None, 0, 9, T).unwrap().verdict else { panic!("no entries") };
        let ids: Vec<_> = entries.iter().map(|entry| (entry.id.0 - T / 1_000, entry.id.1)).collect();
        assert_eq!(ids, [(1, 0), (0, 2), (0, 1), (0, 0)]);
    }

    #[test]
    fn what_is_no_history_stays_as_it_is() {
        let mut state = State::new();
        state.put(HISTORY, Value::Text("7".into()), T, None);
        let refused = Verdict::Conflict { found: format!("string at {HISTORY}") };
        assert_eq!(log(&mut state, &note(1), T).unwrap_err().verdict, refused);
        assert_eq!(show(&state, None, 0, 1, T).unwrap_err().verdict, refused);
    }
}
