//! The arguments of the command.

use std::ffi::OsString;

use clap::Parser;

use super::cron_job::CronJob;
use super::demo::Demo;
use super::doctor::Doctor;
use super::exit;
use super::force::Break;
use super::generated::{Completions, Manual};
use super::history::History;
use super::hold::Hold;
use super::inspect::{Reset, Show, Wait};
use super::job::Job;
use super::lead::Lead;
use super::list::{List, Watch};
use super::quorum::Quorum;
use super::run::Run;

/// Distributed locks on Redis
#[derive(Debug, Parser)]
#[command(name = "locktender", bin_name = "locktender", version, subcommand_required = true, after_help = exit::help_of_all())]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    Run(Run),
    Job(Job),
    CronJob(CronJob),
    Lead(Lead),
    Hold(Hold),
    #[command(name = "ls")]
    List(List),
    Show(Show),
    History(History),
    Wait(Wait),
    Watch(Watch),
    Break(Break),
    Reset(Reset),
    Quorum(Quorum),
    Doctor(Doctor),
    Demo(Demo),
    Completions(Completions),
    #[command(name = "man")]
    Manual(Manual),
}

impl Subcommand {
    /// The command that it runs.
    fn command(&self) -> Option<&[OsString]> {
        match self {
            Self::Run(run) => Some(run.command()),
            Self::Job(job) => Some(job.command()),
            Self::CronJob(job) => Some(job.command()),
            Self::Lead(lead) => Some(lead.command()),
            _ => None,
        }
    }

    /// The option that would be the command, since it stands behind the name. `words` are all arguments.
    pub(super) fn misplaced_option(&self, words: &[OsString]) -> Option<&OsString> {
        let command = self.command()?;
        let first = command.first().filter(|first| first.as_encoded_bytes().starts_with(b"-"))?;
        let before = words.len().checked_sub(command.len() + 1).and_then(|at| words.get(at));
        before.is_none_or(|before| before != "--").then_some(first)
    }

    /// Whether it decides itself what a signal does that ends a program.
    pub(super) fn handles_signals(&self) -> bool {
        matches!(
            self,
            Self::Run(_) | Self::Job(_) | Self::CronJob(_) | Self::Lead(_) | Self::Hold(_) | Self::Watch(_) | Self::Demo(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn misplaced(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let read = Arguments::try_parse_from(&words).unwrap();
        read.subcommand.misplaced_option(&words).map(|word| word.to_string_lossy().into_owned())
    }

    #[test]
    fn an_option_behind_the_name_is_no_command() {
        for (line, expected) in [
            ("locktender run x true", None),
            ("locktender run x -- true", None),
            ("locktender run x -- -w3", None),
            ("locktender run x -n -- true", None),
            ("locktender run x echo -n -- hi", None),
            ("locktender run x -- echo -- -w3", None),
            ("locktender run x -w3 -- true", Some("-w3")),
            ("locktender run x -nE0 true", Some("-nE0")),
            ("locktender run x --no-such -- true", Some("--no-such")),
            ("locktender run x -c true", Some("-c")),
            ("locktender job x --max-attempt 2 -- true", Some("--max-attempt")),
            ("locktender ls --json", None),
        ] {
            assert_eq!(misplaced(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn the_arguments_are_consistent_and_each_subcommand_has_a_manual_page() {
        Arguments::command().debug_assert();
        let names: Vec<String> = Arguments::command().get_subcommands().map(|known| known.get_name().to_owned()).collect();
        assert_eq!(names, crate::generated::SUBCOMMANDS);
    }
}
