//! Transports: they open the sockets that a connection asks for, and move its bytes.
//!
//! `tokio_task` runs a connection as a task of a runtime; with `reactor_task` the calling threads do the I/O. Both exist for
//! measured reasons: a hop to another thread costs a blocked caller more than its operation, and renewals must not depend on
//! callers. `dial` opens a `socket` to the target of a `url`: a `stream`, with `tls` where the URL asks for it. The `sentinels` are
//! asked first, where they name the target. A `look` finds out whether the target is elsewhere by now, and `hints` of a sentinel
//! cause one. `provided` has the credentials of a provider, and calls it. A `mio_socket` is a socket without a runtime.

use crate::io::reactor::Io;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::primary::Primary;

pub(crate) mod connect;
pub(crate) mod dial;
pub(crate) mod hints;
pub(crate) mod look;
pub(crate) mod mio_socket;
pub(crate) mod provided;
pub(crate) mod reactor_task;
pub(crate) mod sentinels;
pub(crate) mod socket;
pub(crate) mod stream;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
pub(crate) mod tls;
pub(crate) mod tokio_task;

/// Whether so many unwritten operations are less than one of so many parts of all that is under way. A write is a call of the operating
/// system, and wakes the server: it is to be one for many operations. And both client and server are to have something to do at any time.
/// What is too little is written when the task or the loop has nothing else to do.
const fn is_little(unwritten: usize, under_way: usize, parts: usize) -> bool {
    unwritten > 0 && unwritten.saturating_mul(parts) < under_way
}

/// Carries out the effects of a connection. `transport` gets those that differ between the transports: on sockets, and a look.
fn carry_out(effects: &mut Vec<Effect>, primary: &Primary, io: &Io, mut transport: impl FnMut(Effect)) {
    for effect in effects.drain(..) {
        match effect {
            Effect::Complete(completion, answer) => completion.complete_by(io, answer),
            Effect::Report(state) => primary.health.report(state),
            effect => transport(effect),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_little;

    #[test]
    fn a_write_waits_for_a_part_of_what_is_under_way() {
        assert!([(1, 1), (1, 8), (2, 16), (8, 64), (32, 256)].iter().all(|(some, all)| !is_little(*some, *all, 8)));
        assert!([(1, 9), (1, 16), (7, 64), (31, 256)].iter().all(|(some, all)| is_little(*some, *all, 8)));
        assert!(!is_little(0, 64, 8), "there is nothing to write");
        assert!(!is_little(usize::MAX, 64, 8), "what has waited is written");
    }
}
