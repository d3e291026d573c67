//! Binaries: the server binaries that `tests/run setup` found.

use std::path::PathBuf;
use std::{env, fs};

use serde_json::Value;

use crate::checkout::prepared;
use crate::long;

/// One version of Redis or Valkey that can be started here.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Its name in `.venv/servers.json`, such as `valkey-9.1`.
    pub name: String,
    /// `redis` or `valkey`.
    pub kind: String,
    /// The full version, such as `9.1.2`.
    pub version: String,
    /// The executable.
    pub path: PathBuf,
}

impl Binary {
    /// All versions that were found.
    pub fn all() -> Vec<Self> {
        let text = fs::read_to_string(prepared("servers.json")).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        list.as_array().unwrap().iter().map(Self::read).collect()
    }

    /// The oldest version and the newest; all of them where the long tests run.
    pub fn ends() -> Vec<Self> {
        let mut all = Self::all();
        if !long() {
            all.sort_by_key(|binary| binary.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>());
            all.drain(1..all.len().max(2) - 1);
        }
        all
    }

    /// The version that tests use by default: `LOCKTENDER_TEST_SERVER`, else the first.
    pub fn preferred() -> Self {
        match env::var("LOCKTENDER_TEST_SERVER") {
            Ok(name) => Self::named(&name),
            Err(_) => Self::all().swap_remove(0),
        }
    }

    /// The version with this name.
    pub fn named(name: &str) -> Self {
        Self::all()
            .into_iter()
            .find(|binary| binary.name == name)
            .unwrap_or_else(|| panic!("no server {name} in .venv/servers.json"))
    }

    fn read(entry: &Value) -> Self {
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        Self { name: text("name"), kind: text("kind"), version: text("version"), path: text("path").into() }
    }
}
