//! Options by keyword. What is not given is left to the core, which knows the defaults.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use locktender::host::Language;
use locktender::host::{LockOverrides, Place, check_job, check_schedule, family, instead_of, suspicious};
use locktender::{Client, ClientOptions, Failover, Job, LockOptions, Overlap, Wait};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use crate::arguments::{path, refuse, seconds, switch, text, time};
use crate::errors::raised;
use crate::guarded::Refer;
use crate::own;

/// The options of a lock that were given.
#[derive(Default)]
pub(crate) struct LockChoice {
    pub(crate) settings: LockOverrides,
    /// What a loss does: only this binding knows it, since only here a task can be cancelled.
    pub(crate) on_lost: Option<OnLost>,
}

/// What happens when the lock is lost.
pub(crate) enum OnLost {
    /// The body of an `async with` is cancelled.
    Cancel,
    /// It isn't.
    Flag,
    /// It is cancelled, and a callable of the program's is called.
    Call(Py<PyAny>),
}

impl Refer for OnLost {
    fn refer(&self, py: Python<'_>) -> Self {
        match self {
            Self::Cancel => Self::Cancel,
            Self::Flag => Self::Flag,
            Self::Call(callable) => Self::Call(callable.refer(py)),
        }
    }
}

impl OnLost {
    /// Whether a loss cancels the body of an `async with`; without the option it does.
    pub(crate) fn cancels(chosen: Option<&Self>) -> bool {
        !matches!(chosen, Some(Self::Flag))
    }

    /// For the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Call(callable) => visit.call(callable),
            Self::Cancel | Self::Flag => Ok(()),
        }
    }
}

impl Refer for LockChoice {
    fn refer(&self, py: Python<'_>) -> Self {
        Self { settings: self.settings.clone(), on_lost: self.on_lost.refer(py) }
    }
}

impl LockChoice {
    /// The options in `given`; any other name is refused.
    pub(crate) fn parse(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::parse_for(py, given, Place::Lock)
    }

    /// The same for an election.
    pub(crate) fn parse_for_election(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::parse_for(py, given, Place::Election)
    }

    fn parse_for(py: Python<'_>, given: Option<&Bound<'_, PyDict>>, place: Place) -> PyResult<Self> {
        let mut choice = Self::default();
        for (name, value) in given.into_iter().flatten() {
            let option = text("option", &name)?;
            if !choice.set(&option, &value)? {
                return Err(unknown(&option, &value, place));
            }
        }
        // Says at once what the core would say at the first operation.
        raised(py, choice.settings.over(&LockOptions::default()))?;
        Ok(choice)
    }

    /// What about the options is allowed, and probably a mistake.
    pub(crate) fn suspicion(&self) -> Option<String> {
        self.settings.ttl.and_then(|ttl| suspicious(ttl, Language::Python))
    }

    /// Counts the locks of a decorator's template as one family, unless another is given.
    pub(crate) fn count_under(&mut self, template: Option<&str>) {
        self.settings.family = self.settings.family.take().or_else(|| template.map(|template| Some(family(template))));
    }

    /// Sets one option; false if there is none of that name.
    fn set(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let given = !value.is_none();
        match option {
            "wait" if !given => self.settings.wait = Some(Wait::Forever),
            "max_hold" if !given => self.settings.max_hold = Some(None),
            "ttl" | "renew" | "fair" | "min_hold" | "grace" | "family" | "on_lost" if !given => (),
            "ttl" => self.settings.ttl = Some(seconds(option, value)?),
            "wait" => self.settings.wait = Some(Wait::For(seconds(option, value)?)),
            "renew" => self.settings.renew = Some(switch(option, value)?),
            "max_hold" => self.settings.max_hold = Some(Some(seconds(option, value)?)),
            "fair" => self.settings.fair = Some(switch(option, value)?),
            "min_hold" => self.settings.min_hold = Some(seconds(option, value)?),
            "grace" => self.settings.grace = Some(seconds(option, value)?),
            "family" => self.settings.family = Some(Some(text(option, value)?.into())),
            "on_lost" => self.on_lost = Some(on_lost(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The options of a job that were given.
#[derive(Default)]
pub(crate) struct JobChoice {
    pub(crate) lock: LockChoice,
    /// Whether it runs once per fire time.
    pub(crate) is_once: bool,
    max_attempts: Option<u32>,
    retry_delay: Option<Duration>,
    keep: Option<Duration>,
    at: Option<SystemTime>,
    every: Option<Duration>,
    late: Option<Duration>,
    overlap: Option<Overlap>,
}

impl Refer for JobChoice {
    fn refer(&self, py: Python<'_>) -> Self {
        Self { lock: self.lock.refer(py), ..*self }
    }
}

impl JobChoice {
    /// The options in `given`; any other name is refused.
    pub(crate) fn parse(py: Python<'_>, given: Option<&Bound<'_, PyDict>>, is_once: bool) -> PyResult<Self> {
        let mut choice = Self { is_once, ..Self::default() };
        for (name, value) in given.into_iter().flatten() {
            let option = text("option", &name)?;
            match (option.as_str(), is_once) {
                ("max_attempts" | "retry_delay", _) | ("keep", false) | ("at" | "every" | "late" | "overlap", true)
                    if value.is_none() => {}
                ("max_attempts", _) => choice.max_attempts = Some(count(&option, &value, "1 to 10000")?),
                ("retry_delay", _) => choice.retry_delay = Some(seconds(&option, &value)?),
                ("keep", false) => choice.keep = Some(seconds(&option, &value)?),
                ("at", true) => choice.at = Some(time(&option, &value)?),
                ("every", true) => choice.every = Some(seconds(&option, &value)?),
                ("late", true) => choice.late = Some(seconds(&option, &value)?),
                ("overlap", true) => choice.overlap = Some(overlap(&value)?),
                _ if choice.lock.set(&option, &value)? => (),
                _ => return Err(unknown(&option, &value, if is_once { Place::Once } else { Place::Job })),
            }
        }
        // Says at once what the core would say at the first operation.
        raised(py, choice.lock.settings.over(&LockOptions::default()))?;
        raised(py, check_job(choice.max_attempts, choice.retry_delay, choice.keep))?;
        raised(py, check_schedule(choice.at, choice.every, choice.late))?;
        Ok(choice)
    }

    /// The client's job `name` with these options.
    pub(crate) fn job(&self, client: &Client, name: &str) -> Job {
        let job = if self.is_once { client.once(name) } else { client.job(name) };
        let job = job.settings(self.lock.settings.clone());
        let job = self.max_attempts.into_iter().fold(job, Job::max_attempts);
        let job = self.retry_delay.into_iter().fold(job, Job::retry_delay);
        let job = self.keep.into_iter().fold(job, Job::keep);
        let job = self.at.into_iter().fold(job, Job::at);
        let job = self.every.into_iter().fold(job, Job::every);
        let job = self.late.into_iter().fold(job, Job::late);
        self.overlap.into_iter().fold(job, Job::overlap)
    }
}

fn overlap(value: &Bound<'_, PyAny>) -> PyResult<Overlap> {
    match value.extract::<String>().as_deref() {
        Ok("skip") => Ok(Overlap::Skip),
        Ok("wait") => Ok(Overlap::Wait),
        _ => Err(refuse("overlap", value, "must be \"skip\" or \"wait\"")),
    }
}

/// A whole number that isn't negative.
fn count(option: &str, value: &Bound<'_, PyAny>, bounds: &str) -> PyResult<u32> {
    let is_number = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    let number = if is_number { value.extract::<u32>().ok() } else { None };
    number.ok_or_else(|| refuse(option, value, format!("must be a whole number from {bounds}")))
}

fn on_lost(value: &Bound<'_, PyAny>) -> PyResult<OnLost> {
    if value.is_callable() {
        return callable("on_lost", value).map(OnLost::Call);
    }
    match value.extract::<String>().as_deref() {
        Ok("cancel") => Ok(OnLost::Cancel),
        Ok("flag") => Ok(OnLost::Flag),
        _ => Err(refuse("on_lost", value, "must be \"cancel\", \"flag\" or a callable")),
    }
}

/// The error for an option that the call doesn't have.
pub(crate) fn unknown(option: &str, value: &Bound<'_, PyAny>, place: Place) -> PyErr {
    let instead = instead_of(option, place, Language::Python);
    // Of a text only that it is one: it may be a password, or a URL that has one in it.
    if value.is_instance_of::<PyString>() {
        refuse(option, value.get_type().as_any(), instead)
    } else {
        refuse(option, value, instead)
    }
}

/// The options of a client that were given, with its locks' defaults.
#[derive(Default)]
pub(crate) struct ClientChoice {
    pub(crate) options: ClientOptions,
    pub(crate) lock: LockChoice,
    pub(crate) on_event: Option<Py<PyAny>>,
    pub(crate) credentials: Option<Py<PyAny>>,
    /// By which it pickles.
    pub(crate) name: Option<String>,
}

impl ClientChoice {
    /// The options in `given`; any other name is refused.
    pub(crate) fn parse(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut choice = Self::default();
        for (name, value) in given.into_iter().flatten() {
            let option = text("option", &name)?;
            if !choice.lock.set(&option, &value)? && !choice.set(&option, &value)? {
                return Err(unknown(&option, &value, Place::Client));
            }
        }
        choice.options.lock = raised(py, choice.lock.settings.over(&choice.options.lock))?;
        Ok(choice)
    }

    fn set(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if value.is_none() {
            return Ok(CLIENT_OPTIONS.contains(&option));
        }
        match option {
            "name" => self.name = Some(client_name(value)?),
            "on_event" => self.on_event = Some(callable(option, value)?),
            "credentials" => self.credentials = Some(any_callable(option, value)?),
            "history" => self.options.history = switch(option, value)?,
            "log_holds" => self.options.log_holds = switch(option, value)?,
            "prefix" => self.options.prefix = text(option, value)?,
            "app" => self.options.app = Some(text(option, value)?),
            "connect_timeout" => self.options.connect_timeout = seconds(option, value)?,
            "response_timeout" => self.options.response_timeout = Some(seconds(option, value)?),
            "unavailable_after" => self.options.unavailable_after = seconds(option, value)?,
            "max_ttl" => self.options.max_ttl = seconds(option, value)?,
            "replicas" => self.options.replicas = count(option, value, "0 to 100")?,
            "replicas_timeout" => self.options.replicas_timeout = seconds(option, value)?,
            "failover" => self.options.failover = raised(value.py(), Failover::named(&text(option, value)?))?,
            _ => return self.set_tls(option, value),
        }
        Ok(true)
    }

    fn set_tls(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match option {
            "tls_ca" => self.options.tls_ca = Some(path(option, value)?),
            "tls_cert" => self.options.tls_cert = Some(path(option, value)?),
            "tls_key" => self.options.tls_key = Some(path(option, value)?),
            "tls_name" => self.options.tls_name = Some(text(option, value)?),
            "address_map" => self.options.address_map = addresses(option, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The client's own options: `None` for one of them means that it isn't given.
const CLIENT_OPTIONS: [&str; 19] = [
    "name",
    "on_event",
    "log_holds",
    "history",
    "prefix",
    "app",
    "connect_timeout",
    "response_timeout",
    "unavailable_after",
    "max_ttl",
    "failover",
    "replicas",
    "replicas_timeout",
    "credentials",
    "tls_ca",
    "tls_cert",
    "tls_key",
    "tls_name",
    "address_map",
];

/// A dict of addresses.
fn addresses(option: &str, value: &Bound<'_, PyAny>) -> PyResult<BTreeMap<String, String>> {
    let pairs = value.cast::<PyDict>().map_err(|_| refuse(option, value, "must be a dict of addresses"))?;
    pairs.iter().map(|(announced, reachable)| Ok((text(option, &announced)?, text(option, &reachable)?))).collect()
}

fn client_name(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = text("name", value)?;
    if name.is_empty() { Err(refuse("name", value, "must not be empty")) } else { Ok(name) }
}

/// A plain function, which a thread of this package's calls: what an `async def` returns nobody would await.
fn callable(option: &str, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let callable = any_callable(option, value)?;
    if own::call(value.py(), |own| &own.is_coroutine_function, (value,))?.extract()? {
        let why = "is an `async def`, and no loop would run it: use a plain function, in which loop.call_soon_threadsafe() reaches a loop";
        return Err(refuse(option, value, why));
    }
    Ok(callable)
}

fn any_callable(option: &str, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    // Of what is none only its type: it may be a password.
    if value.is_callable() {
        Ok(value.clone().unbind())
    } else {
        Err(refuse(option, value.get_type().as_any(), "must be callable"))
    }
}
