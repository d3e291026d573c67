//! Connection: when to connect, what may be sent, what an answer means, and how operations end when the socket breaks. Decided
//! without I/O.
//!
//! [`Connection`](connection::Connection) takes the events of `input` and gives the work of `effect`. A transport carries that out,
//! and calls nothing else here but its `buffers`. A `handshake` comes first on every socket, and gives the server's
//! `handshake_facts`; a `conversation` comes after it. A `pipeline` has the commands that were sent: a caller's operation
//! `in_flight`, or a `question` of the connection itself. Operations in the `backlog` wait for a connection, and the `backoff` says
//! when to try again. `leaving` is how a socket is left, and such a socket may continue `lingering`. With `login` the credentials
//! change. All connections to a server share what is known of its `primary`: the `replids`, its `health` and its `server_clock`.
//! Connections that only listen are in the room beside this one.

pub(crate) mod backlog;
pub(crate) mod backoff;
pub(crate) mod buffers;
mod busy;
mod closing;
#[allow(clippy::module_inception, reason = "the room is called after what it is for")]
pub(crate) mod connection;
pub(crate) mod conversation;
pub(crate) mod effect;
pub(crate) mod failure;
mod floors;
mod following;
pub(crate) mod handshake;
pub(crate) mod health;
pub(crate) mod in_flight;
pub(crate) mod input;
mod leaving;
mod lingering;
mod login;
pub(crate) mod pipeline;
pub(crate) mod primary;
pub(crate) mod question;
pub(crate) mod replids;
pub(crate) mod server_clock;
pub(crate) mod server_state;
#[cfg(test)]
#[path = "staged_tests.rs"]
pub(in crate::server::redis) mod staged;
