//! `Job`: a name and options; what it begins is an `Attempt`, or an `AsyncAttempt`.

use locktender::Begun;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::text;
use crate::attempt::{AsyncAttempt, Attempt};
use crate::client::Client;
use crate::garbage::Farewell;
use crate::guarded::Refer;
use crate::job_values::{JobOutcome, JobStatus};
use crate::lock::checked;
use crate::operation::Operation;
use crate::options::JobChoice;
use crate::running::Running;
use crate::visit::Visit;
use crate::{context, default, frames, own, waiting};

/// A job: work that must be done once in a cluster, by one of any number of workers. Made by :meth:`Client.job` or :func:`job`; does
/// no I/O by itself.
///
/// Any number of workers may ask for it, at any time. One of them runs it; the others wait as backups. If the work fails, or its
/// worker dies, the next one runs it, until it is done or its attempts are used up. The server counts the attempts, and keeps the
/// result or the last error. While an attempt runs, the lock with the job's name is held.
///
/// The work itself runs at least once: a worker may die after its effect, and before its end is recorded. So an effect that must not come
/// twice is stored under the job's name, in the transaction that makes it. Against a worker that is late, send ``attempt.fence`` with
/// each write, and let the resource refuse a smaller one.
///
///     outcome = client.job("mail:2026-11-21", max_attempts=5).run(send)       # send(attempt) returns the result
///     outcome = await client.job("mail:2026-11-21").run_async(send_async)     # of an `async def`
///     @client.job("mail:{day}")
///     def mail(attempt, day): ...                                             # mail("2026-11-21") returns the outcome
///
/// It pickles as a :class:`Lock` does. A job needs one server: on a quorum every operation raises :exc:`InvalidArgumentError`.
#[pyclass(module = "locktender", frozen, weakref)]
pub(crate) struct Job {
    /// `None`: the default client, whichever that is when it is needed.
    client: Option<Py<Client>>,
    name: String,
    choice: JobChoice,
    /// The core's job, once it is known of which client.
    core: PyOnceLock<locktender::Job>,
    /// As they were given: what it pickles with.
    options: Option<Py<PyDict>>,
    farewell: Farewell,
}

say_farewell!(Job);

impl Job {
    pub(crate) fn new(
        client: Option<Py<Client>>,
        name: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
        is_cron_job: bool,
    ) -> PyResult<Self> {
        let py = name.py();
        let choice = JobChoice::parse(py, options, is_cron_job)?;
        let options = options.map(|options| options.clone().unbind());
        let name = checked(name, client.as_ref().map(|client| client.get().core()), &choice.lock)?;
        if let Some(suspicion) = choice.lock.suspicion() {
            own::call(py, "_warnings", "warn", (&client, &name, suspicion))?;
        }
        Ok(Self { client, name, choice, core: PyOnceLock::new(), options, farewell: Farewell::default() })
    }

    fn client(&self, py: Python<'_>) -> PyResult<Py<Client>> {
        self.client.as_ref().map_or_else(|| default::client(py), |client| Ok(client.clone_ref(py)))
    }

    /// The core's job, for this caller.
    fn core(&self, client: &Bound<'_, Client>) -> PyResult<locktender::Job> {
        let py = client.py();
        let _visit = Visit::begin(py)?;
        let client = client.get();
        client.listen(py)?;
        let job = match self.core.get(py) {
            Some(job) => job.clone(),
            None => {
                let job = self.choice.job(client.core(), &self.name);
                // The default client may be another one tomorrow.
                if self.client.is_some() {
                    let _ = self.core.set(py, job.clone());
                }
                job
            }
        };
        Ok(job.caller_in(context::current(py)?, |body| frames::runs(py, body)))
    }

    /// What began, for a thread: an attempt, or the outcome of a job that is done.
    fn begun(&self, py: Python<'_>) -> PyResult<Result<Py<Attempt>, JobOutcome>> {
        let client = self.client(py)?;
        let job = self.core(client.bind(py))?;
        match locktender::host::begun(waiting::block_unless_looping(py, job.name(), job.begin())?) {
            Ok(attempt) => {
                let origin = Client::origin(client, py, self.choice.lock.on_lost.as_ref());
                Attempt::new(py, attempt, origin).map(Ok)
            }
            Err(outcome) => JobOutcome::new(py, outcome).map(Err),
        }
    }

    /// An operation of this job: `call` starts it when it is awaited, and `convert` makes what Python gets of what the core gave.
    fn operation<T: Send + 'static, R: for<'py> IntoPyObject<'py> + 'static>(
        slf: &Bound<'_, Self>,
        name: &'static str,
        call: fn(&locktender::Job) -> locktender::Call<T>,
        convert: fn(Python<'_>, &Self, Py<Client>, T) -> PyResult<R>,
    ) -> PyResult<Operation> {
        let client = slf.get().client(slf.py())?;
        let used = client.clone_ref(slf.py());
        let call = move |job: &Bound<'_, Self>| Ok(call(&job.get().core(used.bind(job.py()))?));
        Ok(Operation::of(slf, name, call, move |job, value| convert(job.py(), job.get(), client, value)))
    }

    /// What began, for a task.
    fn begun_async(&self, py: Python<'_>, client: Py<Client>, begun: Begun) -> PyResult<Py<PyAny>> {
        match locktender::host::begun(begun) {
            Ok(attempt) => {
                let origin = Client::origin(client, py, self.choice.lock.on_lost.as_ref());
                Ok(AsyncAttempt::new(py, attempt, origin)?.into_any())
            }
            Err(outcome) => Ok(Py::new(py, JobOutcome::new(py, outcome)?)?.into_any()),
        }
    }
}

#[pymethods]
impl Job {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Begins an attempt, as soon as no other worker runs the job and its ``retry_delay`` has passed; waits for that at most
    /// ``wait``. ``None`` if the job is done, or nothing is to run for its scheduled time. :meth:`run` does all of that around a
    /// function.
    ///
    ///     if attempt := client.job("mail:7").begin():
    ///         with attempt:
    ///             attempt.complete({"sent": 3})
    ///
    /// Raises :exc:`JobDeadError`, and what :meth:`Lock.acquire` raises.
    fn begin(&self, py: Python<'_>) -> PyResult<Option<Py<Attempt>>> {
        self.begun(py).map(Result::ok)
    }

    /// :meth:`begin`, under asyncio. Cancelling the task releases the attempt.
    fn begin_async(slf: &Bound<'_, Self>) -> PyResult<Operation> {
        Self::operation(slf, "begin_async", locktender::Job::begin, |py, job, client, begun| match begun {
            Begun::Attempt(_) => job.begun_async(py, client, begun),
            _ => Ok(py.None()),
        })
        .map(Operation::acquiring)
    }

    /// :meth:`run`, under asyncio: ``work`` is an ``async def``. A loss of the lease cancels it, unless ``on_lost`` says otherwise.
    /// Cancelling the task releases the attempt.
    #[pyo3(signature = (work, /, *args, **kwargs))]
    fn run_async(
        slf: &Bound<'_, Self>,
        work: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        Ok(own::call(slf.py(), "_job", "run_async", (slf, work, args, kwargs))?.unbind())
    }

    /// Inspects the job: its state, its attempts, the worker that runs it, the result or the last error. Changes nothing.
    ///
    ///     if client.job("mail:7").status().state == "dead":
    ///         print("an operator should look")
    ///
    /// Raises :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`.
    fn status(&self, py: Python<'_>) -> PyResult<JobStatus> {
        let client = self.client(py)?;
        let status = waiting::block(py, self.core(client.bind(py))?.status())?;
        JobStatus::new(py, status)
    }

    /// :meth:`status`, under asyncio.
    fn status_async(slf: &Bound<'_, Self>) -> PyResult<Operation> {
        Self::operation(slf, "status_async", locktender::Job::status, |py, _, _, status| JobStatus::new(py, status))
    }

    /// Forgets the job's attempts, its result and its errors, so that it runs again: for an operator, once the cause of the failures is
    /// fixed. Returns whether there was something to forget; while an attempt runs nothing is forgotten.
    ///
    ///     client.job("mail:7").reset()
    ///
    /// Raises what :meth:`status` raises.
    fn reset(&self, py: Python<'_>) -> PyResult<bool> {
        let client = self.client(py)?;
        waiting::block(py, self.core(client.bind(py))?.reset())
    }

    /// :meth:`reset`, under asyncio.
    fn reset_async(slf: &Bound<'_, Self>) -> PyResult<Operation> {
        Self::operation(slf, "reset_async", locktender::Job::reset, |_, _, _, reset| Ok(reset))
    }

    /// The decorator: each call runs the job, with the attempt before the arguments. ``{parameter}`` in the name is filled from the
    /// arguments.
    fn __call__(slf: &Bound<'_, Self>, function: Py<PyAny>) -> PyResult<Py<PyAny>> {
        Ok(own::call(slf.py(), "_job", "decorate", (slf, function))?.unbind())
    }

    /// The same job by another name.
    #[pyo3(signature = (name, template=None))]
    fn _named(&self, py: Python<'_>, name: &Bound<'_, PyAny>, template: Option<&str>) -> PyResult<Self> {
        let client = self.client.as_ref().map(|client| client.clone_ref(py));
        let options = self.options.as_ref().map(|options| options.clone_ref(py));
        let mut choice = self.choice.refer(py);
        choice.lock.count_under(template);
        Ok(Self { client, name: text("name", name)?, choice, core: PyOnceLock::new(), options, farewell: Farewell::default() })
    }

    /// As :meth:`begin_async`; of a job that is done, its outcome.
    fn _begin_async(slf: &Bound<'_, Self>) -> PyResult<Operation> {
        Self::operation(slf, "begin_async", locktender::Job::begin, |py, job, client, begun| job.begun_async(py, client, begun))
            .map(Operation::acquiring)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(&self.options)?;
        self.choice.lock.on_lost.as_ref().map_or(Ok(()), |on_lost| on_lost.traverse(&visit))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let method = if self.choice.is_cron_job { "cron_job" } else { "job" };
        own::call(py, "_pickle", "reduced", (&self.client, method, &self.name, &self.options))?.extract()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("<locktender.Job {:?}>", self.name)
    }
}

/// An attempt around one call of a job's work. It is native for the reason of `around`.
#[pyclass(module = "locktender._native", name = "_AroundAttempt", frozen)]
pub(crate) struct AroundAttempt {
    job: Py<Job>,
    running: Running,
}

#[pymethods]
impl AroundAttempt {
    #[new]
    fn new(job: Py<Job>) -> Self {
        Self { job, running: Running::default() }
    }

    /// The attempt, or the outcome of a job that is done.
    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.job.get().begun(py)? {
            Ok(attempt) => {
                self.running.begin(attempt.bind(py).as_super().as_super())?;
                Ok(attempt.into_any())
            }
            Err(outcome) => Ok(Py::new(py, outcome)?.into_any()),
        }
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, error: Option<Bound<'_, PyAny>>, _traceback: Py<PyAny>) -> PyResult<()> {
        self.running.leave(py, error)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.job)?;
        self.running.traverse(&visit)
    }
}
