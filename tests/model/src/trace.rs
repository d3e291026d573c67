//! A trace: a counterexample as readable steps, with one numbering of the servers and of the fences throughout.

use std::fmt;

use crate::action::{self, Action};
use crate::canon;
use crate::packed::Packing;
use crate::scenario::Scenario;
use crate::search::first;
use crate::server::Fence;
use crate::state::{Call, State};

/// A run of the protocol.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    steps: Vec<Step>,
    end: Option<Action>,
}

/// What happened, and what it led to. Fences stand for places among `Trace::numbers`.
#[derive(Debug, Clone)]
struct Step {
    action: Action,
    after: State,
    numbers: Vec<f64>,
}

impl Trace {
    /// Follows the packed states of a path, whose servers were sorted at every step, without sorting them.
    #[must_use]
    pub fn along(scenario: &Scenario, packing: &Packing, path: &[u128], last: Action) -> Self {
        let ranked = |mut state: State| {
            let ranks = canon::rank(&mut state);
            (state, ranks)
        };
        let starts = first(scenario).into_iter().map(|state| ranked(state).0);
        let Some(mut state) = starts.into_iter().find(|state| packing.pack(state) == path[0]) else { return Self::default() };
        let mut trace = Self::default();
        let mut numbers: Vec<f64> = (0..32).map(f64::from).collect();
        for packed in &path[1..] {
            canon::widen(&mut state);
            let mut found = None;
            action::for_each(&state, scenario, |action, next, violation| {
                let mut next = *next;
                canon::forget_the_dead(&mut next);
                let (ranked, ranks) = ranked(next);
                if found.is_none() && violation.is_none() && packing.pack(&ranked) == *packed {
                    found = Some((action, ranked, ranks));
                }
            });
            let Some((action, next, ranks)) = found else { return trace };
            numbers = std::iter::once(0.0).chain(ranks.fences().map(|fence| number(&numbers, fence))).collect();
            trace.steps.push(Step { action, after: next, numbers: numbers.clone() });
            state = next;
        }
        // The last action was taken in a state with sorted servers, but it is a grant: it names none.
        trace.end = Some(last);
        trace
    }

    /// How many things happened.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len() + usize::from(self.end.is_some())
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a step of a walk, whose fences were widened before and ranked after it.
    pub(crate) fn push(&mut self, action: Action, after: &State, ranks: canon::Ranks) {
        let before = self.steps.last().map_or_else(|| (0..32).map(f64::from).collect(), |step| step.numbers.clone());
        let numbers = std::iter::once(0.0).chain(ranks.fences().map(|fence| number(&before, fence))).collect();
        self.steps.push(Step { action, after: *after, numbers });
    }

    /// Adds the grant that breaks a promise.
    pub(crate) fn end(&mut self, action: Action) {
        self.end = Some(action);
    }
}

/// The number of a widened fence: that of its rank, or one between two.
fn number(numbers: &[f64], fence: Fence) -> f64 {
    let below = numbers.get(usize::from(fence / 2)).copied().unwrap_or(0.0);
    match (fence % 2, numbers.get(usize::from(fence / 2) + 1)) {
        (0, _) => below,
        (_, Some(above)) => f64::midpoint(below, *above),
        (_, None) => below + 1.0,
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<f64> = self.steps.iter().flat_map(|step| step.numbers.iter().copied()).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let mut adopted = [None; crate::server::ATTEMPTS];
        for (n, step) in self.steps.iter().enumerate() {
            let fence = |fence: Fence| {
                let number = step.numbers.get(usize::from(fence)).copied().unwrap_or_default();
                all.iter().position(|other| other.total_cmp(&number).is_eq()).unwrap_or_default()
            };
            if let Action::Start { a, adopt } = step.action {
                adopted[a] = adopt;
            }
            write!(f, "{:3}. {:<52}", n + 1, happened(step, &fence))?;
            for column in step.after.servers() {
                let server = &column.server;
                let lock = server.lock.map_or("–".to_owned(), |owner| letter(usize::from(owner)));
                let quarantine = if server.waits.iter().any(|waits| *waits > 0) { "q" } else { "" };
                write!(f, " | {lock} {}{quarantine}", fence(server.fence))?;
            }
            writeln!(f)?;
        }
        match (self.end, self.steps.last()) {
            (Some(Action::Grant { a }), Some(step)) => {
                let number = step.numbers.get(usize::from(step.after.attempts[a].token)).copied().unwrap_or_default();
                let token = all.iter().position(|other| other.total_cmp(&number).is_eq()).unwrap_or_default();
                writeln!(f, "{:3}. {} is granted with fence {token}", self.steps.len() + 1, letter(a))
            }
            _ => Ok(()),
        }
    }
}

fn letter(attempt: usize) -> String {
    char::from(b'A' + attempt as u8).to_string()
}

fn happened(step: &Step, fence: &dyn Fn(Fence) -> usize) -> String {
    let who = letter;
    let token = |a: usize| fence(step.after.attempts[a].token);
    let server = |s: usize| &step.after.columns[s].server;
    match step.action {
        Action::Start { a, adopt: None } => format!("{} asks all servers", who(a)),
        Action::Start { a, adopt: Some(other) } => format!("{} asks all servers, adopting {}", who(a), who(other.into())),
        Action::Acquire { a, s, .. } => {
            let vote = fence(server(s).fence);
            let above = step.after.columns[s].calls[a] == Call::Above;
            format!("server {} votes {vote} for {}{}", s + 1, who(a), if above { ", above its token" } else { "" })
        }
        Action::Again { a, s, .. } => format!("server {} votes {} for {}, unheard", s + 1, fence(server(s).fence), who(a)),
        Action::Refuse { a, s } => format!("server {} did not apply the acquire of {}, and {} knows", s + 1, who(a), who(a)),
        Action::Fail { a, s } => format!("{} waits for server {}'s answer to the acquire no longer", who(a), s + 1),
        Action::Choose { a, .. } => format!("{} has a majority of votes: its token is {}", who(a), token(a)),
        Action::Confirm { a, s } => format!("server {} gets the confirm({}) of {}", s + 1, fence(server(s).fence), who(a)),
        Action::Grant { a } => format!("{} is granted with fence {}", who(a), token(a)),
        Action::Renew { a } => format!("{} sends an extension", who(a)),
        Action::Extend { a, s } => format!("server {} extends the key of {}", s + 1, who(a)),
        Action::Extended { a } => format!("a majority extended: {} is valid for longer", who(a)),
        Action::Heal { a, s } => format!("server {} heals the key of {}", s + 1, who(a)),
        Action::Release { a, s } => format!("a release of {} reaches server {}", who(a), s + 1),
        Action::End { a } => format!("{} gives up, releases or is lost", who(a)),
        Action::HandOver { a } => format!("{} is handed over", who(a)),
        Action::Pass { a } => format!("the earlier deadline of {} passes; it is still valid", who(a)),
        Action::Expire { s } => format!("the key on server {} expires", s + 1),
        Action::Forget { s } => format!("server {} loses its data", s + 1),
    }
}
