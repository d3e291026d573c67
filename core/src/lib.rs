//! Distributed locks that are *tended*: kept renewed, fenced, and handed over.
#![forbid(unsafe_code)]

mod call;
mod client;
pub mod clock;
pub mod error;
pub mod event;
mod held;
mod live;
mod lock;
pub mod machine;
pub mod name;
pub mod options;
pub mod owner;
#[doc(hidden)]
pub mod protocol;
mod runtime;
pub mod server;
mod tended;
#[doc(hidden)]
pub mod validity;
mod wait;

pub use call::{Call, Cancel};
pub use client::{Client, ClientBuilder, URL_VARIABLE};
pub use error::{Code, Error, Holder, Loss, LossReason, Remaining};
pub use event::{Event, EventKind, Sink};
pub use held::Held;
pub use lock::{Lock, WithError};
pub use options::{ClientOptions, LockOptions, LockSettings, Wait};
pub use owner::OwnerFields;
pub use protocol::{LockInfo, Outcome, Release};
pub use server::FailureKind;
