//! locktender for Node: arguments in, calls to the core, results out. What anything means is said in `lib/*.ts`, to users,
//! and in the core, once.
//!
//! No promise is made here: a call returns a number, and its result comes out of the [`queue`] under that number.

mod client;
mod clock;
mod error;
mod event;
mod held;
mod host;
mod lock;
mod options;
mod queue;
mod report;
mod scripted;
