//! Questions: what a connection asks a server for itself.

use crate::server::redis::login::Login;

/// A question to the server that is no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Its replication id.
    Replid,
    /// What its clock shows.
    Time,
    /// That it serves the next command of a slot that is moving there.
    Asking,
    /// Whether it accepts new credentials.
    Login,
}

impl Question {
    /// The command, as bytes. `login` are the newest credentials.
    pub(crate) fn command(self, login: &Login) -> Vec<u8> {
        let command = match self {
            Self::Replid => redis::cmd("INFO").arg("replication").take(),
            Self::Time => redis::cmd("TIME"),
            Self::Asking => redis::cmd("ASKING"),
            Self::Login => return login.command().unwrap_or_default(),
        };
        command.get_packed_command()
    }
}
