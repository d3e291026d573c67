//! `ScriptedServer`: a server for users' own tests, which answers by a script.

use std::sync::Arc;

use locktender::testing as scripted;
use pyo3::prelude::*;

use crate::arguments::{seconds, text};
use crate::errors::raised;
use crate::values::value;

/// A test double: a lock server whose answers a script prescribes; give it to :class:`Client` in place of a URL.
///
/// A script has one step a line, ``operation: step``, for the next operation of that kind (``acquire``, ``extend``, ``release``,
/// ``inspect``, ``any``, ...), or ``always operation: step`` for all that come after. Where there is no step it behaves. Steps:
/// ``real``, ``granted [fence=7]``, ``busy [owner=x] [ttl=500]``, ``gone``, ``conflict type=list``, ``fail refused`` (or another kind),
/// ``silence``; all but the last may have a ``delay=100``. Times in a script are milliseconds.
///
///     server = ScriptedServer('''
///         acquire: busy owner=somebody ttl=500
///         acquire: fail denied
///         always extend: gone
///     ''')
#[pyclass(module = "locktender.testing", frozen)]
pub(crate) struct ScriptedServer(Arc<scripted::ScriptedServer>);

impl ScriptedServer {
    pub(crate) fn core(&self) -> Arc<scripted::ScriptedServer> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl ScriptedServer {
    #[new]
    #[pyo3(signature = (script=None, *, name=None, response_timeout=None))]
    fn new(
        py: Python<'_>,
        script: Option<&Bound<'_, PyAny>>,
        name: Option<&Bound<'_, PyAny>>,
        response_timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let name = name.map(|name| text("name", name)).transpose()?;
        let server = Self(scripted::ScriptedServer::new(name.as_deref().unwrap_or("test")));
        if let Some(timeout) = response_timeout {
            server.0.set_response_timeout(seconds("response_timeout", timeout)?);
        }
        script.map_or(Ok(()), |script| server.play(py, script))?;
        Ok(server)
    }

    /// Adds more steps. Raises :exc:`InvalidArgumentError` for what it can't read; the lines before are in effect.
    ///
    ///     server.play("always release: fail timeout")
    fn play(&self, py: Python<'_>, script: &Bound<'_, PyAny>) -> PyResult<()> {
        raised(py, self.0.play(&text("script", script)?))
    }

    /// Everything asked so far, in order.
    #[getter]
    fn seen(&self) -> Vec<Seen> {
        self.0.seen().into_iter().map(|seen| Seen { op: seen.op, lock: seen.lock, owner: seen.owner }).collect()
    }

    /// How many steps are not used yet.
    #[getter]
    fn unplayed(&self) -> usize {
        self.0.unplayed()
    }

    fn __repr__(&self) -> String {
        format!("<locktender.testing.ScriptedServer {:?}>", self.0.address())
    }
}

value! {
    /// One operation a scripted server was asked for.
    #[pyclass(module = "locktender.testing", frozen, get_all)]
    #[derive(PartialEq)]
    pub(crate) struct Seen {
        /// Its kind.
        op: &'static str,
        /// The lock's name.
        lock: Option<String>,
        /// On whose behalf.
        owner: Option<String>,
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }
}
