//! The contract: the cases of `tests/contract` through the Rust API. `tests/contract/README.md` explains them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the modules of one program")]

mod matching;
mod place;
mod scene;
mod seen;
mod wanted;

use std::collections::BTreeSet;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::thread;

use locktender::Code;
use locktender_tests::checkout;
use serde_json::Value;

use crate::place::Place;
use crate::scene::Scene;

fn cases(file: &str) -> Vec<Value> {
    let path = checkout().join("tests/contract").join(file);
    let text = fs::read_to_string(&path).unwrap();
    match serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}")) {
        Value::Array(cases) => cases,
        other => panic!("{file} is no list: {other}"),
    }
}

/// How many cases of a file are played at once: they mostly wait, but so many may keep each other from being on time.
const AT_ONCE: usize = 8;

/// Plays every case of a file on each of its places, and fails with all that failed.
fn play(file: &str) {
    let wanted = std::env::var("LOCKTENDER_CONTRACT_CASE").unwrap_or_default();
    let cases = cases(file);
    let speaks = |case: &Value| case["languages"].as_array().is_none_or(|languages| languages.contains(&"rust".into()));
    let chosen = cases.iter().enumerate().filter(|(_, case)| speaks(case) && sentence(case).contains(&wanted));
    let plays: Vec<_> =
        chosen.flat_map(|(index, case)| Place::all(&case["at"]).into_iter().map(move |place| (index, case, place))).collect();
    let (plays, failures) = (Mutex::new(plays.into_iter()), Mutex::new(Vec::new()));
    let next = || plays.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((index, case, place)) = next() {
                    let title = format!("{} [{}]", sentence(case), place.name);
                    let name = format!("{}-{index}-{}", file.trim_end_matches(".json"), place.name);
                    let played = panic::catch_unwind(AssertUnwindSafe(|| Scene::new(place, case, &name).play()));
                    if let Err(why) = played.unwrap_or_else(|_| Err("panicked, see above".into())) {
                        failures.lock().unwrap().push(format!("  {title}\n    {why}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{file}:\n{}", failures.join("\n"));
}

fn sentence(case: &Value) -> &str {
    case["case"].as_str().unwrap()
}

macro_rules! files {
    ($($test:ident)*) => {
        $(#[test] fn $test() { play(concat!(stringify!($test), ".json")); })*

        const FILES: &[&str] = &[$(concat!(stringify!($test), ".json")),*];
    };
}

files!(
    acquire close cron_job defaults extend foreign handover history job leader listing loss metrics min_hold mistakes multi_lock names options release scripted several unreachable urls waiting wire
);

#[test]
fn every_file_is_played() {
    let names = fs::read_dir(checkout().join("tests/contract")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".json")).collect();
    assert_eq!(names, FILES.iter().map(|&file| file.to_owned()).collect());
}

#[test]
fn every_code_is_expected_somewhere() {
    let text: String = FILES.iter().map(|file| cases(file).iter().map(Value::to_string).collect::<String>()).collect();
    for code in Code::ALL {
        // A bug of the library can't be ordered.
        let expected = text.contains(&format!("\"error\":\"{code}\"")) || *code == Code::Internal;
        assert!(expected, "no case expects {code}");
    }
}
