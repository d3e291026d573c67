//! Scratch: the room for the commands of one input. A thread uses it again, for the next one: a new one for each input costs an
//! acquire and release more than the rest of the state machine.

use std::cell::Cell;

use crate::protocol::Command;

/// More room than an input needs is not kept.
const KEPT: usize = 16;

thread_local!(static ROOM: Cell<Vec<Command>> = const { Cell::new(Vec::new()) });

/// The thread's room, empty. It is without any while another input of this thread has it, and while the thread ends.
pub(super) fn take() -> Vec<Command> {
    ROOM.try_with(Cell::take).unwrap_or_default()
}

/// Keeps the room for the next input.
pub(super) fn give_back(mut room: Vec<Command>) {
    room.clear();
    if room.capacity() <= KEPT {
        let _ = ROOM.try_with(|kept| kept.set(room));
    }
}
