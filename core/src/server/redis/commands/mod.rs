//! Commands and replies: what is said to a server, as bytes, and what its answers mean. Pure.
//!
//! `codec` writes the command of an operation and reads its reply; `replies` finds where each reply ends, by `extent`; `script`
//! has the scripts; `info`, `rights` and `refusal` read what else a server says. Nothing here knows a connection.

pub(crate) mod codec;
pub(crate) mod extent;
pub(crate) mod info;
pub(crate) mod refusal;
pub(crate) mod replies;
pub(crate) mod rights;
pub(crate) mod script;
