//! Commands and replies: the bytes that a server gets, and the meaning of its answers. Pure.
//!
//! `words` writes the command of an operation, and `codec` reads its reply. `replies` finds the end of each reply, by `extent`.
//! `script` has the scripts. `handshake_facts`, `info`, `rights` and `refusal` read the other answers of a server. Nothing here
//! knows a connection.

pub(crate) mod codec;
pub(crate) mod comparison;
pub(crate) mod extent;
pub(crate) mod handshake_facts;
pub(crate) mod history;
pub(crate) mod info;
mod listing;
pub(crate) mod native;
pub(crate) mod refusal;
pub(crate) mod replies;
pub(crate) mod rights;
pub(crate) mod script;
pub(crate) mod words;
