//! Record: what is known of a job, beside its lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::fence;
use crate::machine::state::{State, Value};
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::Verdict;
use crate::op::job::{EarlierRun, JobEnd, NotBegun, Terms};

/// The record of an attempt that runs is kept so much longer than its lease and `retention`.
pub(super) const KEPT_MS: u64 = 25 * 60 * 60 * 1_000;

/// The states of a record.
pub(super) const NEW: &str = "new";
pub(super) const RUNNING: &str = "running";
pub(super) const RETRYING: &str = "retrying";
pub(super) const DONE: &str = "done";
pub(super) const DEAD: &str = "dead";

/// A record as it was before the operation; without one, all is empty.
#[derive(Default)]
pub(super) struct Record(BTreeMap<Arc<str>, Arc<str>>);

impl Record {
    /// # Errors
    /// The type and the key of a value that is no record.
    pub(super) fn read(state: &State, keys: &Keys, now_us: u64) -> Result<Self, String> {
        match state.get(keys.record(), now_us) {
            None => Ok(Self::default()),
            Some(entry) => match &entry.value {
                Value::Fields(fields) => Ok(Self(fields.clone())),
                _ => Err(fence::at(entry, keys.record())),
            },
        }
    }

    pub(super) fn exists(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn text(&self, field: &str) -> &str {
        self.0.get(field).map_or("", |value| value)
    }

    pub(super) fn number(&self, field: &str) -> u64 {
        self.text(field).parse().unwrap_or(0)
    }

    pub(super) fn count(&self, field: &str) -> u32 {
        u32::try_from(self.number(field)).unwrap_or(u32::MAX)
    }

    /// Whether the attempt of this owner has begun, and has not ended.
    pub(super) fn is_open(&self, by: &str) -> bool {
        self.text("state") == RUNNING && (self.text("by") == by || mutant!(AnybodysAttemptEnded))
    }

    /// Whether the last attempt of this owner made the job dead without an error of its own: another client found its lease ended.
    pub(super) fn has_died(&self, by: &str) -> bool {
        self.text("state") == DEAD && !self.text("died").is_empty() && self.text("by") == by
    }

    /// What there is to say of a last attempt that did not end.
    pub(super) fn died(&self, max: u32) -> String {
        let (attempts, by) = (self.count("attempts"), self.text("by"));
        format!("attempt {attempts} of {max}: its worker died or lost the lease ({by})")
    }

    /// The run that the record is about, which a later scheduled time leaves behind.
    pub(super) fn earlier(&self) -> Option<Box<EarlierRun>> {
        let error = match (self.text("state"), self.text("error")) {
            (RETRYING, error) if !error.is_empty() => error.to_owned(),
            (RUNNING | RETRYING, _) => self.died(self.count("max")),
            _ => String::new(),
        };
        let (scheduled_time_ms, attempts, by) =
            (self.number("scheduled_time"), self.count("attempts"), self.text("by").to_owned());
        self.exists()
            .then(|| Box::new(EarlierRun { scheduled_time_ms, attempts, by, error, retention_ms: self.number("retention") }))
    }

    /// How many attempts are allowed: what the first acquire has fixed, else what this one asks for.
    pub(super) fn max(&self, terms: &Terms) -> u32 {
        if self.count("max") == 0 { terms.max_attempts } else { self.count("max") }
    }

    pub(super) fn end(&self, why: NotBegun, text: String, max_attempts: u32, time_us: u64) -> Verdict {
        let (attempts, by) = (self.count("attempts"), self.text("by").to_owned());
        Verdict::Over(Box::new(JobEnd { why, text, attempts, max_attempts, by, time_us }))
    }
}
