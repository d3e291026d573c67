//! Markers: when a server votes, and how long a marker stays.

use super::*;
use crate::mutant::{Mutant, assert_noticed};

const CONFIG: QuorumConfig = QuorumConfig { servers: 3, max_ttl_ms: 60_000 };
const NOW: u64 = 1_800_000_000_000_000;

fn env(now_us: u64, replid: &str) -> Env<'_> {
    Env { now_us, replid, known_as: replid, is_renamed: false }
}

fn admits(state: &mut State, now_us: u64, replid: &str) -> Option<Verdict> {
    let reply = admit(state, Keys::server_marker(), &CONFIG, &env(now_us, replid))?;
    Some(reply.verdict)
}

fn marker(state: &State) -> &str {
    state.get(Keys::server_marker(), NOW).and_then(Entry::text).unwrap()
}

fn waits(ms: u64) -> Option<Verdict> {
    Some(Verdict::Quarantine { left: Duration::from_millis(ms) })
}

#[test]
fn a_new_server_votes_once_every_forgotten_hold_has_ended() {
    let mut state = State::new();
    assert_eq!(admits(&mut state, NOW, "a"), waits(60_000));
    assert_eq!(admits(&mut state, NOW + 1, "a"), waits(60_000), "rounded up, so that nobody comes too early");
    assert_eq!(admits(&mut state, NOW + 59_999_999, "a"), waits(1));
    assert_eq!(marker(&state), format!("n=3 max_ttl=60000 run=a since={NOW}"));
    assert_eq!(greet(&mut state, Some(&CONFIG), &env(NOW + 60_000_000, "a")).verdict, Verdict::Ok);
    assert_eq!(admits(&mut state, NOW + 60_000_000, "a"), None);
    assert_eq!(marker(&state), "n=3 max_ttl=60000 run=a since=0", "from here on acquires only compare it");
}

fn left_ms(state: &State, now_us: u64) -> Option<u64> {
    state.get(Keys::server_marker(), now_us).and_then(|entry| entry.left_ms(now_us))
}

/// What a client of one server gets.
fn greet_one(state: &mut State, now_us: u64) -> Verdict {
    greet(state, None, &env(now_us, "a")).verdict
}

#[test]
fn a_marker_that_has_never_voted_goes_by_itself_and_refuses_no_client_of_one_server() {
    let goes = || {
        let mut state = State::new();
        assert_eq!(admits(&mut state, NOW, "a"), waits(60_000));
        assert_eq!(greet_one(&mut state, NOW), Verdict::Ok);
        assert_eq!(left_ms(&state, NOW + 50_000_000), Some(70_000), "two max_ttl; who has one server keeps nothing there");
        admits(&mut state, NOW + 50_000_000, "a");
        assert_eq!(left_ms(&state, NOW + 50_000_000), Some(120_000));
        greet(&mut state, Some(&CONFIG), &env(NOW + 55_000_000, "b"));
        assert_eq!(left_ms(&state, NOW + 55_000_000), Some(120_000), "each look, also under another replication id");
        admits(&mut state, NOW + 57_000_000, "b");
        assert_eq!(left_ms(&state, NOW + 57_000_000), Some(120_000), "nor has it voted in the next one");
        assert_eq!(greet_one(&mut state, NOW + 57_000_000), Verdict::Ok);
        let alone = QuorumConfig { servers: 1, max_ttl_ms: 60_000 };
        let quarantined = admit(&mut state, Keys::server_marker(), &alone, &env(NOW + 57_000_000, "b"));
        assert_eq!(quarantined.map(|reply| reply.verdict), waits(60_000));
        assert_eq!(left_ms(&state, NOW + 57_000_000), None, "the marker of one server stays");
    };
    goes();
    assert_noticed(Mutant::MistakeLocksOut, goes);
    assert_noticed(Mutant::MarkerNotKept, goes);
}

#[test]
fn a_marker_that_has_voted_stays_under_every_replid() {
    let stays = || {
        for (knows, votes_at) in [("a", NOW + 60_000_000), (UNKNOWN_REPLID, NOW + 60_000_000)] {
            let mut state = State::new();
            admits(&mut state, NOW, "a");
            assert_eq!(admits(&mut state, votes_at, knows), None);
            assert_eq!(left_ms(&state, votes_at), None, "{knows}");
            assert!(state.get(Keys::server_marker(), votes_at).is_some());
            assert_eq!(admits(&mut state, votes_at, "b"), waits(60_000));
            assert_eq!(left_ms(&state, votes_at), None, "it has voted in an earlier one");
            assert_eq!(greet_one(&mut state, votes_at), Verdict::Mismatch { quorum: "n=3 max_ttl=60000".into() });
        }
        let mut state = State::new();
        admits(&mut state, NOW, "a");
        trust(&mut state, &CONFIG, &env(NOW, "a"));
        assert_eq!(left_ms(&state, NOW), None, "an operator says that it votes");
    };
    stays();
    assert_noticed(Mutant::VoteLetsMarkerGo, stays);
}

#[test]
fn a_restart_or_a_clock_set_back_starts_quarantine_again() {
    let mut state = State::new();
    assert_eq!(trust(&mut state, &CONFIG, &env(NOW, "a")).verdict, Verdict::Ok);
    assert_eq!(admits(&mut state, NOW, "a"), None, "a trusted server votes at once");
    assert_eq!(admits(&mut state, NOW, "b"), waits(60_000));
    assert_eq!(admits(&mut state, NOW - 1, "b"), waits(60_000));
    assert_eq!(admits(&mut state, NOW + 30_000_000, "b"), waits(30_000));
}

#[test]
fn a_client_that_does_not_know_the_replid_votes_with_those_that_do() {
    let mut state = State::new();
    trust(&mut state, &CONFIG, &env(NOW, "a"));
    assert_eq!(admits(&mut state, NOW, UNKNOWN_REPLID), None);
    assert_eq!(admits(&mut state, NOW, "a"), None, "and leaves their marker as it is");
    trust(&mut state, &CONFIG, &env(NOW, UNKNOWN_REPLID));
    assert_eq!(admits(&mut state, NOW, "a"), waits(60_000), "but vouches for no run");
    assert_eq!(admits(&mut state, NOW + 60_000_000, UNKNOWN_REPLID), None);
    assert_eq!(marker(&state), format!("n=3 max_ttl=60000 run=a since={NOW}"), "nor ends its wait");
}

#[test]
fn a_client_with_an_earlier_replid_gets_no_vote_and_writes_nothing() {
    let mut state = State::new();
    trust(&mut state, &CONFIG, &env(NOW, "b"));
    let late = Env { known_as: "a", ..env(NOW, "b") };
    let mut asks = |env: &Env<'_>| admit(&mut state, Keys::server_marker(), &CONFIG, env).map(|reply| reply.verdict);
    assert_eq!(asks(&late), Some(Verdict::NewReplid), "its marker would turn the server back to the replication id before");
    assert_eq!(asks(&env(NOW, "b")), None);
    let turned_back = Env { replid: "c", known_as: "b", ..late };
    assert_eq!(asks(&turned_back), Some(Verdict::NewReplid), "the marker came with the data of a replica");
    assert_eq!(asks(&Env { known_as: UNKNOWN_REPLID, ..turned_back }), None);
    assert_eq!(marker(&state), "n=3 max_ttl=60000 run=b since=0");
}

#[test]
fn a_replid_that_was_renamed_is_valid_under_either_name() {
    let mut state = State::new();
    trust(&mut state, &CONFIG, &env(NOW, "a"));
    let renamed = Env { known_as: "a", is_renamed: true, ..env(NOW, "b") };
    let admits_renamed = |state: &mut State| admit(state, Keys::server_marker(), &CONFIG, &renamed).map(|reply| reply.verdict);
    assert_eq!(admits_renamed(&mut state), None, "the marker has the name before");
    assert_eq!(admits(&mut state, NOW, "b"), waits(60_000), "a client that connects now doesn't know that one");
    assert_eq!(admits_renamed(&mut state), waits(60_000), "and the others wait with them, and don't begin again");
    assert_eq!(marker(&state), format!("n=3 max_ttl=60000 run=b since={NOW}"));
    state.put(Keys::server_marker(), Value::Text("n=3 max_ttl=60000 run=c since=0".into()), 0, None);
    assert_eq!(admits_renamed(&mut state), waits(60_000));
    assert_eq!(marker(&state), format!("n=3 max_ttl=60000 run=b since={NOW}"), "a new marker has the new name");
}

#[test]
fn another_quorum_is_named_and_left_alone() {
    let mut state = State::new();
    trust(&mut state, &QuorumConfig { servers: 5, max_ttl_ms: 60_000 }, &env(NOW, "a"));
    let before: Vec<_> = state.iter(NOW).map(|(key, entry)| (key.to_owned(), entry.clone())).collect();
    let replies = [
        admit(&mut state, Keys::server_marker(), &CONFIG, &env(NOW, "b")),
        Some(greet(&mut state, Some(&CONFIG), &env(NOW, "a"))),
        Some(greet(&mut state, None, &env(NOW, "a"))),
        Some(trust(&mut state, &CONFIG, &env(NOW, "a"))),
    ];
    for reply in replies.into_iter().flatten() {
        assert_eq!(reply.verdict, Verdict::Mismatch { quorum: "n=5 max_ttl=60000".into() });
    }
    let after: Vec<_> = state.iter(NOW).map(|(key, entry)| (key.to_owned(), entry.clone())).collect();
    assert_eq!(before, after);
}

#[test]
fn a_greet_operation_writes_nothing() {
    let mut state = State::new();
    assert_eq!(greet(&mut state, None, &env(NOW, "a")).verdict, Verdict::Ok);
    let reply = greet(&mut state, Some(&CONFIG), &env(NOW, "a"));
    assert_eq!(Some(reply.verdict), waits(60_000));
    assert_eq!(state.iter(NOW).count(), 0);
}

#[test]
fn what_is_no_marker_is_a_conflict() {
    let mut state = State::new();
    for text in
        ["", "n=3", "n=3 max_ttl=60000 run= since=0", "n=x max_ttl=60000 run=a since=0", "n=3 max_ttl=60000 run=a since=-1"]
    {
        state.put(Keys::server_marker(), Value::Text(text.into()), 0, None);
        let reply = trust(&mut state, &CONFIG, &env(NOW, "a"));
        assert_eq!(reply.verdict, Verdict::Conflict { found: "string at {~lt}:marker".into() }, "{text:?}");
    }
    state.put(Keys::server_marker(), Value::Text("n=3 max_ttl=60000 run=a since=007 later=1".into()), 0, None);
    assert_eq!(admits(&mut state, NOW, "a"), None, "fields of later versions are skipped");
    assert_eq!(marker(&state), "n=3 max_ttl=60000 run=a since=0 later=1", "and stay");
}
