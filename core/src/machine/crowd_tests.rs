//! A queue in which many have died.

use super::*;

const T: u64 = 1_800_000_000_000_000;

/// The keys of a lock, a server with so many dead waiters, and one behind them that lives.
fn crowded(dead: i64) -> (Keys, State) {
    let keys = Keys::new(crate::name::Kind::Exclusive, "", "a", true).unwrap();
    let mut state = State::new();
    for number in 0..dead {
        state.put_member(keys.queue(), &format!("b:gone{number}:1 x"), signed(T) - dead + number, T);
    }
    let place = QueuePlace { entry: "b:one:1 x".into(), arrival: 0, stays: false };
    assert!(matches!(enqueue(&mut state, &keys, &place, T), Queued::At { .. }));
    (keys, state)
}

fn members(state: &State, keys: &Keys, low: i64, high: i64) -> u64 {
    state.members(keys.queue(), T).map_or(0, |members| members.between(low, high))
}

#[test]
fn dead_waiters_are_dropped_three_hundred_at_a_time() {
    let (keys, mut state) = crowded(700);
    for (found, left) in [(false, 401), (false, 101), (true, 1)] {
        assert_eq!(first(&mut state, &keys, T).is_some(), found);
        assert_eq!(members(&state, &keys, 0, i64::MAX), left);
    }
    let (keys, mut state) = crowded(300);
    assert!(first(&mut state, &keys, T).is_some_and(|head| &*head.entry == "b:one:1 x"));
}

#[test]
fn a_client_that_joins_drops_ten_clients_that_have_died() {
    let (keys, mut state) = crowded(0);
    for number in 1..=25 {
        state.put_member(keys.queue(), &format!("late{number}"), number - signed(T), T);
    }
    for (waiter, clients) in [("b:two:1 x", 17), ("b:two:1 x", 17), ("b:three:1 x", 8), ("f:three:2 x", 3)] {
        let place = QueuePlace { entry: waiter.into(), arrival: 0, stays: false };
        enqueue(&mut state, &keys, &place, T);
        assert_eq!(members(&state, &keys, i64::MIN, 0), clients, "{waiter}");
    }
    assert_eq!(members(&state, &keys, 0, i64::MAX), 4, "nobody who lives is gone");
}
