//! Mutants: the simulation detects each planted bug within a budget of seeds.
//!
//! ```text
//! cargo test -p locktender-simulation --test mutants -- --nocapture every
//! LOCKTENDER_MUTANT=NoWriteBack cargo test -p locktender-simulation --test mutants -- --nocapture every   # one, with its trace
//! ```
//!
//! The bugs are in a build of the core that nobody gets: the last test here and one in each binding's tests say so.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use locktender::internals::mutant::{MARKER, Mutant, plant};
use locktender_simulation::{Outcome, Plan, run_planned};

/// In how many seeds a bug must show: in `tests/run`, and where the long tests run.
const BUDGET: [u64; 2] = [300, 2_000];

/// Bugs that don't show in the first seeds, and a seed that showed each: it is tried first. A change of the simulation may change
/// what it shows.
const KNOWN: &[(Mutant, u64)] = &[
    (Mutant::RenewalRewrites, 62),
    (Mutant::LateGrant, 14),
    (Mutant::ObserverGoesBack, 32),
    (Mutant::TransactionTakesClaim, 105),
    (Mutant::FastReleaseForgotten, 53),
    (Mutant::FastHoldNotClosed, 986),
    (Mutant::FastHoldNotConfirmed, 1_544),
    (Mutant::FastAcquireKept, 2),
    (Mutant::ReplayedLater, 2),
    (Mutant::FarScheduledTimeBegins, 133),
    (Mutant::EarlierScheduledTimeBegins, 350),
    (Mutant::LateScheduledTimeBegins, 133),
    (Mutant::ScheduledTimeBeginsTwice, 151),
    (Mutant::DoneRunsAgain, 52),
    (Mutant::OneAttemptTooMany, 561),
    (Mutant::RetryDelayIgnored, 148),
    (Mutant::AnybodysAttemptEnded, 52),
    (Mutant::LeaseDecides, 187),
    (Mutant::LostAttemptGivenBack, 187),
    (Mutant::AdoptedEndKept, 32_355),
    (Mutant::AdopterKeepsPlace, 6_530),
    (Mutant::ClaimTakesPermit, 71),
    (Mutant::EmptyGateJoined, 44),
    (Mutant::EndedMarkLives, 165),
    (Mutant::GateNotOfLast, 26),
    (Mutant::GateOutlivesMarks, 26),
    (Mutant::JoinerHasOwnFence, 26),
    (Mutant::LapsedClaimNotNotified, 83),
    (Mutant::LeaverStopsReaders, 374),
    (Mutant::MarkShortened, 26),
    (Mutant::NewcomerJoinsPastWriter, 71),
    (Mutant::PermitTooMany, 26),
    (Mutant::ReadersNotLetIn, 83),
    (Mutant::ClaimIsAnybodys, 5),
    (Mutant::CloseLeavesSent, 38),
    (Mutant::EarlierReplidVotes, 551),
    (Mutant::ReplidNotShared, 47),
    (Mutant::ExpiryUnnoticed, 228),
    (Mutant::ExtendOutlasts, 470),
    (Mutant::FairNewcomerPasses, 105),
    (Mutant::FairPassed, 8),
    (Mutant::FirstRoleTrustsTtl, 12),
    (Mutant::ForeignTrusted, 5),
    (Mutant::HealOvertakes, 54),
    (Mutant::HealWithoutMajority, 11),
    (Mutant::HintDuringRoundLost, 146),
    (Mutant::HintMissed, 15),
    (Mutant::LateAcquireKept, 1_182),
    (Mutant::LateExtension, 10),
    (Mutant::LateEnqueueKept, 145),
    (Mutant::LateSuccessKept, 1),
    (Mutant::LateVoteReleased, 163),
    (Mutant::LeaverKeepsClaim, 8),
    (Mutant::EnqueuedByAnother, 155),
    (Mutant::LostKeyNotHealed, 40),
    (Mutant::FailoverIgnored, 109),
    (Mutant::NextIgnored, 12),
    (Mutant::NextKeepsPlace, 343),
    (Mutant::NoDrift, 9),
    (Mutant::NoQuarantine, 8),
    (Mutant::SeenFencesForgotten, 7_084),
    (Mutant::SmallQuorum, 4),
    (Mutant::SucceededIgnored, 75),
    (Mutant::UndoneWakes, 19),
    (Mutant::WinnerNotTakenOut, 21),
];

fn budget() -> u64 {
    let ordinary = BUDGET[usize::from(std::env::var_os("LOCKTENDER_LONG").is_some())];
    std::env::var("LOCKTENDER_SEEDS").map_or(ordinary, |seeds| seeds.parse().unwrap())
}

/// A bug in the core, or one of the clocks it is given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    Core(Mutant),
    ClocksStopInSuspend,
}

impl Bug {
    fn all() -> Vec<Self> {
        // Some of those in tables show here, too.
        let is_known = |mutant: &Mutant| KNOWN.iter().any(|(known, _)| known == mutant);
        let simulated = Mutant::ALL.iter().copied().filter(|mutant| !mutant.is_in_tables() || is_known(mutant));
        simulated.map(Self::Core).chain([Self::ClocksStopInSuspend]).collect()
    }

    fn name(self) -> String {
        if let Self::Core(mutant) = self { format!("{mutant:?}") } else { format!("{self:?}") }
    }

    fn run(self, seed: u64, trace: bool) -> Outcome {
        let mut plan = Plan::of(seed);
        match self {
            Self::Core(mutant) => plant(mutant, || run_planned(plan, trace)),
            Self::ClocksStopInSuspend => {
                plan.clocks_stop_in_suspend = true;
                run_planned(plan, trace)
            }
        }
    }

    /// A seed in which it shows, and how.
    fn caught(self) -> Option<(u64, String)> {
        let known = KNOWN.iter().find(|(mutant, _)| Self::Core(*mutant) == self).map(|(_, seed)| *seed);
        known.into_iter().chain(0..budget()).find_map(|seed| Some((seed, self.run(seed, false).violation?)))
    }
}

#[test]
fn every_planted_bug_is_noticed() {
    let mut bugs = Bug::all();
    if let Ok(wanted) = std::env::var("LOCKTENDER_MUTANT") {
        bugs.retain(|bug| bug.name() == wanted);
        assert!(!bugs.is_empty(), "LOCKTENDER_MUTANT: there is no {wanted}");
    }
    let (next, survivors) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
            match bug.caught() {
                Some((seed, why)) => {
                    if bugs.len() == 1 {
                        bug.run(seed, true).trace.iter().for_each(|line| println!("{line}"));
                    }
                    println!("{}: seed {seed} {why}", bug.name());
                }
                None => survivors.lock().unwrap().push(bug.name()),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let survivors = survivors.into_inner().unwrap();
    assert!(survivors.is_empty(), "not noticed in {} seeds: {}", budget(), survivors.join(", "));
}

#[test]
fn no_package_is_built_with_bugs() {
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let features = |package: &str, edges: &str| {
        let tree = ["tree", "--locked", "--offline", "-p", package, "-i", "locktender", "-e", edges];
        let output = std::process::Command::new(env!("CARGO")).args(tree).current_dir(checkout).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for package in ["locktender", "locktender-python", "locktender-node", "locktender-tests", "locktender-simulation"] {
        let tree = features(package, "features,normal,build");
        assert!(tree.starts_with("locktender v") && !tree.contains("mutants"), "{package}:\n{tree}");
    }
    let tree = features("locktender-simulation", "features");
    assert!(tree.contains("mutants"), "as a dev-dependency, the only one that has it:\n{tree}");
    let here = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let marked = here.windows(MARKER.len()).any(|bytes| bytes == MARKER.as_bytes());
    assert!(marked, "what the bindings' tests look for in their libraries is in this program");
}
