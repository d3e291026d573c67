//! locktender for Node: arguments in, calls to the core, results out. The files `lib/*.ts` say the meaning to users, and the core
//! defines it, once.
//!
//! This crate makes no JavaScript promises: a call returns a number, and its result comes out of the [`queue`] under that number.

mod any_hold;
mod attempt;
mod client;
mod clock;
mod command;
mod credentials;
mod date;
mod election;
mod error;
mod event;
mod exit;
mod follow;
mod hold;
mod host;
mod item;
mod job;
mod lock;
mod maker;
mod metrics;
mod observer;
mod options;
mod questions;
mod queue;
mod record;
mod results;
mod scripted;
mod wake;
