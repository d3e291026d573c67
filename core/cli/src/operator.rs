//! Operator: what the subcommands for operators share. They ask servers, and write what they see to standard output.

use std::io;

use clap::Args;
use locktender::{Client, Error};

use super::exit;
use super::messages::Messages;
use super::servers::Servers;
use super::system::write_out;

/// Whom to ask, and how to write.
#[derive(Debug, Args)]
pub(super) struct Asked {
    #[command(flatten)]
    pub(super) servers: Servers,

    /// Write lines of JSON
    #[arg(long, display_order = 28)]
    pub(super) json: bool,
}

/// Why a subcommand for operators ends early.
pub(super) enum Stop {
    /// With an error, which is reported.
    Failed(Error),
    /// The output can't be written. If nobody reads it, that is no error.
    Unwritten(io::Error),
    /// With this code, after a message.
    Reported(u8),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Asked {
    pub(super) fn messages(&self) -> Messages {
        Messages::for_operators(self.json)
    }

    /// Does the work with a client, and gives the exit code.
    pub(super) fn with_client(&self, work: impl FnOnce(&Client) -> Result<u8, Stop>) -> u8 {
        self.with(self.servers.client(), work)
    }

    /// The same, with a client of another kind.
    pub(super) fn with(&self, client: Result<Client, Error>, work: impl FnOnce(&Client) -> Result<u8, Stop>) -> u8 {
        match client.map_err(Stop::Failed).and_then(|client| work(&client)) {
            Ok(code) | Err(Stop::Reported(code)) => code,
            Err(Stop::Failed(error)) => {
                self.messages().failure(&error);
                exit::code_of(&error)
            }
            Err(Stop::Unwritten(error)) => self.messages().unwritten(&error),
        }
    }
}

/// Writes a text to standard output.
pub(super) fn print(text: &str) -> Result<(), Stop> {
    write_out(text.as_bytes()).map_err(Stop::Unwritten)
}
