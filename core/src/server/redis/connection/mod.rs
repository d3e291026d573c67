//! Connection: when to connect, what may be sent, what an answer means, and how operations end when the socket breaks. Decided
//! without I/O.
//!
//! [`Connection`](connection::Connection) takes the inputs and gives the effects of `effect`. A transport carries the effects out,
//! and calls nothing else here but its `buffers`. A `handshake` comes first on every socket, and gives the server's `greeting`; a
//! `conversation` comes after it. A `pipeline` has the commands that were sent. Operations in the `backlog` wait for a connection. The `backoff`
//! says when to try again, and a socket that was given up goes on `lingering`. All connections to a server share what is known of its `primary`: the `eras`, its `health` and its `server_clock`. The
//! `subscriber` decides how to listen; `listening` is the second connection that
//! some servers need for that.

pub(crate) mod backlog;
pub(crate) mod backoff;
pub(crate) mod buffers;
mod closing;
#[allow(clippy::module_inception, reason = "the room is called after what it is for")]
pub(crate) mod connection;
pub(crate) mod conversation;
pub(crate) mod effect;
pub(crate) mod eras;
pub(crate) mod failure;
mod following;
pub(crate) mod handshake;
pub(crate) mod health;
pub(crate) mod idle_check;
mod leaving;
mod lingering;
mod listen;
pub(crate) mod listener;
pub(crate) mod listening;
pub(crate) mod pipeline;
pub(crate) mod primary;
pub(crate) mod server_clock;
pub(crate) mod subscriber;
pub(crate) mod subscription;
