//! The command that checks one scenario: see `USAGE`.
// A program that prints what it finds.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use locktender_model::rules::Rule;
use locktender_model::scenario::Scenario;
use locktender_model::search::search;
use locktender_model::walk::walk;

const USAGE: &str = "\
usage: locktender-model SERVERS ATTEMPTS [FAULT…] [walks=N [seed=N]] [limit=N]

  3 3 untimed             every state of 3 servers and 3 attempts whose keys may expire at any moment
  3 2 deadlines=2 forgets with extensions and heals, and servers that lose their data
  5 3 walks=1000000       random walks instead of every state

faults: untimed, deadlines=1..3 (above 1 a hold is extended), forgets, hands-over, skewed, resends, and one broken rule:";

struct Task {
    scenario: Scenario,
    walks: Option<usize>,
    seed: u64,
    limit: usize,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(task) => run(&task),
        Err(why) => {
            eprintln!("{why}\n\n{USAGE}");
            for rule in Rule::ALL {
                eprintln!("  {}", rule.name());
            }
            ExitCode::from(2)
        }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Task, String> {
    let mut count = |what: &str, most: usize| {
        let given = args.next().ok_or_else(|| format!("how many {what}?"))?;
        given.parse().ok().filter(|count| (1..=most).contains(count)).ok_or_else(|| format!("{what}: 1 to {most}, not {given}"))
    };
    let scenario = Scenario::timed(count("servers", 5)?, count("attempts", 4)?);
    let mut task = Task { scenario, walks: None, seed: 1, limit: 300_000_000 };
    for arg in args {
        let (key, value) = arg.split_once('=').unwrap_or((&arg, ""));
        let number = || value.parse::<usize>().map_err(|_| format!("{arg}: not a number"));
        let scenario = &mut task.scenario;
        match key {
            "untimed" => scenario.timed = false,
            "forgets" => scenario.forgets = true,
            "hands-over" => scenario.hands_over = true,
            "skewed" => scenario.skewed = true,
            "resends" => scenario.resends = true,
            "deadlines" => scenario.ahead = number()?.clamp(1, 3) as u8,
            "walks" => task.walks = Some(number()?),
            "seed" => task.seed = number()? as u64,
            "limit" => task.limit = number()?,
            _ => {
                let rule = Rule::ALL.into_iter().find(|rule| rule.name() == arg);
                scenario.broken = Some(rule.ok_or_else(|| format!("{arg}: unknown"))?);
            }
        }
    }
    Ok(task)
}

fn run(task: &Task) -> ExitCode {
    println!("{}", task.scenario);
    let violation = if let Some(walks) = task.walks {
        let walked = walk(&task.scenario, task.seed, walks);
        let (walks, steps, grants) = (walked.walks, walked.steps, walked.grants);
        let seconds = walked.took.as_secs_f64();
        println!("{walks} walks, {steps} steps, {grants} grants in {seconds:.1} s ({:.0} steps/s)", steps as f64 / seconds);
        walked.violation
    } else {
        let outcome = match search(&task.scenario, task.limit, |done, found, took| {
            println!("{done} of {found} states, {:.0} states/s", done as f64 / took.as_secs_f64());
        }) {
            Ok(outcome) => outcome,
            Err(why) => {
                eprintln!("{why}");
                return ExitCode::from(2);
            }
        };
        let complete = if outcome.complete { "all of them" } else { "not all of them" };
        println!("{} states ({complete}) in {:.1} s", outcome.states, outcome.took.as_secs_f64());
        outcome.violation
    };
    let Some((violation, trace)) = violation else { return ExitCode::SUCCESS };
    println!("{violation:?} is broken after {} steps:\n{trace}", trace.len());
    ExitCode::FAILURE
}
