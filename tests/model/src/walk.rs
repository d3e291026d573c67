//! Random walks: for scenarios with too many states to visit them all.

use std::time::{Duration, Instant};

use crate::action::{self, Action};
use crate::canon;
use crate::promise::Violation;
use crate::scenario::Scenario;
use crate::search::first;
use crate::state::State;
use crate::trace::Trace;

/// What the walks found.
#[derive(Debug)]
pub struct Walked {
    /// How many walks there were.
    pub walks: usize,
    /// How many steps they took together.
    pub steps: usize,
    /// How many holds were granted.
    pub grants: usize,
    /// How long it took.
    pub took: Duration,
    /// A walk that broke a promise; no shorter than it happened to be.
    pub violation: Option<(Violation, Trace)>,
}

/// A walk that has come this far won't come to much.
const LONGEST: usize = 300;

/// Walks at random, `walks` times or until a promise is broken. The same seed walks the same ways.
#[must_use]
pub fn walk(scenario: &Scenario, seed: u64, walks: usize) -> Walked {
    let began = Instant::now();
    let mut random = Random(seed);
    let starts = first(scenario);
    let mut walked = Walked { walks: 0, steps: 0, grants: 0, took: Duration::ZERO, violation: None };
    let mut ways: Vec<(Action, State)> = Vec::new();
    while walked.walks < walks && walked.violation.is_none() {
        walked.walks += 1;
        let mut state = starts[random.below(starts.len())];
        canon::rank(&mut state);
        let mut trace = Trace::default();
        while state.can_grant() && trace.len() < LONGEST {
            canon::widen(&mut state);
            ways.clear();
            let mut broken = None;
            action::for_each(&state, scenario, |action, next, violation| {
                broken = broken.or(violation.map(|violation| (violation, action)));
                ways.push((action, *next));
            });
            if let Some((violation, action)) = broken {
                trace.end(action);
                walked.violation = Some((violation, trace));
                break;
            }
            let Some((action, next)) = pick(&ways, &mut random) else { break };
            state = next;
            canon::forget_the_dead(&mut state);
            let ranks = canon::rank(&mut state);
            trace.push(action, &state, ranks);
            walked.steps += 1;
            walked.grants += usize::from(matches!(action, Action::Grant { .. }));
        }
    }
    walked.took = began.elapsed();
    walked
}

/// What ends an attempt, or loses a server's data, is picked rarely, or nothing would ever be granted.
fn pick(ways: &[(Action, State)], random: &mut Random) -> Option<(Action, State)> {
    let is_rare = |action: &Action| matches!(action, Action::End { .. } | Action::HandOver { .. } | Action::Forget { .. });
    for _ in 0..20 {
        let way = ways.get(random.below(ways.len().max(1)))?;
        if !is_rare(&way.0) || random.below(20) == 0 {
            return Some(*way);
        }
    }
    ways.first().copied()
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * limit as u128) >> 64) as usize
    }
}
