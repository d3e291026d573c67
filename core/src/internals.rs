//! Internals: the decisions without their I/O, for the simulation, the model and the differential test. It may change in any
//! release.

pub mod clock {
    pub use crate::clock::*;
}
#[cfg(feature = "mutants")]
pub mod mutant {
    pub use crate::mutant::*;
}
pub mod name {
    pub use crate::name::*;
}
pub mod owner {
    pub use crate::owner::*;
}
pub mod protocol {
    pub use crate::protocol::*;
}
pub mod validity {
    pub use crate::validity::*;
}
pub mod wait {
    pub use crate::wait::*;
}
pub mod redis {
    pub use crate::server::redis::{Buffers, Connection, Effect, InFlight, Input, Primary, Role, Script, Settings};
    pub use crate::server::redis::{Channel, Handshake, Kind, PubSub, Push};
    pub use crate::server::redis::{Failover, RedisServer, ServerState};
}
