//! The arguments of the command.

use clap::Parser;

use super::demo::Demo;
use super::doctor::Doctor;
use super::exit;
use super::force::Break;
use super::generated::{Completions, Manual};
use super::history::History;
use super::inspect::{Reset, Show, Wait};
use super::list::{List, Watch};
use super::quorum::Quorum;
use super::system::{CronJob, Hold, Job, Lead, Run};

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

    #[test]
    #[cfg(unix)]
    fn the_command_stands_behind_its_sign_and_options_before_it() {
        for (line, is_right) in [
            ("locktender run x -- true", true),
            ("locktender run x -n -- true", true),
            ("locktender run x -w3 -- echo -- -w3", true),
            ("locktender run x y -- true", true),
            ("locktender run x true", false),
            ("locktender run x --no-such -- true", false),
            ("locktender run -- true", false),
            ("locktender job x y -- true", false),
            ("locktender lead x y -- true", false),
            ("locktender cron-job --every 1h x y -- true", false),
            ("locktender hold x y", true),
            ("locktender ls --json", true),
        ] {
            assert_eq!(Arguments::try_parse_from(line.split(' ')).is_ok(), is_right, "{line}");
        }
    }

    #[test]
    fn the_arguments_are_consistent_and_each_subcommand_has_a_manual_page() {
        Arguments::command().debug_assert();
        let names: Vec<String> = Arguments::command().get_subcommands().map(|known| known.get_name().to_owned()).collect();
        assert_eq!(names, crate::generated::SUBCOMMANDS);
    }
}
