//! Effects: the work that a connection gives to its transport.

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
#[derive(Debug)]
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
