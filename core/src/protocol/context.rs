//! Context: the parts of an acquisition that a step of the acquire loop works with.

use crate::event::{EventKind, LockEvent};
use crate::protocol::removal::Removal;
use crate::protocol::{Command, Recipe};

/// The parts of an acquisition that a step of the loop works with.
pub(super) struct Context<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) rng: &'a mut fastrand::Rng,
    pub(super) removals: &'a mut Vec<Removal>,
    pub(super) out: &'a mut Vec<Command>,
}

impl Context<'_> {
    pub(super) fn emit(&mut self, kind: EventKind, fill: impl FnOnce(&mut LockEvent)) {
        let mut event = LockEvent::of(kind, &self.recipe.keys);
        fill(&mut event);
        self.out.push(Command::emit(event));
    }
}
