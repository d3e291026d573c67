//! Actions: every possible next step.

use crate::client;
use crate::promise::{Violation, judge};
use crate::rules::Rule;
use crate::scenario::Scenario;
use crate::server::{ATTEMPTS, Fence, Reply};
use crate::state::{Call, Phase, State};

/// One thing that happens. `a` is the attempt, `s` the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    /// The attempt is asked for; the acquires are out, perhaps adopting another attempt's hold.
    Start { a: usize, adopt: Option<u8> },
    /// The acquire arrives, with this proposal.
    Acquire { a: usize, s: usize, proposal: Fence },
    /// The acquire arrives once more, and the client hears only of the first time.
    Again { a: usize, s: usize, proposal: Fence },
    /// The acquire is known never to have been applied: refused, or never sent.
    Refuse { a: usize, s: usize },
    /// The client waits for the acquire's answer no longer.
    Fail { a: usize, s: usize },
    /// The client has q votes and chooses the token.
    Choose { a: usize, token: Fence },
    /// A confirm arrives.
    Confirm { a: usize, s: usize },
    /// The client is granted the lock.
    Grant { a: usize },
    /// The holder sends an extension.
    Renew { a: usize },
    /// It arrives.
    Extend { a: usize, s: usize },
    /// The holder believes in it.
    Extended { a: usize },
    /// A heal arrives.
    Heal { a: usize, s: usize },
    /// A release arrives.
    Release { a: usize, s: usize },
    /// The attempt gives up, or the hold is released or lost.
    End { a: usize },
    /// The hold is handed over.
    HandOver { a: usize },
    /// A deadline of the hold passes; it is still valid by a later one.
    Pass { a: usize },
    /// The key on the server expires.
    Expire { s: usize },
    /// The server loses its data.
    Forget { s: usize },
}

/// Calls `each` with everything that can happen in `state`, with what it leads to and the promise it breaks. The fences of
/// `state` must be even, so that there is a number between any two: a proposal may be any number at all.
pub fn for_each(state: &State, scenario: &Scenario, mut each: impl FnMut(Action, &State, Option<Violation>)) {
    let mut try_one = |action: Action| {
        let mut next = *state;
        let violation = apply(&mut next, scenario, action);
        if violation.is_some() || next != *state {
            each(action, &next, violation);
        }
    };
    let largest = largest(state);
    for a in 0..state.count {
        let attempt = &state.attempts[a];
        let chosen = attempt.token > 0;
        match attempt.phase {
            // Attempts that haven't begun are alike: the first of them is the next.
            Phase::Idle => {
                try_one(Action::Start { a, adopt: None });
                for (other, ended) in state.attempts().enumerate() {
                    if ended.phase == Phase::HandedOver {
                        try_one(Action::Start { a, adopt: u8::try_from(other).ok() });
                    }
                }
                break;
            }
            Phase::Asking => client::choices(state, a, scenario.broken).for_each(|token| try_one(Action::Choose { a, token })),
            Phase::Confirming if client::is_granted(state, a, scenario.broken) => try_one(Action::Grant { a }),
            Phase::Held if scenario.ahead > 1 => {
                if attempt.sent < scenario.ahead {
                    try_one(Action::Renew { a });
                }
                if client::is_extended(state, a, scenario.broken) {
                    try_one(Action::Extended { a });
                }
                if scenario.timed && attempt.confirmed > 1 {
                    try_one(Action::Pass { a });
                }
            }
            _ => (),
        }
        if attempt.phase.is_live() {
            try_one(Action::End { a });
        }
        if attempt.phase == Phase::Held && scenario.hands_over {
            try_one(Action::HandOver { a });
        }
        for s in 0..state.servers {
            let call = state.columns[s].calls[a];
            let again = scenario.resends && attempt.phase.is_live();
            if matches!(call, Call::Pending | Call::Failed) || again {
                for proposal in state.columns[s].server.fence + 1..=largest + 1 {
                    try_one(Action::Acquire { a, s, proposal });
                    if again && call != Call::Pending {
                        try_one(Action::Again { a, s, proposal });
                    }
                }
            }
            if chosen {
                try_one(Action::Confirm { a, s });
            }
            if attempt.phase == Phase::Held && scenario.ahead > 1 {
                if call == Call::Pending {
                    try_one(Action::Refuse { a, s });
                    if scenario.broken == Some(Rule::HealFailed) {
                        try_one(Action::Fail { a, s });
                    }
                }
                if attempt.sent > attempt.confirmed {
                    try_one(Action::Extend { a, s });
                }
            }
            if client::may_heal(state, a, s, scenario.broken) {
                try_one(Action::Heal { a, s });
            }
            if client::may_release(state, a, s) {
                try_one(Action::Release { a, s });
            }
        }
    }
    for s in 0..state.servers {
        if may_expire(state, scenario, s) {
            try_one(Action::Expire { s });
        }
        if scenario.forgets {
            try_one(Action::Forget { s });
        }
    }
}

/// The key of an attempt that is over protects nobody, so it may go at any time: that is more than can happen, and simpler.
fn may_expire(state: &State, scenario: &Scenario, s: usize) -> bool {
    let server = &state.columns[s].server;
    server.lock.is_some_and(|owner| {
        let phase = state.attempts[usize::from(owner)].phase;
        !scenario.timed || phase.is_over() || (phase == Phase::Held && server.life == 0)
    })
}

/// The largest fence of the state.
#[must_use]
pub fn largest(state: &State) -> Fence {
    let (mut largest, mut state) = (0, *state);
    state.for_each_fence(|fence| largest = largest.max(*fence));
    largest
}

/// Lets it happen. Gives the promise that is broken by it.
pub fn apply(state: &mut State, scenario: &Scenario, action: Action) -> Option<Violation> {
    let broken = scenario.broken;
    match action {
        Action::Start { a, adopt } => {
            let granted = state.attempts().filter(|other| other.granted).map(|other| other.token);
            let floor = granted.max().unwrap_or(0);
            let attempt = &mut state.attempts[a];
            (attempt.phase, attempt.adopt, attempt.floor) = (Phase::Asking, adopt, floor);
        }
        Action::Acquire { a, s, proposal } | Action::Again { a, s, proposal } => {
            let attempt = &state.attempts[a];
            // Where a hold was extended the acquire's own deadline may be over: then its key need not live at all.
            let ahead = attempt.phase.may_be_granted() || (attempt.phase == Phase::Held && scenario.ahead == 1);
            let life = u8::from(scenario.timed && ahead);
            let reply = state.columns[s].server.acquire(name(a), attempt.adopt, life, proposal, broken);
            if let (Reply::Vote(vote), Action::Acquire { .. }) = (reply, action) {
                client::cast(state, a, s, vote);
            }
        }
        Action::Refuse { a, s } => state.columns[s].calls[a] = Call::Answered,
        Action::Fail { a, s } => state.columns[s].calls[a] = Call::Failed,
        Action::Choose { a, token } => client::choose(state, a, token),
        Action::Confirm { a, s } => {
            if state.columns[s].server.confirm(name(a), state.attempts[a].token, broken) == Reply::Ok {
                client::confirmed(state, a, s, broken);
            }
        }
        Action::Grant { a } => {
            let violation = judge(state, scenario, a);
            client::grant(state, a);
            return violation;
        }
        Action::Renew { a } => client::renew(state, a, broken),
        Action::Extend { a, s } => {
            let hold = &state.attempts[a];
            let life = if scenario.timed { hold.sent } else { 0 };
            let single_server = state.servers == 1;
            if state.columns[s].server.extend(name(a), life, hold.token, single_server) == Reply::Ok {
                state.columns[s].extended[a] = true;
            }
        }
        Action::Extended { a } => client::extended(state, a, broken),
        Action::Heal { a, s } => {
            // What it writes counts for nothing until an extension confirms it, so it need not live at all.
            state.columns[s].server.heal(name(a), 0, state.attempts[a].token, broken);
        }
        Action::Release { a, s } => {
            state.columns[s].server.release(name(a), broken);
        }
        Action::End { a } => end(state, a, Phase::Ended),
        Action::HandOver { a } => end(state, a, Phase::HandedOver),
        Action::Pass { a } => pass(state, a),
        Action::Expire { s } => state.columns[s].server.clear(),
        Action::Forget { s } => {
            let mut waits = [0; ATTEMPTS];
            for (waits, attempt) in waits.iter_mut().zip(&state.attempts) {
                *waits = match attempt.phase {
                    Phase::Asking | Phase::Confirming => 1,
                    Phase::Held => attempt.sent,
                    _ => 0,
                };
            }
            state.columns[s].server.forget(waits);
        }
    }
    None
}

/// The owner value of an attempt.
fn name(a: usize) -> u8 {
    a as u8
}

fn end(state: &mut State, a: usize, phase: Phase) {
    state.attempts[a].phase = phase;
    (state.attempts[a].sent, state.attempts[a].confirmed) = (1, 1);
    pass(state, a);
    for column in &mut state.columns {
        column.server.waits[a] = 0;
        if column.server.lock == Some(name(a)) {
            column.server.life = 0;
        }
    }
}

fn pass(state: &mut State, a: usize) {
    state.attempts[a].sent -= 1;
    state.attempts[a].confirmed -= 1;
    for column in &mut state.columns {
        let server = &mut column.server;
        server.waits[a] = server.waits[a].saturating_sub(1);
        if server.lock == Some(name(a)) {
            server.life = server.life.saturating_sub(1);
        }
    }
}
