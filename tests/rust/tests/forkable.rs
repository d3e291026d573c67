//! Dependencies of the packages: none keeps sleeping threads in a table of the whole process, which a fork copies.
//!
//! A child of such a process crashes or hangs when one of its new threads sleeps at the address of one that wasn't copied. See
//! `core/src/sync.rs`; forks themselves are in `tests/python/test_fork*.py`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use locktender_tests::checkout;

/// Crates with such a table, and what they are made of.
const WITH_A_TABLE: &[&str] = &["parking_lot", "parking_lot_core", "lock_api"];

#[test]
fn no_dependency_keeps_a_table_of_sleeping_threads() {
    // A feature of a dependency, such as tokio's `parking_lot`, would bring it into this file, too.
    let locked = fs::read_to_string(checkout().join("Cargo.lock")).unwrap();
    let packages: Vec<_> = locked.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    assert!(packages.contains(&"tokio") && packages.contains(&"pyo3"), "{packages:?}");
    let found: Vec<_> = packages.iter().filter(|package| WITH_A_TABLE.contains(package)).collect();
    assert!(found.is_empty(), "Cargo.lock has {found:?}: `cargo tree --workspace --invert {}` shows why", found[0]);
}

#[test]
fn the_sources_take_their_locks_from_one_place() {
    for crate_ in ["core", "bindings-python", "bindings-node"] {
        let sources = sources_in(&checkout().join(crate_).join("src"));
        assert!(!sources.is_empty());
        for path in sources {
            let text = fs::read_to_string(&path).unwrap();
            for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
                let takes = |name: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
                let of_std = line.contains("std::sync::") && ["Mutex", "RwLock", "Condvar"].into_iter().any(takes);
                assert!(!of_std && !takes("parking_lot"), "{}:{}: {line}", path.display(), number + 1);
            }
        }
    }
}

fn sources_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { sources_in(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
