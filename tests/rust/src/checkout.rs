//! The checkout: its root, and paths of its files.

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn checkout() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file that `tests/run setup` made under `.venv`.
pub(crate) fn prepared(file: &str) -> PathBuf {
    let path = checkout().join(".venv").join(file);
    assert!(path.exists(), "{} is missing: run `tests/run setup`", path.display());
    path
}

/// A certificate or key of the TLS tests, such as `ca.pem` or `client.key`; `tests/certificates.py` lists them.
pub fn certificate(file: &str) -> PathBuf {
    prepared("certificates").join(file)
}
