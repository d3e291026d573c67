//! The search: every state that can be reached, nearest first, until a promise is broken.

use std::time::{Duration, Instant};

use crate::action;
use crate::canon;
use crate::packed::Packing;
use crate::promise::Violation;
use crate::scenario::Scenario;
use crate::server::Fence;
use crate::state::{SERVERS, State};
use crate::trace::Trace;
use crate::visited::Visited;

/// What a search found.
#[derive(Debug)]
pub struct Outcome {
    /// How many states were reached.
    pub states: usize,
    /// How long it took.
    pub took: Duration,
    /// A shortest way to a broken promise; `None` if all keep them, or if the search stopped at its limit.
    pub violation: Option<(Violation, Trace)>,
    /// Whether every state was reached.
    pub complete: bool,
}

/// Searches a scenario, up to `limit` states, telling `progress` of every million.
///
/// # Errors
/// The scenario is too large to be searched; walk it.
pub fn search(scenario: &Scenario, limit: usize, mut progress: impl FnMut(usize, usize, Duration)) -> Result<Outcome, String> {
    let packing = Packing::of(scenario).ok_or_else(|| format!("{scenario} doesn't fit 128 bits a state"))?;
    let began = Instant::now();
    let mut visited = Visited::default();
    for mut state in first(scenario) {
        let index = visited.len();
        canon::rank(&mut state);
        visited.insert(packing.pack(&state), index);
    }
    let mut index = 0;
    while index < visited.len() && visited.len() < limit {
        if index > 0 && index.is_multiple_of(1_000_000) {
            progress(index, visited.len(), began.elapsed());
        }
        let mut state = packing.unpack(visited.state(index));
        canon::widen(&mut state);
        let mut found = None;
        action::for_each(&state, scenario, |action, next, violation| {
            if let Some(violation) = violation {
                found = found.or(Some((violation, action)));
                return;
            }
            let mut next = *next;
            canon::forget_the_dead(&mut next);
            if next.can_grant() {
                canon::rank(&mut next);
                visited.insert(packing.pack(&next), index);
            }
        });
        if let Some((violation, last)) = found {
            let trace = Trace::along(scenario, &packing, &visited.path(index), last);
            let states = visited.len();
            return Ok(Outcome { states, took: began.elapsed(), violation: Some((violation, trace)), complete: false });
        }
        index += 1;
    }
    let complete = index == visited.len();
    Ok(Outcome { states: visited.len(), took: began.elapsed(), violation: None, complete })
}

/// The states to begin with: all fences 0, or every way in which they can differ.
pub fn first(scenario: &Scenario) -> Vec<State> {
    let (servers, attempts) = (scenario.servers, scenario.attempts);
    if !scenario.skewed {
        return vec![State::new(servers, attempts, &[])];
    }
    // Servers are alike, so rising fences are enough; each is the one before or the next number.
    let ways = 0..1_u32 << (servers - 1);
    let fences = ways.map(|way| {
        let mut fences: [Fence; SERVERS] = [0; SERVERS];
        for server in 1..servers {
            fences[server] = fences[server - 1] + u8::from(way & (1 << (server - 1)) != 0);
        }
        State::new(servers, attempts, &fences[..servers])
    });
    fences.collect()
}
