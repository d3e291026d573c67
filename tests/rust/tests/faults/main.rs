//! One server, while it, the network or the holder's own process fails.

mod acquire;
mod blocking;
mod hold;
mod process;
mod release;
