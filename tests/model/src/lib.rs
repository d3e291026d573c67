//! An exhaustive checker of the fencing protocol: every order in which messages can be delivered, delayed and lost, in
//! which keys can expire and servers forget, is tried, and every grant is held to the promises.
//!
//! * *Order*: fences are unique, and if a grant returned before another attempt was asked for, its fence is smaller. Always,
//!   also where keys expire at any moment ([`Scenario::untimed`](scenario::Scenario::untimed)), while no server forgets.
//! * *Exclusion*: no two holds are valid at once, if a key outlives the validity of the round that wrote it
//!   ([`Scenario::timed`](scenario::Scenario::timed)); also with servers that forget and go into quarantine.
//!
//! [`server`] has the rules of one server and [`client`] those of a client, in the words of `core/src/machine` and
//! `core/src/protocol`; [`action`] is everything that can happen next, [`promise`] judges a grant, [`canon`] says which
//! states are alike and why, [`search`] visits them all, and [`trace`] tells how a promise was broken. Each rule of
//! [`rules`] can be broken, and a test asserts that the checker finds out.
//!
//! # What is modelled
//!
//! One lock, on N servers, and A attempts. An attempt is one round of the acquire loop, with an owner value of its own, and
//! the hold it may become: acquire, choice of the token, confirm, grant, extensions (any number, with at most two under way
//! beyond the current validity), heals, late votes, release, loss, hand-over and adoption. What was sent is in flight for
//! ever: it may arrive at any later time, in any order, also after its sender gave up, or never. A release may arrive any
//! number of times; confirm, extend and heal too, since a second one changes nothing or is one more action. An acquire is
//! applied twice only where a scenario says so (the transport never sends one again). A proposal may be any number at all,
//! which covers every clock, every clamping and, with `skewed`, every counter to begin with.
//!
//! Time is the order of deadlines and nothing else: the validity of each round ends at some moment, and the key it wrote
//! lives at least until then. A server that forgot waits for the deadlines of all rounds that were sent before.
//!
//! # What isn't
//!
//! Durations: that validity is counted from the request and less the drift, that `max_ttl` is long enough, and the clock
//! check are assumed by that order (`validity.rs` and the simulation test them). A server that comes back with *old* data
//! rather than none; other libraries' keys; queues; the acquire loop beyond one round. With forgetting, order is not
//! checked: it then rests on the clocks alone. Liveness isn't checked.
//!
//! Where the model allows more than can happen (the key of an attempt that is over may expire at once, an attempt may be
//! released without being told), it is to have fewer states; what holds for more behaviours holds for these.
// Attempts, servers and fences are numbers below 64.
#![allow(clippy::cast_possible_truncation)]

pub mod action;
pub mod canon;
pub mod client;
pub mod packed;
pub mod promise;
pub mod rules;
pub mod scenario;
pub mod search;
pub mod server;
pub mod state;
pub mod trace;
pub mod visited;
pub mod walk;
