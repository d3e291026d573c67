//! Distributed locks that are *tended*: kept renewed, fenced, and handed over.
#![forbid(unsafe_code)]

pub mod clock;
pub mod error;
pub mod event;
pub mod machine;
pub mod name;
pub mod options;
pub mod owner;
#[doc(hidden)]
pub mod protocol;
pub mod server;
#[doc(hidden)]
pub mod validity;
mod wait;
