//! The differential test: the scripts do what the machine does. Random operations run on both, and every reply and every
//! remaining key is compared.
//!
//! A sequence is made from its seed alone. A failing one names it; to run only that one, step by step on the terminal:
//! `DIFFERENTIAL_SEED=1234 cargo test -p locktender-tests --test differential -- --nocapture`. To run more of them than
//! usual: `DIFFERENTIAL_SEQUENCES=100000`. `tests/run` compares the oldest and the newest server, `tests/run all` every version.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken fixture fails its test at once")]

mod crowd;
mod draws;
mod replies;
mod shared;
mod step;
mod twins;

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{env, fs, thread};

use locktender_tests::{Binary, ServerOptions, checkout, long};
use step::{ALIKE, LOCKS, Named, PARTED, Steps};
use twins::Twins;

/// Sequences per server version, in `tests/run` and where the long tests run. Two steps in five are about plain locks: with 1,000
/// sequences as many as before jobs came.
const SEQUENCES: [u64; 2] = [1_000, 4_000];

/// Sequences beyond these that once differed.
const KEPT: [u64; 1] = [1_555];

/// One in so many of these is also played on locks whose names are alike.
const ALIKE_IN: u64 = 3;

/// Steps per sequence: enough for a lock to be taken, disturbed, extended, lost and taken again.
const STEPS: usize = 24;

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[allow(clippy::print_stdout, reason = "a single seed is shown step by step")]
fn run(twins: &mut Twins, seed: u64, mut steps: Steps, shown: bool) {
    twins.begin(seed);
    for at in 0..STEPS {
        let step = steps.next(twins.now_us(), twins.fences());
        if shown {
            println!("{}: step {at}: {step:?}", twins.name());
        }
        let others = steps.others(&step);
        let before = twins.state();
        twins.take(&step);
        let (before, after) = (twins.left_of(&before, &others), twins.left_of(&twins.state(), &others));
        assert_eq!(before, after, "{step:?} changed keys of another lock");
    }
    twins.compare_keys();
}

/// How much another client writes once, in letters of two bytes.
const MEGABYTES: usize = 5_000_000;

/// Acquire has 13 answers, inspect and the status of a job two; confirm, extend, heal, release, trust, the end of an attempt
/// and the reset of a job three; greet four.
const VERDICTS: usize = 13 + 2 * 2 + 7 * 3 + 4;

/// For so many times the sequences the random ones may go on until every kind of answer was met. What a sequence meets also hangs on
/// the servers' time: one gate in ten had missed a kind among its first ones.
const AT_MOST: usize = 5;

/// Runs the seeds on one version, and further ones until every kind of answer was met; panics with the first that fails.
fn run_all(binary: &Binary, seeds: RangeInclusive<u64>, locks: &[Named], shown: bool) {
    let mut twins = Twins::start(binary);
    twins.begin(0);
    for step in Steps::in_the_way(MEGABYTES, twins.now_us()) {
        twins.take(&step);
    }
    twins.begin(1);
    for step in Steps::crowded(twins.now_us()) {
        twins.take(&step);
    }
    twins.compare_keys();
    // The expiries are left to shorter values: a server works on these for as long as the tolerance.
    let kept = KEPT.into_iter().filter(|_| !shown);
    let wanted = KEPT.len() + seeds.clone().count();
    for (number, seed) in kept.chain(*seeds.start()..).enumerate() {
        if number >= wanted && (shown || twins.verdicts().len() == VERDICTS || number >= wanted * AT_MOST) {
            break;
        }
        // The assertion has printed itself; what is missing is how to see it again.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut twins, seed, Steps::new(seed, locks), shown)));
        assert!(outcome.is_ok(), "{} differs from the machine: DIFFERENTIAL_SEED={seed}", binary.name);
    }
    assert!(shown || twins.verdicts().len() == VERDICTS, "not every kind of answer was compared: {:?}", twins.verdicts());
}

/// How many sequences of them are about locks that several hold at once.
const SHARED_IN_PARTS: u64 = 150;

/// The answers of parts that were done.
const DONE_IN_PARTS: [&str; 9] = [
    "take Vote",
    "tick Vote",
    "count Vote",
    "extend Ok",
    "release Ok",
    "note Ok",
    "look Seen",
    "status Recorded(JobRecord",
    "forget Ok",
];

/// Runs sequences of parts of operations, as a cluster does them while a slot moves.
fn run_parts(binary: &Binary, seeds: RangeInclusive<u64>, shown: bool) {
    let mut twins = Twins::start(binary);
    for seed in seeds {
        let steps = Steps::new(seed, PARTED).in_parts();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut twins, seed, steps, shown)));
        assert!(outcome.is_ok(), "{} differs from the machine in parts: DIFFERENTIAL_SEED={seed}", binary.name);
    }
    for seed in 1..=SHARED_IN_PARTS {
        let steps = Steps::new(seed, PARTED).shared().in_parts();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut twins, seed, steps, shown)));
        assert!(outcome.is_ok(), "{} differs from the machine in parts of shared locks: seed {seed}", binary.name);
    }
    let missed: Vec<_> = DONE_IN_PARTS.into_iter().filter(|done| !twins.verdicts().contains(*done)).collect();
    assert!(shown || missed.is_empty(), "{missed:?}: not compared");
}

/// What was done on locks that several hold at once.
const DONE_SHARED: [&str; 16] = [
    "acquire Vote",
    "acquire Held",
    "acquire No",
    "acquire Conflict",
    "acquire Quarantine",
    "confirm Ok",
    "confirm No",
    "extend Ok",
    "extend No",
    "release Ok",
    "release No",
    "inspect Seen",
    "several: acquire Vote",
    "several: acquire Held",
    "several: acquire Conflict",
    "several: release Ok",
];

/// Runs sequences of operations on locks that several hold at once, among them some on plain locks of the same names.
fn run_shared(binary: &Binary, seeds: RangeInclusive<u64>, shown: bool) {
    let mut twins = Twins::start(binary);
    for seed in seeds {
        let steps = Steps::new(seed, PARTED).shared();
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut twins, seed, steps, shown)));
        assert!(outcome.is_ok(), "{} differs from the machine on shared locks: DIFFERENTIAL_SEED={seed}", binary.name);
    }
    let missed: Vec<_> =
        DONE_SHARED.into_iter().filter(|done| !twins.verdicts().iter().any(|verdict| verdict.starts_with(done))).collect();
    assert!(shown || missed.is_empty(), "{missed:?}: not compared");
}

#[test]
fn scripts_and_machine_agree_on_every_server_version() {
    let seeds = match number("DIFFERENTIAL_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("DIFFERENTIAL_SEQUENCES").unwrap_or(SEQUENCES[usize::from(long())]),
    };
    let alike = *seeds.start()..=seeds.start() + (seeds.end() - seeds.start()) / ALIKE_IN;
    let shown = seeds.start() == seeds.end();
    thread::scope(|scope| {
        for binary in Binary::ends() {
            let (seeds, alike) = (seeds.clone(), alike.clone());
            scope.spawn(move || {
                run_all(&binary, seeds.clone(), LOCKS, shown);
                run_all(&binary, alike.clone(), ALIKE, shown);
                run_parts(&binary, alike, shown);
                run_shared(&binary, seeds, shown);
            });
        }
    });
}

/// A tool for Lua can read each file by itself.
#[test]
fn every_file_of_a_script_is_a_chunk() {
    let server = ServerOptions::new().start();
    let mut folders = vec![checkout().join("core/src/scripts")];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let parse = "local _, error = loadstring(ARGV[1]) return error or ''";
            let error = server.command(&["EVAL", parse, "0", &fs::read_to_string(&path).unwrap()]).text();
            assert_eq!(error.as_deref(), Some(""), "{}", path.display());
            read += 1;
        }
    }
    assert!(read > 50);
}
