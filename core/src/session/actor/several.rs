//! Several: the holds of locks that were acquired together.

use std::sync::Arc;

use super::{Acquirer, LockActor};
use crate::event::{EventKind, LockEvent};
use crate::io::reactor::Io;
use crate::protocol::{GrantOfSeveral, Input};

impl LockActor {
    /// Begins the hold of each of several locks that this acquisition has got. `acquirer` makes the receiver of each.
    pub(crate) fn begin_holds(self: &Arc<Self>, grant: &GrantOfSeveral, mut acquirer: impl FnMut() -> Acquirer) {
        let begin = || {
            for (at, (keys, fence)) in self.recipe.keys.parts().iter().zip(&*grant.fences).enumerate() {
                let id = self.session.next_id();
                let recipe = Arc::new(self.recipe.of_part(Arc::clone(keys)));
                let again = || self.measured.again(self.session.meters.of(keys.label()));
                let measured = if at == 0 { self.measured.hand_on() } else { again() };
                let followed = (measured, self.trace, self.spans.of_part());
                let hold = Self::made(Arc::clone(&self.session), recipe, (id, self.context), followed, (acquirer(), None));
                let hold = Arc::new(hold);
                self.session.registry.insert(id, &hold);
                self.state.lock().parts.push(Arc::downgrade(&hold));
                hold.send(Input::Granted(grant.clone(), *fence), &Io::Background);
                if self.session.is_closing() {
                    hold.send(Input::Close, &Io::Background);
                }
            }
        };
        // The span of the acquire has the events of all grants, and ends with them.
        self.spans.around(&LockEvent::of(EventKind::Acquired, &self.recipe.keys), begin);
    }
}
