//! The public API: what is committed as `core/public-api.txt` is what rustdoc shows, and every verb has an example.

use std::process::Command;

use locktender_tests::checkout;

#[test]
fn the_public_api_is_the_one_that_is_committed_and_each_verb_has_an_example() {
    let script = checkout().join("tests/public_api.py");
    let output = Command::new("python3").arg(script).arg("--check").output().unwrap();
    let written = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&written));
}
