//! Parts: the arguments of a client. It pickles as these, because connections can't move to another process.

use locktender::ClientBuilder;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arguments::{refuse, text};
use crate::own;
use crate::scripted::ScriptedServer;
use crate::visit::Visit;

/// The arguments of a client, as they were given.
pub(crate) struct Parts {
    servers: Option<Py<PyAny>>,
    options: Option<Py<PyDict>>,
}

impl Parts {
    /// Keeps the arguments. A list of servers may be an iterator, so it is read here, once.
    pub(crate) fn new(py: Python<'_>, servers: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let _visit = Visit::begin(py)?;
        let servers = servers.map(|servers| {
            if is_one(servers) {
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

    /// One server or several of them: without any it is what the environment names.
    pub(crate) fn add_servers(&self, py: Python<'_>, builder: ClientBuilder) -> PyResult<ClientBuilder> {
        let Some(servers) = self.servers(py) else { return Ok(builder) };
        if is_one(servers) {
            return add_server(builder, servers);
        }
        let mut listed = servers.try_iter()?.peekable();
        if listed.peek().is_none() {
            return Err(refuse("url", servers, "an empty list names no server"));
        }
        listed.try_fold(builder, |builder, server| add_server(builder, &server?))
    }

    fn servers<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
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

fn is_one(servers: &Bound<'_, PyAny>) -> bool {
    servers.is_instance_of::<PyString>() || servers.is_instance_of::<ScriptedServer>()
}

/// A URL, a text with several, or a scripted server.
fn add_server(builder: ClientBuilder, server: &Bound<'_, PyAny>) -> PyResult<ClientBuilder> {
    if let Ok(scripted) = server.cast::<ScriptedServer>() {
        return Ok(builder.server(scripted.get().core()));
    }
    let url = server.cast::<PyString>().map_err(|_| refuse_server(server))?;
    Ok(builder.urls(text("url", url)?))
}

/// Shows the type only: the value may have a password in it.
fn refuse_server(server: &Bound<'_, PyAny>) -> PyErr {
    let why = own::call(server.py(), "_redis_py", "instead_of", (server,)).and_then(|why| why.extract::<Option<String>>());
    let why = why.map(|why| why.unwrap_or_else(|| "must be a URL, a scripted server, or a list of them".to_owned()));
    why.map_or_else(|failed| failed, |why| refuse("url", server.get_type().as_any(), why))
}
