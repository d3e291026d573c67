//! Inputs and effects: what a transport tells a connection, and what that has it do.

use std::fmt;
use std::io;

use crate::op::{Answer, Failure};
use crate::server::redis::ServerState;
use crate::server::redis::connection::listener::ChannelListener;
use crate::server::redis::connection::pipeline::Job;
use crate::server::{Completion, Listener, Notice};

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Operations, and messages if the server can send both.
    Operations,
    /// Messages alone, where it can't.
    Listening,
}

/// Something that happens to a connection.
pub enum Input {
    /// An operation is to be done.
    Submit(Job),
    /// Operations will follow soon.
    Warm,
    /// A channel is to be listened to. Only the first listener counts.
    Listen(ChannelListener),
    /// The socket that was to be opened is open.
    Opened(Role),
    /// It couldn't be opened.
    Unopened(Role, Failure),
    /// So many bytes were read into the room of its buffers.
    Read(Role, usize),
    /// The socket is closed: by the peer, or by an error.
    Closed(Role, Option<io::Error>),
    /// It is time, or was before.
    Wake,
    /// From here on only releases count.
    GiveUp,
    /// Nothing more will be submitted. Releases have a moment to leave.
    Close,
}

/// Something that a transport does for a connection.
pub enum Effect {
    /// Open a socket to the target, within the connect timeout.
    Open(Role),
    /// Let go of the socket, or of the attempt to open one.
    Drop(Role),
    /// End an operation.
    Complete(Completion, Answer),
    /// Tell a listener.
    Tell(Listener, Notice),
    /// Tell how the server is doing.
    Report(ServerState),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(role) => write!(f, "Open({role:?})"),
            Self::Drop(role) => write!(f, "Drop({role:?})"),
            Self::Complete(_, answer) => write!(f, "Complete({answer:?})"),
            Self::Tell(_, notice) => write!(f, "Tell({notice:?})"),
            Self::Report(state) => write!(f, "Report({state:?})"),
        }
    }
}
