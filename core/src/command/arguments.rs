//! The arguments of the command.

use clap::Parser;

use super::demo::Demo;
use super::doctor::Doctor;
use super::force::Break;
use super::generated::{Completions, Manual};
use super::inspect::{Reset, Show, Wait};
use super::job::Job;
use super::lead::Lead;
use super::list::{List, Watch};
use super::once::Once;
use super::quorum::Quorum;
use super::run::Run;

/// Distributed locks on Redis
#[derive(Debug, Parser)]
#[command(name = "locktender", bin_name = "locktender", version, subcommand_required = true, disable_help_subcommand = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Subcommand {
    Run(Run),
    Job(Job),
    Once(Once),
    Lead(Lead),
    #[command(name = "ls")]
    List(List),
    Show(Show),
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
        match self {
            Self::Run(_) | Self::Job(_) | Self::Once(_) | Self::Lead(_) | Self::Demo(_) => true,
            Self::Watch(watch) => watch.is_a_page(),
            _ => false,
        }
    }
}
