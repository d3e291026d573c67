//! Examples: every Rust example runs, on a real server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::env;
use std::process::Command;

use locktender_tests::{RealServer, checkout};

#[test]
fn every_example_runs() {
    let server = RealServer::start();
    let built = env::current_exe().unwrap().parent().unwrap().with_file_name("examples");
    let sources = checkout().join("examples/rust").read_dir().unwrap();
    // A directory is a package of its own, such as the axum service: tests/node/services.test.mjs.
    let files = sources.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let names: Vec<_> = files.map(|path| path.file_stem().unwrap().to_owned()).collect();
    assert!(!names.is_empty());
    for name in names {
        let program = built.join(&name);
        assert!(program.exists(), "{} is missing: run `cargo build --examples`", program.display());
        let output = Command::new(program).env("LOCKTENDER_URL", server.url()).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", name.display());
        assert!(output.stderr.is_empty(), "{}: {output:?}", name.display());
    }
}
