//! `Observer`: who leads now, and each change; for `for` and for `async for`.

use std::time::SystemTime;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::errors::seconds_left;
use crate::operation::Operation;
use crate::values::value;
use crate::waiting;

value! {
    /// The leader that an observer saw.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct Leader {
        /// The owner value. A person can read in it which program leads.
        owner: String,
        /// The term: its fence.
        term: u64,
        /// When the leader asked for its term, by its own clock (UTC).
        since: Option<SystemTime>,
        /// How many seconds its term remained on the servers at the time of the observation, if nothing renews it; ``math.inf`` if its key
        /// has no expiry.
        remaining: f64,
    }
}

value! {
    /// What an observer saw.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct Observation {
        /// The leader; ``None`` if there is none, or if that is unknown.
        leader: Option<Py<Leader>>,
        /// Whether the servers didn't show who leads: no majority of them agrees, or too few can be reached. The last leader may still
        /// lead.
        unknown: bool,
    }
}

impl Observation {
    fn new(py: Python<'_>, seen: locktender::Observation) -> PyResult<Self> {
        let leader = |leader: locktender::Leader| {
            let locktender::Leader { owner, term, since, remaining, .. } = leader;
            Py::new(py, Leader { owner, term, since, remaining: seconds_left(remaining) })
        };
        Ok(Self { leader: seen.leader.map(leader).transpose()?, unknown: seen.unknown })
    }
}

/// An observer of an election: it gives the leader now, and then each change that it sees. Made by :meth:`Election.observe`; an
/// iterator for ``for`` and for ``async for``, which never ends by itself.
///
///     for observation in client.election("scheduler").observe():
///         print(observation.leader)
///         break
///
/// A leader announces on the servers' channels that it leads, and that it has resigned. An observer polls the servers then, when the
/// leader's term would end there, and once a second. It polls only while it is asked for the next observation, and misses what comes and
/// goes between two polls. Terms never go back.
///
/// An observer decides nothing: what it gave may be over. A program that acts for the leader sends its ``term`` along, and the resource
/// refuses a smaller one.
///
/// Raises :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`. Servers that can't be reached
/// are no error, but ``observation.unknown``.
#[pyclass(module = "locktender", frozen)]
pub(crate) struct Observer {
    /// Only kept alive.
    client: Py<PyAny>,
    core: locktender::Observer,
}

impl Observer {
    pub(crate) fn new(client: Py<PyAny>, core: locktender::Observer) -> Self {
        Self { client, core }
    }
}

#[pymethods]
impl Observer {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Observation> {
        Observation::new(py, waiting::block(py, self.core.observe())?)
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: &Bound<'_, Self>) -> Operation {
        let convert = |observer: &Bound<'_, Self>, seen| Observation::new(observer.py(), seen);
        Operation::of(slf, "__anext__", |observer| Ok(observer.get().core.observe()), convert)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}
