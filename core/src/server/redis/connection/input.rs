//! Inputs: the events that a transport brings to a connection.

use std::io;

use crate::op::{Failure, Op};
use crate::server::redis::connection::effect::Role;
use crate::server::redis::connection::in_flight::InFlight;

/// An event for a connection.
pub enum Input {
    /// An operation to do.
    Submit(InFlight),
    /// Something is held: operations will follow. It comes again, every half a minute, while something is held.
    KeepWarm,
    /// The server may have another replication id: it is asked, whether or not a connection is open.
    Verify,
    /// The socket that the connection asked for is open.
    Opened(Role),
    /// The socket couldn't be opened.
    Unopened(Role, Failure),
    /// So many bytes were read into the room of the socket's buffers.
    Read(Role, usize),
    /// The socket is closed: by the peer, or by an error.
    Closed(Role, Option<io::Error>),
    /// A release or a leave that was submitted to any connection to the server: what it undoes may be on its way here.
    Undo(Op),
    /// There are new credentials: the server gets them on every socket.
    LogIn,
    /// The time of `wake_at` has come, or is over.
    Wake,
    /// From here on only releases count.
    Cancel,
    /// No more operations will be submitted. Releases have a moment to leave.
    Close,
}
