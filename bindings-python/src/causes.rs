//! Causes: the exceptions of a program's own code that are behind errors of the core. The core keeps their numbers, because no thread
//! of it touches a Python object. The latest are kept here.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::guarded::Guarded;

/// How many are kept: an error is raised soon after its cause.
const KEPT: usize = 16;

static LATEST: Guarded<VecDeque<(u64, Py<PyAny>)>> = Guarded::new(VecDeque::new());

/// An exception, as an error of the core.
#[derive(Debug)]
pub(crate) struct Raised {
    number: u64,
    text: String,
}

impl Raised {
    /// An error that the program's code has raised, and an old one, which is garbage.
    pub(crate) fn new(exception: Py<PyAny>, text: String) -> (Self, Option<Py<PyAny>>) {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let oldest = LATEST.with(|latest| {
            let oldest = if latest.len() == KEPT { latest.pop_front() } else { None };
            latest.push_back((number, exception));
            oldest
        });
        (Self { number, text }, oldest.map(|(_, oldest)| oldest))
    }

    /// An error without an exception.
    pub(crate) fn of_text(text: &str) -> Self {
        Self { number: u64::MAX, text: text.to_owned() }
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

/// The exception that is behind an error.
pub(crate) fn cause(py: Python<'_>, error: &locktender::Error) -> Option<Py<PyAny>> {
    let raised = std::error::Error::source(error)?.downcast_ref::<Raised>()?;
    LATEST.find(py, |latest| latest.iter().find(|(number, _)| *number == raised.number).map(|(_, exception)| exception))
}
