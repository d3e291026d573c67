//! What a step of the acquire loop works with.

use crate::event::{Event, EventKind};
use crate::protocol::farewell::Farewell;
use crate::protocol::{Command, Recipe};

/// What a step of the loop works with.
pub(super) struct Scene<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) rng: &'a mut fastrand::Rng,
    pub(super) farewells: &'a mut Vec<Farewell>,
    pub(super) out: &'a mut Vec<Command>,
}

impl Scene<'_> {
    pub(super) fn emit(&mut self, kind: EventKind, fill: impl FnOnce(&mut Event)) {
        let mut event = Event::of(kind, &self.recipe.keys);
        fill(&mut event);
        self.out.push(Command::Emit(event));
    }
}
