//! `Clock`: the clock of every lock in this process, which a user's test moves.

use locktender::testing;
use pyo3::prelude::*;

use crate::arguments::seconds;
use crate::errors::raised;
use crate::waiting;

/// A manual clock for every lock in this process: one test has it, and moves time forward for ``memory://`` and scripted servers.
///
/// Time also passes by itself, and is never moved back. One test has the clock at a time: making a second one before the first is
/// closed raises :exc:`InvalidArgumentError`.
///
///     with Clock() as clock, client.lock("report") as hold:
///         clock.advance(3600)
///         assert hold.is_valid()  # its ttl is 10 s, and it was renewed for an hour
#[pyclass(module = "locktender.testing", frozen)]
pub(crate) struct Clock(testing::Clock);

#[pymethods]
impl Clock {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        raised(py, testing::Clock::try_take()).map(Self)
    }

    /// Moves the clock forward. Everything that is due until then has happened when this returns, each at its time: renewals, retries,
    /// the end of waits and of holds, late answers of scripted servers. What your own threads, tasks and callbacks do about it they
    /// do in their own time. It blocks for a moment: ``await asyncio.to_thread(clock.advance, 3600)`` lets tasks run meanwhile.
    ///
    /// Raises :exc:`InvalidArgumentError` while a lock is held or waited for on a real server, which has a clock of its own.
    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        waiting::block(py, self.0.advance(self::seconds("seconds", seconds)?))
    }

    /// Releases the clock: another test may take it. Time continues from where it is.
    ///
    ///     clock.close()  # or: with Clock() as clock: ...
    fn close(&self) {
        self.0.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyAny>) {
        self.0.close();
    }
}
