//! The simulation: the real decision code against N servers and a bad network, in virtual time.
//!
//! One seed decides everything: how many servers and clients there are, what the clients do, every latency, pause, crash and
//! clock error. Nothing reads a clock, starts a thread or opens a socket, so a seed replays bit for bit.
//!
//! What is real: [`Acquisition`](locktender::internals::protocol::Acquisition), which decides everything a client does, and
//! [`machine::apply`](locktender::machine::apply), which is a server. What is modelled: clocks, timers, the byte
//! streams between them (`route`, `session`), processes that stop and die (`process`), servers that do (`node`), and users
//! (`worker`). What must hold is in `history`, in true time, which nobody inside can see.

mod clock;
mod deeds;
mod faults;
mod foreign;
mod handover;
mod history;
mod holds;
mod lines;
mod node;
mod notices;
mod plan;
mod probe;
mod process;
mod queue;
mod resp;
mod route;
mod sample;
mod session;
mod slot;
mod standing;
mod worker;
mod world;

pub use plan::Plan;
pub use world::{Outcome, Stats, run, run_planned};
