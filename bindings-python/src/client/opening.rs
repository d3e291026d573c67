//! Opening: how a client is made of what Python gives, and what the binding asks of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Client;
use crate::arguments::{limit, text};
use crate::clients;
use crate::credentials::Provider;
use crate::errors::raised;
use crate::events::{self, ClientSink};
use crate::garbage::Farewell;
use crate::guarded::{Guarded, Refer};
use crate::hold::Hold;
use crate::hold_inner::Origin;
use crate::options::{ClientChoice, LockChoice, OnLost};
use crate::parts::Parts;
use crate::{context, credentials, frames, own, waiting};

impl Client {
    /// The client of `servers`, which the exit of the interpreter closes.
    pub(crate) fn made(
        py: Python<'_>,
        servers: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        let client = Bound::new(py, Self::open(py, servers, options)?)?;
        Self::enrol(&client)?;
        Ok(client.unbind())
    }

    /// A client of the server of a redis-py client. What the options say counts more than that client's own options.
    pub(super) fn like(py: Python<'_>, redis: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Self>> {
        let settings = own::call(py, "_redis_py", "settings", (redis,))?;
        let (url, settings): (Bound<'_, PyAny>, Bound<'_, PyDict>) = settings.extract()?;
        options.map_or(Ok(()), |options| settings.update(options.as_mapping()))?;
        Self::made(py, Some(&url), Some(&settings))
    }

    /// Its servers without credentials, its prefix, and whether it is closed.
    pub(super) fn shown(&self) -> String {
        let (servers, prefix) = (self.core.addresses(), self.core.prefix());
        let servers = if servers.is_empty() { "no server".to_owned() } else { servers.join(",") };
        let prefix = if prefix.is_empty() { String::new() } else { format!(" prefix={prefix:?}") };
        let closed = if self.core.is_closed() { " (closed)" } else { "" };
        format!("<locktender.Client {servers}{prefix}{closed}>")
    }

    /// Asks for the locks that are held.
    pub(super) fn listing(
        &self,
        pattern: Option<&Bound<'_, PyAny>>,
        most: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<locktender::Call<Vec<locktender::LockInfo>>> {
        let pattern = pattern.map_or_else(|| Ok("*".to_owned()), |pattern| text("pattern", pattern))?;
        Ok(self.core.locks(pattern, limit("limit", most)?))
    }

    /// Asks who has held which lock.
    pub(super) fn grants(
        &self,
        name: Option<&Bound<'_, PyAny>>,
        most: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<locktender::Call<Vec<locktender::Grant>>> {
        let name = name.filter(|name| !name.is_none()).map(|name| text("name", name)).transpose()?;
        Ok(self.core.history(name.as_deref(), limit("limit", most)?))
    }

    /// A client of `servers`; without any of what the environment names.
    pub(super) fn open(
        py: Python<'_>,
        servers: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let choice = ClientChoice::parse(py, options)?;
        let parts = Parts::new(py, servers, options)?;
        let number = clients::next_number();
        let has_callback = Arc::new(AtomicBool::new(choice.on_event.is_some()));
        let dropped = Arc::<AtomicU64>::default();
        let app = choice.options.app_name().unwrap_or_default();
        let sink = ClientSink { number, app, has_callback: Arc::clone(&has_callback), dropped: Arc::clone(&dropped) };
        let builder = parts.add_servers(py, locktender::Client::builder())?;
        let builder = builder.options(choice.options);
        let builder = if choice.credentials.is_some() { builder.credentials(Provider { client: number }) } else { builder };
        let core = raised(py, builder.sink(Arc::new(sink)).dropped_events(dropped).build())?;
        let credentials = Arc::new(Guarded::new(choice.credentials));
        let (on_event, parts) = (Arc::new(Guarded::new(choice.on_event)), Guarded::new(Some(Arc::new(parts))));
        let suspicion = choice.lock.suspicion();
        let on_lost = Guarded::new(choice.lock.on_lost);
        Ok(Self {
            core,
            number,
            name: choice.name,
            on_lost,
            suspicion,
            on_event,
            credentials,
            has_callback,
            parts,
            farewell: Farewell::default(),
        })
    }

    /// Has the exit of the interpreter close the client, and makes its name known.
    pub(super) fn enrol(client: &Bound<'_, Self>) -> PyResult<()> {
        let (py, own_client) = (client.py(), client.get());
        if let Some(text) = &own_client.suspicion {
            own::call(py, "_warnings", "warn", (client, py.None(), text))?;
        }
        if let Some(name) = &own_client.name {
            own::call(py, "_pickle", "make_known", (name, client))?;
        }
        let callables = [&own_client.on_event, &own_client.credentials].map(Arc::clone);
        let [on_event, credentials] = callables;
        let is_provided = credentials.with(|callable| callable.is_some());
        clients::enrol(own_client.number, own_client.core.clone(), on_event, credentials);
        if is_provided { credentials::serve(py) } else { Ok(()) }
    }

    pub(crate) fn core(&self) -> &locktender::Client {
        &self.core
    }

    /// Where a hold of this client comes from; `chosen` is what its lock says that a loss does.
    pub(crate) fn origin(slf: Py<Self>, py: Python<'_>, chosen: Option<&OnLost>) -> Origin {
        let on_lost = chosen.map_or_else(|| slf.get().on_lost.get(py), |chosen| Some(chosen.refer(py)));
        Origin { client: slf.into_any(), on_lost }
    }

    /// To be called before an acquire: a present listener gets its events.
    pub(crate) fn listen(&self, py: Python<'_>) -> PyResult<()> {
        events::refresh(py, self.has_callback.load(Ordering::Relaxed))
    }

    /// The hold of a thread that takes a lock over.
    pub(super) fn adopted(
        slf: &Bound<'_, Self>,
        ticket: &Bound<'_, PyAny>,
        or_acquire: Option<bool>,
        choice: &LockChoice,
    ) -> PyResult<Py<Hold>> {
        let py = slf.py();
        let lock = Self::adoption(slf, ticket, or_acquire, choice)?;
        let held = waiting::block_unless_looping(py, lock.name(), lock.acquire())?;
        Hold::new(py, held, Self::origin(slf.clone().unbind(), py, choice.on_lost.as_ref()))
    }

    pub(super) fn adoption(
        slf: &Bound<'_, Self>,
        ticket: &Bound<'_, PyAny>,
        or_acquire: Option<bool>,
        choice: &LockChoice,
    ) -> PyResult<locktender::Lock> {
        let (py, client) = (slf.py(), slf.get());
        client.listen(py)?;
        let lock = raised(py, client.core.adoption(&text("ticket", ticket)?))?;
        let lock = if let Some(or_acquire) = or_acquire { lock.or_acquire(or_acquire) } else { lock };
        Ok(lock.settings(choice.settings.clone()).caller_in(context::current(py)?, |body| frames::runs(py, body)))
    }
}

/// The number that comes with the client's events.
#[pyfunction(name = "_number_of")]
#[pyo3(signature = (client, /))]
pub(crate) fn number_of(client: &Bound<'_, Client>) -> u64 {
    client.get().number
}

impl Drop for Client {
    fn drop(&mut self) {
        self.farewell.begin();
        clients::strike(self.number);
    }
}
