//! Effects: the work that a connection gives to its transport.

use std::fmt;
use std::net::SocketAddr;

use crate::op::Answer;
use crate::server::Completion;
use crate::server::redis::connection::server_state::ServerState;

/// The purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Operations.
    Operations,
    /// None any more: the socket was left, and the server may still read what was written to it.
    Lingering,
}

/// Work that a transport does for a connection.
pub enum Effect {
    /// Open a socket to the target, within the connect timeout.
    Open(Role),
    /// Look whether the name of the server still leads to this peer.
    Look(SocketAddr),
    /// Close the socket, or cancel the attempt to open one.
    Drop(Role),
    /// Keep the socket for operations open as the lingering one. One that lingers already is closed.
    Linger,
    /// End an operation.
    Complete(Completion, Answer),
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
            Self::Complete(_, answer) => write!(f, "Complete({answer:?})"),
            Self::Report(state) => write!(f, "Report({state:?})"),
        }
    }
}
