//! Questions: what a connection asks a server for itself.

use std::time::Duration;

use crate::server::redis::connection::subscription::Kind;

/// The time for which a refusal is not asked about again. Rights are given by people.
pub(crate) const REFUSED: Duration = Duration::from_secs(30);

/// A question to the server that is no operation: for a subscription, or about the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Which era it is in.
    Era,
    /// What its clock shows.
    Time,
    Hello,
    Subscribe(Kind),
    Ping,
    /// That it serves the next command of a slot that is moving there.
    Asking,
}

impl Question {
    /// The command, as bytes.
    pub(crate) fn command(self, channel: &str) -> Vec<u8> {
        let command = match self {
            Self::Hello => redis::cmd("HELLO").arg(3).take(),
            Self::Subscribe(Kind::Plain) => redis::cmd("SUBSCRIBE").arg(channel).take(),
            Self::Subscribe(Kind::Sharded) => redis::cmd("SSUBSCRIBE").arg(channel).take(),
            Self::Era => redis::cmd("INFO").arg("replication").take(),
            Self::Time => redis::cmd("TIME"),
            Self::Ping => redis::cmd("PING"),
            Self::Asking => redis::cmd("ASKING"),
        };
        command.get_packed_command()
    }
}

pub(crate) const SUBSCRIBE: &[Question] = &[Question::Subscribe(Kind::Plain), Question::Subscribe(Kind::Sharded)];
pub(crate) const PING: &[Question] = &[Question::Ping];
