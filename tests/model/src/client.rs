//! The client: the rules of `core/src/protocol` (`ballot.rs`, `hold.rs`, `extension.rs`), in the same words.
//!
//! An answer has no event of its own: what a server answered is known to the client from then on, whenever it cares to
//! look. An answer that is late or lost is one the client doesn't look at, so it may choose among *any* q votes.

use crate::rules::Rule;
use crate::server::Fence;
use crate::state::{Call, Phase, State};

/// How many servers decide.
#[must_use]
pub const fn needed(servers: usize, broken: Option<Rule>) -> usize {
    match broken {
        Some(Rule::SmallQuorum) => servers / 2,
        _ => servers / 2 + 1,
    }
}

/// The tokens that can be chosen: the largest of some q votes.
pub fn choices(state: &State, attempt: usize, broken: Option<Rule>) -> impl Iterator<Item = Fence> {
    let needed = needed(state.servers, broken);
    let votes = state.columns.map(|column| if let Call::Voted(vote) = column.calls[attempt] { vote } else { 0 });
    let is_largest_of_q = move |token: &Fence| votes.iter().filter(|vote| (1..=*token).contains(*vote)).count() >= needed;
    let is_first = move |server: usize| !votes[..server].contains(&votes[server]);
    (0..votes.len())
        .filter(move |server| votes[*server] > 0 && is_first(*server))
        .map(move |server| votes[server])
        .filter(is_largest_of_q)
}

/// The token is chosen.
pub fn choose(state: &mut State, attempt: usize, token: Fence) {
    state.attempts[attempt].phase = Phase::Confirming;
    state.attempts[attempt].token = token;
    for column in &mut state.columns {
        if let Call::Voted(vote) = column.calls[attempt] {
            column.calls[attempt] = late(token, vote);
        }
    }
}

/// What becomes of a vote once the token is chosen.
fn late(token: Fence, vote: Fence) -> Call {
    match vote.cmp(&token) {
        std::cmp::Ordering::Less => Call::Answered,
        std::cmp::Ordering::Equal => Call::Attests,
        std::cmp::Ordering::Greater => Call::Above,
    }
}

/// A server cast `vote` for the attempt.
pub fn cast(state: &mut State, attempt: usize, server: usize, vote: Fence) {
    let token = state.attempts[attempt].token;
    let call = &mut state.columns[server].calls[attempt];
    *call = match (state.attempts[attempt].phase, *call) {
        (Phase::Asking, _) => Call::Voted(vote),
        (Phase::Confirming, _) => late(token, vote),
        (Phase::Held, Call::Pending) if vote > token => Call::Above,
        _ => Call::Answered,
    };
}

/// A server confirmed the token.
pub fn confirmed(state: &mut State, attempt: usize, server: usize, broken: Option<Rule>) {
    let call = &mut state.columns[server].calls[attempt];
    if state.attempts[attempt].phase == Phase::Confirming && (*call != Call::Pending || broken == Some(Rule::ConfirmAnywhere)) {
        *call = Call::Attests;
    }
}

/// Whether a majority attests the token: voted exactly it, or confirmed it.
#[must_use]
pub fn is_granted(state: &State, attempt: usize, broken: Option<Rule>) -> bool {
    let attests = |call: Call| call == Call::Attests || (call == Call::Above && broken == Some(Rule::CountAbove));
    state.attempts[attempt].phase == Phase::Confirming
        && (broken == Some(Rule::NoWriteBack)
            || state.servers().filter(|column| attests(column.calls[attempt])).count() >= needed(state.servers, broken))
}

/// The lock is granted. From here on a vote only matters if it must be released.
pub fn grant(state: &mut State, attempt: usize) {
    let hold = &mut state.attempts[attempt];
    (hold.phase, hold.granted, hold.floor) = (Phase::Held, true, 0);
    (hold.sent, hold.confirmed) = (1, 1);
    for column in &mut state.columns {
        if column.calls[attempt] == Call::Attests {
            column.calls[attempt] = Call::Answered;
        }
    }
}

/// An extension is sent, in place of the one under way if there is one.
pub fn renew(state: &mut State, attempt: usize, broken: Option<Rule>) {
    state.attempts[attempt].sent += 1;
    state.attempts[attempt].heals |= broken == Some(Rule::EarlyHeal);
    if broken != Some(Rule::CountEarlierRound) {
        state.columns.iter_mut().for_each(|column| column.extended[attempt] = false);
    }
}

/// Whether a majority confirmed the extension under way.
#[must_use]
pub fn is_extended(state: &State, attempt: usize, broken: Option<Rule>) -> bool {
    let hold = &state.attempts[attempt];
    hold.sent > hold.confirmed
        && state.servers().filter(|column| column.extended[attempt]).count() >= needed(state.servers, broken)
}

/// The extension is confirmed: validity is that of its round.
pub fn extended(state: &mut State, attempt: usize, broken: Option<Rule>) {
    let hold = &mut state.attempts[attempt];
    (hold.confirmed, hold.heals) = (hold.sent, true);
    if broken != Some(Rule::CountEarlierRound) {
        state.columns.iter_mut().for_each(|column| column.extended[attempt] = false);
    }
}

/// Whether a key that is missing on the server may be written again: only where nothing of the round can come after it,
/// neither our acquire (it would vote above the token, and set a new expiry) nor the release of a vote above the token.
#[must_use]
pub fn may_heal(state: &State, attempt: usize, server: usize, broken: Option<Rule>) -> bool {
    state.attempts[attempt].heals
        && match state.columns[server].calls[attempt] {
            Call::Pending | Call::Above => broken == Some(Rule::HealUnanswered),
            Call::Failed => broken == Some(Rule::HealFailed),
            _ => true,
        }
}

/// Whether a release of the attempt may be on its way to the server.
#[must_use]
pub fn may_release(state: &State, attempt: usize, server: usize) -> bool {
    let attempt_is = state.attempts[attempt].phase;
    let above = state.columns[server].calls[attempt] == Call::Above;
    attempt_is == Phase::Ended || (matches!(attempt_is, Phase::Confirming | Phase::Held) && above)
}
