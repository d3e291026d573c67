//! Inputs and effects: the events that a transport brings to a connection, and the work that the connection gives back.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use crate::op::{Answer, Failure, Op};
use crate::server::redis::ServerState;
use crate::server::redis::connection::listener::ChannelListener;
use crate::server::redis::connection::pipeline::Job;
use crate::server::{Completion, Listener, Notice};

/// The purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Operations, and messages if the server can send both on one socket.
    Operations,
    /// Messages alone, where the server can't send both on one socket.
    Listening,
    /// None any more: the socket was given up, and the server may still read what was written to it.
    Lingering,
}

/// An event for a connection.
pub enum Input {
    /// An operation to do.
    Submit(Job),
    /// Something is held: operations will follow. It comes again, every half a minute, while something is held.
    Warm,
    /// A channel to listen to. Only the first listener counts.
    Listen(ChannelListener),
    /// The socket that the connection asked for is open.
    Opened(Role),
    /// The socket couldn't be opened.
    Unopened(Role, Failure),
    /// So many bytes were read into the room of the socket's buffers.
    Read(Role, usize),
    /// The socket is closed: by the peer, or by an error.
    Closed(Role, Option<io::Error>),
    /// A release or a leave that was submitted to any connection to the server: what it takes back may be on its way here.
    TakeBack(Op),
    /// The time of `wake_at` has come, or is over.
    Wake,
    /// From here on only releases count.
    GiveUp,
    /// No more operations will be submitted. Releases have a moment to leave.
    Close,
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
            Self::Complete(_, answer) => write!(f, "Complete({answer:?})"),
            Self::Tell(_, notice) => write!(f, "Tell({notice:?})"),
            Self::Report(state) => write!(f, "Report({state:?})"),
        }
    }
}
