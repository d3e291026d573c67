//! Scratch: the room for the commands of one input, which a thread uses again for the next one. Room for each input alone would be the
//! largest allocations of a lock's pair.

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
