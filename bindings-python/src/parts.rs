//! What a client was made of: it pickles as that, because connections can't move to another process.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::client::refuse_server;
use crate::own;
use crate::scripted::ScriptedServer;

/// The arguments of a client, as they were given.
pub(crate) struct Parts {
    servers: Option<Py<PyAny>>,
    options: Option<Py<PyDict>>,
}

impl Parts {
    /// Keeps the arguments. A list of servers may be an iterator, so it is read here, once.
    pub(crate) fn new(py: Python<'_>, servers: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let servers = servers.map(|servers| {
            if servers.is_instance_of::<PyString>() || servers.is_instance_of::<ScriptedServer>() {
                return Ok(servers.clone().unbind());
            }
            // It can be iterated as a mapping is, of which nothing comes.
            if own::call(py, "_redis_py", "instead_of", (servers,))?.is_truthy()? {
                return Err(refuse_server(servers));
            }
            let listed = servers.try_iter().map_err(|_| refuse_server(servers))?.collect::<PyResult<Vec<_>>>()?;
            Ok::<_, PyErr>(PyTuple::new(py, listed)?.into_any().unbind())
        });
        let options = options.map(|options| options.copy().map(Bound::unbind)).transpose()?;
        Ok(Self { servers: servers.transpose()?, options })
    }

    pub(crate) fn servers<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.servers.as_ref().map(|servers| servers.bind(py))
    }

    /// What makes the client again, as `__reduce__` says it.
    pub(crate) fn reduced(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let options = self.options.as_ref().map_or_else(|| PyDict::new(py), |options| options.bind(py).clone());
        let reduced = own::call(py, "_pickle", "reduced_client", (self.servers(py), options))?;
        reduced.extract()
    }

    /// For the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.servers)?;
        visit.call(&self.options)
    }
}
