//! Texts that are generated from the arguments: completions for shells, and manual pages.

use clap::error::ErrorKind;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::exit;
use super::output::write_out;

/// Writes a script with which a shell completes the arguments
#[derive(Debug, Args)]
pub(super) struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes a manual page, for `man -l -`
#[derive(Debug, Args)]
pub(super) struct Manual {
    /// The subcommand that it is about [default: all, in short]
    subcommand: Option<String>,
}

pub(super) fn completions(mut command: Command, options: &Completions) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "locktender", &mut script);
    written(&script)
}

pub(super) fn manual(mut command: Command, options: &Manual) -> u8 {
    command.build();
    let about = options.subcommand.as_ref().map_or(Some(&command), |name| command.find_subcommand(name)).cloned();
    let Some(about) = about else {
        let _ = command.error(ErrorKind::InvalidValue, "there is no such subcommand").print();
        return exit::USAGE;
    };
    let mut page = Vec::new();
    // Nothing fails that is written to memory.
    let _ = Man::new(about).render(&mut page);
    written(&page)
}

/// Whoever closed the pipe doesn't read it.
fn written(text: &[u8]) -> u8 {
    let _ = write_out(text);
    0
}
