//! What a call doesn't take: positional arguments and options, each refused with what to write instead.

use locktender::host::Place;
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{refuse_misplaced, text};
use crate::options::unknown;

/// Nothing behind the name of a lock or a job: options are given by their names.
pub(crate) struct ByName;

impl<'a, 'py> FromPyObject<'a, 'py> for ByName {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        first(given).map_or(Ok(Self), |first| {
            Err(refuse_misplaced("options", &first, "are given by their names, such as ttl=10, wait=5"))
        })
    }
}

/// Nothing behind a client's servers.
pub(crate) struct OneServer;

impl<'a, 'py> FromPyObject<'a, 'py> for OneServer {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        const WHY: &str = "a server is one URL, such as redis://user:password@host:6379/0, several are a list, and options are given by \
                           their names";
        first(given).map_or(Ok(Self), |first| Err(refuse_misplaced("servers", &first, WHY)))
    }
}

/// No argument of an acquire.
pub(crate) struct NoArguments;

impl<'a, 'py> FromPyObject<'a, 'py> for NoArguments {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        const WHY: &str = "an acquire takes no arguments: options are given to lock(), by their names: lock(name, wait=5)";
        first(given).map_or(Ok(Self), |first| Err(refuse_misplaced("acquire", &first, WHY)))
    }
}

/// No option of an acquire.
pub(crate) struct NoOptions;

impl<'a, 'py> FromPyObject<'a, 'py> for NoOptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.cast::<PyDict>()?.iter().next() {
            Some((option, value)) => Err(unknown(&text("option", &option)?, &value, Place::Acquire)),
            None => Ok(Self),
        }
    }
}

fn first<'py>(given: Borrowed<'_, 'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    given.cast::<PyTuple>().ok().and_then(|given| given.iter().next())
}
