//! Simulation: the real decision code against N servers and a bad network, in virtual time.
//!
//! One seed decides everything: the number of servers and clients, the work of the clients, every latency, pause, crash and clock
//! error. No code reads a clock, starts a thread or opens a socket, so a seed replays bit for bit.
//!
//! Two parts are real: [`Acquisition`](locktender::internals::protocol::Acquisition), which makes all decisions of a client, and
//! [`machine::apply`](locktender::machine::apply), which is a server. The rest is modelled: clocks, timers, the byte streams
//! between them (`route`, `stream`, `session`), processes that stop and die (`process`), servers that do so (`node`) or whose replicas
//! are promoted (`failover`), and users (`worker`).
//! Observers of who has a lock are beside them (`observers`, judged in `sightings`): their memory and what they make of answers is real.
//! `fleet` is a simulation of its own, of the load on a cluster.
//! The rules that must hold are in `history`, in true time, which no clock inside the simulation shows.

mod brief;
mod clock;
mod deeds;
mod failover;
mod faults;
mod fleet;
mod foreign;
mod handover;
mod history;
mod holds;
mod inside;
mod jobs;
mod ledger;
mod letting_in;
mod listening;
mod lost_marks;
mod node;
mod notices;
mod observers;
mod places;
mod plan;
mod probe;
mod process;
mod queue;
mod resets;
mod resp;
mod role;
mod room;
mod route;
mod sample;
mod session;
mod several;
mod shadow;
mod sharing;
mod sightings;
mod slot;
mod standing;
mod stream;
mod together;
mod waiters;
mod worker;
mod world;

pub use fleet::{FleetPlan, Report, Spread, run_fleet};
pub use plan::Plan;
pub use world::{Outcome, Stats, run, run_planned};
