//! `Election`: a name and options; a campaign gives a `Leadership`, or an `AsyncLeadership`.

use locktender::host::Place;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::client::Client;
use crate::errors::raised;
use crate::garbage::Farewell;
use crate::guarded::{Guarded, Refer};
use crate::leadership::{AsyncLeadership, Leadership};
use crate::lock::checked;
use crate::observer::Observer;
use crate::operation::Operation;
use crate::options::LockChoice;
use crate::running::Running;
use crate::{context, default, frames, own, waiting};

/// An election: any number of candidates, of which one leads. Made by :meth:`Client.election` or :func:`election`; does no I/O
/// by itself.
///
/// It is the lock of the same name, with verbs of its own. A leader is renewed in the background. If it resigns, the next candidate
/// leads at once; if it dies, the next one leads when its ``ttl`` has passed. Two leaders are never valid at the same time, and each
/// term is larger than all earlier ones; docs/guarantees.md says under which assumptions. It works with one server and with a quorum.
///
///     election = client.election("scheduler")
///     election.lead(schedule)                       # schedule(leadership), again and again, until election.stop()
///     await election.lead_async(schedule_async)     # of an `async def`, until the task is cancelled
///     with election.campaign() as leadership: ...   # one term by hand
///
/// It pickles as a :class:`Lock` does.
#[pyclass(module = "locktender", frozen, weakref)]
pub(crate) struct Election {
    /// `None`: the default client, whichever that is at the first use.
    client: Option<Py<Client>>,
    name: String,
    choice: LockChoice,
    /// As they were given: what it pickles with.
    options: Option<Py<PyDict>>,
    made: Guarded<Option<Made>>,
    farewell: Farewell,
}

say_farewell!(Election);

/// The core's election, once it is known of which client. One for all calls: `stop` ends what another call began.
struct Made {
    client: Py<Client>,
    core: locktender::Election,
}

impl Refer for Made {
    fn refer(&self, py: Python<'_>) -> Self {
        Self { client: self.client.clone_ref(py), core: self.core.clone() }
    }
}

impl Election {
    pub(crate) fn new(
        client: Option<Py<Client>>,
        name: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = name.py();
        let choice = LockChoice::parse(py, options, Place::Election)?;
        let options = options.map(|options| options.clone().unbind());
        let name = checked(name, client.as_ref().map(|client| client.get().core()), &choice)?;
        if let Some(suspicion) = choice.suspicion() {
            own::call(py, "_warnings", "warn", (&client, &name, suspicion))?;
        }
        let election = Self { client, name, choice, options, made: Guarded::default(), farewell: Farewell::default() };
        if election.client.is_some() {
            election.made(py)?;
        }
        Ok(election)
    }

    fn made(&self, py: Python<'_>) -> PyResult<Made> {
        if let Some(made) = self.made.find(py, Option::as_ref) {
            return Ok(made);
        }
        let client = self.client.as_ref().map_or_else(|| default::client(py), |client| Ok(client.clone_ref(py)))?;
        let core = client.get().core().election(&self.name).settings(self.choice.settings.clone());
        raised(py, core.validate())?;
        let made = Made { client, core };
        let ours = made.refer(py);
        // Another thread may have been here first: then that one's counts.
        drop(self.made.with(|known| if known.is_none() { known.replace(ours) } else { Some(ours) }));
        Ok(self.made.find(py, Option::as_ref).unwrap_or(made))
    }

    /// The core's election, for this caller.
    fn core(&self, py: Python<'_>) -> PyResult<locktender::Election> {
        let Made { client, core } = self.made(py)?;
        client.get().listen(py)?;
        Ok(core.caller_in(context::current(py)?, |body| frames::runs(py, body)))
    }

    /// The handle for a thread.
    fn leadership(&self, py: Python<'_>, leadership: locktender::Leadership) -> PyResult<Py<Leadership>> {
        let Made { client, .. } = self.made(py)?;
        Leadership::new(py, leadership, Client::origin(client, py, self.choice.on_lost.as_ref()))
    }

    /// The handle for a task.
    fn async_leadership(&self, py: Python<'_>, leadership: locktender::Leadership) -> PyResult<Py<AsyncLeadership>> {
        let Made { client, .. } = self.made(py)?;
        AsyncLeadership::new(py, leadership, Client::origin(client, py, self.choice.on_lost.as_ref()))
    }
}

#[pymethods]
impl Election {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Campaigns: waits at most ``wait`` while another one leads, and then leads.
    ///
    ///     with client.election("scheduler").campaign() as leadership:
    ///         print("leads in term", leadership.term)
    ///
    /// Raises what :meth:`Lock.acquire` raises.
    fn campaign(&self, py: Python<'_>) -> PyResult<Py<Leadership>> {
        let leadership = waiting::block_unless_looping(py, &self.name, self.core(py)?.campaign())?;
        self.leadership(py, leadership)
    }

    /// :meth:`campaign`, under asyncio. Cancelling the task gives the campaign up.
    fn campaign_async(slf: &Bound<'_, Self>) -> Operation {
        let call = |election: &Bound<'_, Self>| Ok(election.get().core(election.py())?.campaign());
        let convert = |election: &Bound<'_, Self>, leadership| election.get().async_leadership(election.py(), leadership);
        Operation::of(slf, "campaign_async", call, convert).acquiring()
    }

    /// Tries once to lead: ``None`` if another one leads. Raises what :meth:`Lock.try_acquire` raises.
    ///
    ///     if leadership := client.election("scheduler").try_campaign():
    ///         with leadership: ...
    fn try_campaign(&self, py: Python<'_>) -> PyResult<Option<Py<Leadership>>> {
        let leadership = waiting::block_once(py, self.core(py)?.try_campaign())?;
        leadership.map(|leadership| self.leadership(py, leadership)).transpose()
    }

    /// :meth:`try_campaign`, under asyncio.
    fn try_campaign_async(slf: &Bound<'_, Self>) -> Operation {
        let call = |election: &Bound<'_, Self>| Ok(election.get().core(election.py())?.try_campaign());
        let convert = |election: &Bound<'_, Self>, leadership: Option<_>| {
            leadership.map(|leadership| election.get().async_leadership(election.py(), leadership)).transpose()
        };
        Operation::of(slf, "try_campaign_async", call, convert).acquiring()
    }

    /// :meth:`lead`, under asyncio: ``work`` is an ``async def``. A loss of the term cancels it, unless ``on_lost`` says otherwise.
    /// Cancelling the task cancels ``work``, and resigns when it has ended.
    #[pyo3(signature = (work, /, *args, **kwargs))]
    fn lead_async(
        slf: &Bound<'_, Self>,
        work: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        Ok(own::call(slf.py(), "_election", "lead_async", (slf, work, args, kwargs))?.unbind())
    }

    /// Ends :meth:`lead` and :meth:`lead_async`, from any thread, and for good: a call that begins later returns at once.
    ///
    ///     election = client.election("scheduler")
    ///     election.stop()
    ///
    /// A campaign is given up. Work that runs continues; ``leadership.stopping`` says that it should return. The call returns after it.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let Made { core, .. } = self.made(py)?;
        py.detach(|| core.stop());
        Ok(())
    }

    /// Observes who leads: the leader now, and then each change. No I/O before the first step.
    ///
    ///     for observation in client.election("scheduler").observe():
    ///         if observation.leader:
    ///             print("led in term", observation.leader.term)
    ///         break
    ///
    /// ``async for`` takes it, too. An observer decides nothing: a program that acts for the leader sends its ``term`` along.
    fn observe(&self, py: Python<'_>) -> PyResult<Observer> {
        let Made { client, core } = self.made(py)?;
        Ok(Observer::new(client.into_any(), core.observe()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(&self.options)?;
        self.made.traverse(|made| visit.call(made.as_ref().map(|made| &made.client)))?;
        self.choice.on_lost.as_ref().map_or(Ok(()), |on_lost| on_lost.traverse(&visit))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        own::call(py, "_pickle", "reduced", (&self.client, "election", &self.name, &self.options))?.extract()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("<locktender.Election {:?}>", self.name)
    }
}

/// One call of `lead`. As a context manager it is one term after the other. It is native for the reason of `around`.
#[pyclass(module = "locktender._native", name = "_Leading", frozen)]
pub(crate) struct Leading {
    election: Py<Election>,
    // Before the core: its end lets another call lead.
    term: Running,
    core: Guarded<Option<locktender::host::Leading>>,
}

impl Leading {
    fn next(&self, py: Python<'_>) -> PyResult<locktender::Call<Option<locktender::Leadership>>> {
        self.election.get().made(py)?.client.get().listen(py)?;
        let ended = || pyo3::exceptions::PyRuntimeError::new_err("this call of lead() has ended");
        self.core.with(|core| core.as_ref().map(locktender::host::Leading::next)).ok_or_else(ended)
    }
}

#[pymethods]
impl Leading {
    #[new]
    fn new(py: Python<'_>, election: Py<Election>) -> PyResult<Self> {
        let core = raised(py, election.get().core(py)?.leading())?;
        Ok(Self { election, term: Running::default(), core: Guarded::new(Some(core)) })
    }

    /// The next term; `None` once the election is stopped.
    fn __enter__(&self, py: Python<'_>) -> PyResult<Option<Py<Leadership>>> {
        let election = self.election.get();
        loop {
            let call = self.next(py)?;
            let Some(leadership) = waiting::block_unless_looping(py, &election.name, call)? else { return Ok(None) };
            let leadership = election.leadership(py, leadership)?;
            let held = leadership.bind(py).as_super().as_super();
            match self.term.begin(held) {
                Ok(()) => return Ok(Some(leadership)),
                // This thread stood still for longer than the ttl.
                Err(error) if held.get().is_loss(error.value(py).as_any())? => (),
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the term, and swallows its loss.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Py<PyAny>,
        error: Option<Bound<'_, PyAny>>,
        _traceback: Py<PyAny>,
    ) -> PyResult<bool> {
        let Some(term) = self.term.take() else { return Ok(false) };
        let by_loss = error.as_ref().map_or(Ok(false), |error| term.get().is_loss(error))?;
        match term.get().leave(py, error) {
            Err(left) if !term.get().is_loss(left.value(py).as_any())? => Err(left),
            _ => Ok(by_loss),
        }
    }

    /// `__enter__`, under asyncio.
    fn _next_async(slf: &Bound<'_, Self>) -> Operation {
        let convert = |leading: &Bound<'_, Self>, leadership: Option<_>| {
            let election = leading.get().election.get();
            leadership.map(|leadership| election.async_leadership(leading.py(), leadership)).transpose()
        };
        Operation::of(slf, "lead_async", |leading| leading.get().next(leading.py()), convert).acquiring()
    }

    /// Lets another call lead.
    fn _end(&self, py: Python<'_>) {
        let core = self.core.take();
        py.detach(|| drop(core));
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.election)?;
        self.term.traverse(&visit)
    }
}
