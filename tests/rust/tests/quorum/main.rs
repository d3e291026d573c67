//! A quorum of real servers, some of which fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the modules of one program")]

mod acquire;
mod beliefs;
mod bounds;
mod change;
mod chaos;
mod clock;
mod contention;
mod cut;
mod handover;
mod hold;
mod release;
mod restart;
mod servers;
mod settable_clock;
mod setup;
mod votes;
