//! Clock: gives the fences of all locks of a slot on one server. It is a stream that keeps no entry, because the ids of a stream never
//! repeat and never sink, whatever happens to the server's own clock.

use super::fence::{LIMIT, at};
use super::state::{State, Value};
use crate::mutant::mutant;

/// A millisecond has so many ids that are fences. More are asked for only where the server's clock was set back.
const PER_MS: u64 = 1_000;

/// A floor further above the clock than this is ignored, so that the clock of one bad server doesn't spread.
const FAR_US: u64 = 3_600_000_000;

/// The last id that a clock gave: milliseconds, and how many came before it in that millisecond.
pub(super) type Id = (u64, u64);

fn fence_of((ms, count): Id) -> u64 {
    ms.saturating_mul(PER_MS).saturating_add(count)
}

fn id_of(fence: u64) -> Id {
    (fence / PER_MS, fence % PER_MS)
}

/// Whether a floor refuses a fence.
fn refuses(floor: u64, fence: u64) -> bool {
    fence <= floor && floor - fence <= FAR_US && !mutant!(FloorIgnored)
}

/// The fence that an id is, above `floor` (0: none), if it can be one.
pub fn fence_of_id(id: Id, floor: u64) -> Option<u64> {
    let is_fence = |fence: &u64| (id.1 < PER_MS || mutant!(FenceOverflows)) && *fence < LIMIT && !refuses(floor, *fence);
    Some(fence_of(id)).filter(is_fence)
}

/// The last id; 0 for none.
///
/// # Errors
/// The type and the key of a value that is no clock.
fn read(state: &State, key: &str, now_us: u64) -> Result<Id, String> {
    match state.get(key, now_us) {
        None => Ok((0, 0)),
        Some(entry) => match entry.value {
            Value::Clock(ms, count) => Ok((ms, count)),
            _ => Err(at(entry, key)),
        },
    }
}

/// The last fence that the clock has given; 0 for none. An id beyond the thousand of its millisecond is none.
pub(super) fn last(state: &State, key: &str, now_us: u64) -> u64 {
    read(state, key, now_us).map_or(0, |(ms, count)| fence_of((ms, count.min(PER_MS - 1))))
}

/// The id that a stream gives next (`XADD … *`).
fn next((ms, count): Id, now_us: u64) -> Id {
    if now_us / 1_000 > ms { (now_us / 1_000, 0) } else { (ms, count + 1) }
}

/// Gives the next id.
///
/// # Errors
/// The type and the key of a value that is no clock.
pub(super) fn give(state: &mut State, key: &str, now_us: u64) -> Result<Id, String> {
    let given = next(read(state, key, now_us)?, state.clock_time(key, now_us));
    write(state, key, given, now_us);
    Ok(given)
}

/// Gives the next fence, above `floor` (0: none).
///
/// # Errors
/// The type and the key of a value that is no clock, or that can give no fence any more.
pub(super) fn tick(state: &mut State, key: &str, floor: u64, now_us: u64) -> Result<u64, String> {
    let last = read(state, key, now_us)?;
    let given = if mutant!(FenceRepeats) { last } else { next(last, state.clock_time(key, now_us)) };
    write(state, key, given, now_us);
    let mut id = given;
    if id.1 >= PER_MS && !mutant!(FenceOverflows) {
        id = (id.0 + 1, 0);
    }
    if refuses(floor, fence_of(id)) {
        id = id_of(floor + 1);
    }
    if fence_of(id) >= LIMIT {
        return Err(format!("stream at {key}"));
    }
    write(state, key, id, now_us);
    Ok(fence_of(id))
}

/// Has the clock give no fence any more up to this one. One that is no clock stays as it is.
pub(super) fn raise(state: &mut State, key: &str, fence: u64, now_us: u64) {
    let Ok(_) = read(state, key, now_us) else { return };
    let last = last(state, key, now_us);
    let far = fence.saturating_sub((last + 1).max(now_us / 1_000 * 1_000)) > FAR_US;
    if fence > last && !far && !mutant!(ConfirmRaisesNothing) {
        write(state, key, id_of(fence), now_us);
    }
}

/// An expiry that another program has given the key stays.
fn write(state: &mut State, key: &str, (ms, count): Id, now_us: u64) {
    let left_ms = state.get(key, now_us).and_then(|entry| entry.left_ms(now_us));
    state.put(key, Value::Clock(ms, count), now_us, left_ms);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::{Mutant, assert_noticed};

    const T: u64 = 1_800_000_000_000_000;

    fn id(state: &State) -> Id {
        read(state, "c", T).unwrap()
    }

    fn fences_rise_above_the_floor() {
        let mut state = State::new();
        let mut tick = |floor, now_us| tick(&mut state, "c", floor, now_us).unwrap();
        assert_eq!(tick(0, T + 999), T, "a whole millisecond");
        assert_eq!(tick(0, T + 999), T + 1);
        assert_eq!(tick(0, T + 1_000), T + 1_000);
        assert_eq!(tick(0, T - 50 * 60 * 1_000_000), T + 1_001, "the clock was set back");
        assert_eq!(tick(T + 1_000, T), T + 1_002, "above the floor already");
        assert_eq!(tick(T + 5_000, T), T + 5_001);
        assert_eq!(tick(T + 5_000 + FAR_US + 3, T), T + 5_002, "a floor too far ahead");
        // The id of a transaction is assessed alike.
        let fence = |floor| fence_of_id((T / 1_000, 2), floor);
        assert_eq!([fence(T + 1), fence(T + 2), fence(T + 3 + FAR_US)], [Some(T + 2), None, Some(T + 2)]);
    }

    #[test]
    fn fences_are_the_time_and_never_repeat() {
        fences_rise_above_the_floor();
        assert_noticed(Mutant::FloorIgnored, fences_rise_above_the_floor);
    }

    #[test]
    fn a_millisecond_that_has_no_fence_left_is_followed_by_the_next() {
        a_millisecond_has_a_thousand_fences();
        assert_noticed(Mutant::FenceOverflows, a_millisecond_has_a_thousand_fences);
    }

    fn a_millisecond_has_a_thousand_fences() {
        let mut state = State::new();
        write(&mut state, "c", (T / 1_000, 998), T);
        assert_eq!(tick(&mut state, "c", 0, T).unwrap(), T + 999);
        assert_eq!(tick(&mut state, "c", 0, T).unwrap(), T + 1_000);
        assert_eq!(id(&state), (T / 1_000 + 1, 0));
    }

    #[test]
    fn a_clock_is_raised_and_never_lowered() {
        let mut state = State::new();
        raise(&mut state, "c", T + 7_003, T);
        assert_eq!(id(&state), (T / 1_000 + 7, 3));
        raise(&mut state, "c", T, T);
        raise(&mut state, "c", T + FAR_US + 10_000, T);
        assert_eq!(id(&state), (T / 1_000 + 7, 3));
        assert_eq!(tick(&mut state, "c", 0, T).unwrap(), T + 7_004);
    }

    #[test]
    fn what_is_no_clock_gives_no_fence() {
        let mut state = State::new();
        state.put("c", Value::Text("7".into()), T, None);
        assert_eq!(tick(&mut state, "c", 0, T), Err("string at c".into()));
        raise(&mut state, "c", T, T);
        assert_eq!(state.get("c", T).and_then(|entry| entry.text()), Some("7"));
        write(&mut state, "c", (LIMIT / 1_000, 990), T);
        assert_eq!(tick(&mut state, "c", 0, T), Err("stream at c".into()));
    }
}
