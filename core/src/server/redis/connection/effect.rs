//! Effects: the work that a connection gives to its transport.

use std::fmt;
use std::net::SocketAddr;

use crate::op::Answer;
use crate::server::redis::connection::server_state::ServerState;
use crate::server::{Completion, Listener, Notice};

/// The purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Operations, and messages if the server can send both on one socket.
    Operations,
    /// Messages alone, where the server can't send both on one socket.
    Listening,
    /// The same, on the socket that takes the place of that one once it listens.
    Successor,
    /// None any more: the socket was given up, and the server may still read what was written to it.
    Lingering,
}

/// Work that a transport does for a connection.
pub enum Effect {
    /// Open a socket to the target, within the connect timeout.
    Open(Role),
    /// Look whether the name of the server still leads to this peer.
    Look(SocketAddr),
    /// Close the socket, or give up the attempt to open one.
    Drop(Role),
    /// Keep the socket for operations open as the lingering one. One that lingers already is closed.
    Linger,
    /// Put the socket of the successor in the place of the listening one, which is closed.
    Succeed,
    /// End an operation.
    Complete(Completion, Answer),
    /// Give a listener a notice.
    Tell(Listener, Notice),
    /// Report the state of the server.
    Report(ServerState),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(role) => write!(f, "Open({role:?})"),
            Self::Look(peer) => write!(f, "Look({peer})"),
            Self::Drop(role) => write!(f, "Drop({role:?})"),
            Self::Linger => f.write_str("Linger"),
            Self::Succeed => f.write_str("Succeed"),
            Self::Complete(_, answer) => write!(f, "Complete({answer:?})"),
            Self::Tell(_, notice) => write!(f, "Tell({notice:?})"),
            Self::Report(state) => write!(f, "Report({state:?})"),
        }
    }
}
