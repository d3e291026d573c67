//! Packed states: a state in 128 bits.

use crate::scenario::Scenario;
use crate::server::{ATTEMPTS, Owner};
use crate::state::{Attempt, Call, Column, Phase, SERVERS, State};

/// How a scenario's states are packed.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    servers: usize,
    attempts: usize,
    owner: u32,
    deadlines: u32,
    waits: u32,
    extended: u32,
    column: u32,
}

const FENCE: u32 = 4;
const CALL: u32 = 4;

impl Packing {
    /// The packing for a scenario, or `None` if 128 bits are too few for it.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let attempts = scenario.attempts as u32;
        let owner = if attempts < 4 { 2 } else { 3 };
        let deadlines = if scenario.ahead > 1 { 2 } else { 1 };
        let waits = if scenario.forgets { deadlines } else { 0 };
        let extended = u32::from(scenario.ahead > 1);
        let column = owner + FENCE + deadlines + attempts * (waits + CALL + extended);
        let attempt = 3 + owner + 2 * FENCE + 1 + extended + 2 * deadlines;
        let bits = column * scenario.servers as u32 + attempt * attempts;
        // Every fence of a state is a server's, a vote, or a token in place of its votes.
        let fences = scenario.servers * (scenario.attempts + 1);
        (bits <= 128 && column < 64 && fences < 1 << FENCE).then_some(Self {
            servers: scenario.servers,
            attempts: scenario.attempts,
            owner,
            deadlines,
            waits,
            extended,
            column,
        })
    }

    /// Packs a state, its servers in canonical order.
    #[must_use]
    pub fn pack(&self, state: &State) -> u128 {
        let mut columns = [0; SERVERS];
        for (packed, column) in columns.iter_mut().zip(state.servers()) {
            *packed = self.pack_column(column);
        }
        columns[..self.servers].sort_unstable();
        let mut bits = Writer::default();
        for column in &columns[..self.servers] {
            bits.put(*column, self.column);
        }
        for attempt in state.attempts() {
            bits.put(attempt.phase as u64, 3);
            bits.put(owner_code(attempt.adopt), self.owner);
            bits.put(attempt.token.into(), FENCE);
            bits.put(attempt.floor.into(), FENCE);
            bits.put(attempt.granted.into(), 1);
            bits.put(attempt.heals.into(), self.extended);
            bits.put(attempt.sent.into(), self.deadlines);
            bits.put(attempt.confirmed.into(), self.deadlines);
        }
        bits.0
    }

    fn pack_column(&self, column: &Column) -> u64 {
        let mut bits = Writer::default();
        bits.put(owner_code(column.server.lock), self.owner);
        bits.put(column.server.fence.into(), FENCE);
        bits.put(column.server.life.into(), self.deadlines);
        for a in 0..self.attempts {
            bits.put(column.server.waits[a].into(), self.waits);
            bits.put(call_code(column.calls[a]), CALL);
            bits.put(column.extended[a].into(), self.extended);
        }
        bits.0 as u64
    }

    /// Unpacks a state.
    #[must_use]
    pub fn unpack(&self, packed: u128) -> State {
        let mut state = State::new(self.servers, self.attempts, &[]);
        let mut bits = Reader(packed);
        // The attempts were put last, so they come first, and backwards.
        for attempt in state.attempts[..self.attempts].iter_mut().rev() {
            attempt.confirmed = bits.take(self.deadlines);
            attempt.sent = bits.take(self.deadlines);
            attempt.heals = bits.take(self.extended) == 1;
            attempt.granted = bits.take(1) == 1;
            attempt.floor = bits.take(FENCE);
            attempt.token = bits.take(FENCE);
            attempt.adopt = owner_of(bits.take(self.owner));
            attempt.phase = PHASES[usize::from(bits.take(3))];
        }
        let attempts = state.attempts;
        for column in state.columns[..self.servers].iter_mut().rev() {
            self.unpack_column(&mut bits, column, &attempts);
        }
        state
    }

    fn unpack_column(&self, bits: &mut Reader, column: &mut Column, attempts: &[Attempt; ATTEMPTS]) {
        for a in (0..self.attempts).rev() {
            column.extended[a] = bits.take(self.extended) == 1;
            column.calls[a] = call_of(bits.take(CALL), attempts[a].phase);
            column.server.waits[a] = bits.take(self.waits);
        }
        column.server.life = bits.take(self.deadlines);
        column.server.fence = bits.take(FENCE);
        column.server.lock = owner_of(bits.take(self.owner));
    }
}

const PHASES: [Phase; 8] =
    [Phase::Idle, Phase::Asking, Phase::Confirming, Phase::Held, Phase::Ended, Phase::HandedOver, Phase::Idle, Phase::Idle];

fn owner_code(owner: Option<Owner>) -> u64 {
    owner.map_or(0, |owner| u64::from(owner) + 1)
}

fn owner_of(code: u8) -> Option<Owner> {
    code.checked_sub(1)
}

/// While an attempt asks, its calls are votes; later, kinds.
fn call_code(call: Call) -> u64 {
    match call {
        Call::Pending => 0,
        Call::Voted(vote) => vote.into(),
        Call::Answered => 1,
        Call::Attests => 2,
        Call::Above => 3,
        Call::Failed => 4,
    }
}

fn call_of(code: u8, phase: Phase) -> Call {
    match (code, phase) {
        (0, _) => Call::Pending,
        (vote, Phase::Asking) => Call::Voted(vote),
        (1, _) => Call::Answered,
        (2, _) => Call::Attests,
        (3, _) => Call::Above,
        _ => Call::Failed,
    }
}

#[derive(Default)]
struct Writer(u128);

impl Writer {
    fn put(&mut self, value: u64, width: u32) {
        debug_assert!(value < 1 << width, "{value} doesn't fit {width} bits");
        self.0 = (self.0 << width) | u128::from(value);
    }
}

struct Reader(u128);

impl Reader {
    fn take(&mut self, width: u32) -> u8 {
        let value = self.0 & ((1 << width) - 1);
        self.0 >>= width;
        value as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action;
    use crate::canon;

    #[test]
    fn a_state_comes_back_as_it_was() {
        let scenario = Scenario::timed(3, 2).extending(3).forgetting().handing_over();
        let packing = Packing::of(&scenario).unwrap();
        let mut frontier = vec![State::new(3, 2, &[])];
        for _ in 0..6 {
            let mut next = Vec::new();
            for mut state in std::mem::take(&mut frontier) {
                let packed = packing.pack(&state);
                assert_eq!(packing.pack(&packing.unpack(packed)), packed);
                state.columns[..3].sort_by_key(|column| packing.pack_column(column));
                assert_eq!(packing.unpack(packed), state);
                canon::widen(&mut state);
                action::for_each(&state, &scenario, |_, reached, _| {
                    let mut reached = *reached;
                    canon::forget_the_dead(&mut reached);
                    canon::rank(&mut reached);
                    next.push(reached);
                });
            }
            frontier = next.into_iter().step_by(3).collect();
        }
        assert!(frontier.len() > 100, "{}", frontier.len());
    }

    #[test]
    fn what_is_too_large_is_refused() {
        assert!(Packing::of(&Scenario::timed(3, 3).extending(2)).is_some());
        assert!(Packing::of(&Scenario::timed(5, 3)).is_none());
    }
}
