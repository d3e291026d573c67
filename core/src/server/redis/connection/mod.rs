//! A connection, decided without I/O: when to connect, what may be sent, what an answer means, and what becomes of all that when
//! the socket breaks.
//!
//! [`Connection`](connection::Connection) takes the inputs and gives the effects of `effect`; a transport carries those out and
//! calls nothing else here but its `buffers`. Inside: a `handshake` comes first on every socket, a `conversation` after it, with what
//! was sent in a `pipeline`. The `backlog` waits for a connection, the `backoff` says when to try again, `health` whether the server
//! answers. `subscriber` decides how one listens, and `listening` is the second connection that some servers need for that.

pub(crate) mod backlog;
pub(crate) mod backoff;
pub(crate) mod buffers;
mod closing;
#[allow(clippy::module_inception, reason = "the room is called after what it is for")]
pub(crate) mod connection;
pub(crate) mod conversation;
pub(crate) mod effect;
pub(crate) mod failure;
pub(crate) mod handshake;
pub(crate) mod health;
pub(crate) mod idle_check;
mod listen;
pub(crate) mod listener;
pub(crate) mod listening;
pub(crate) mod pipeline;
pub(crate) mod subscriber;
pub(crate) mod subscription;
