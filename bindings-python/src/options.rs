//! Options by keyword. What is not given is left to the core, which knows the defaults.

use std::collections::BTreeMap;

use locktender::host::{JobOverrides, Language, LockOverrides, Options, Place, Value, ValueKind};
use locktender::host::{category, instead_of, suspicious};
use locktender::{Client, ClientOptions, Job, LockOptions};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::arguments::{path, refuse, refuse_misplaced, seconds, switch, text, time};
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
    Continue,
    /// It is cancelled, and a callable of the program's is called.
    Call(Py<PyAny>),
}

impl Refer for OnLost {
    fn refer(&self, py: Python<'_>) -> Self {
        match self {
            Self::Cancel => Self::Cancel,
            Self::Continue => Self::Continue,
            Self::Call(callable) => Self::Call(callable.refer(py)),
        }
    }
}

impl OnLost {
    /// Whether a loss cancels the body of an `async with`; without the option it does.
    pub(crate) fn cancels(chosen: Option<&Self>) -> bool {
        !matches!(chosen, Some(Self::Continue))
    }

    /// For the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Call(callable) => visit.call(callable),
            Self::Cancel | Self::Continue => Ok(()),
        }
    }
}

impl Refer for LockChoice {
    fn refer(&self, py: Python<'_>) -> Self {
        Self { settings: self.settings.clone(), on_lost: self.on_lost.refer(py) }
    }
}

impl LockChoice {
    /// The options in `given`, at this place; any other name is refused.
    pub(crate) fn parse(py: Python<'_>, given: Option<&Bound<'_, PyDict>>, place: Place) -> PyResult<Self> {
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

    /// Counts the locks of a decorator's template as one category, unless another is given.
    pub(crate) fn count_under(&mut self, template: Option<&str>) {
        self.settings.category = self.settings.category.take().or_else(|| template.map(|template| Some(category(template))));
    }

    /// Sets one option; false if there is none of that name.
    fn set(&mut self, option: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if option != "on_lost" {
            return set(&mut self.settings, option, value);
        }
        if !value.is_none() {
            self.on_lost = Some(on_lost(value)?);
        }
        Ok(true)
    }
}

/// Sets one of the core's options; false if there is none of that name. `None` is not given.
fn set<T: Options>(options: &mut T, option: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(row) = T::row(option) else { return Ok(false) };
    let given = match row.kind {
        _ if value.is_none() => return Ok(true),
        ValueKind::EndlessTime if value.is_instance_of::<PyFloat>() && value.extract::<f64>()? == f64::INFINITY => Value::Endless,
        ValueKind::Time | ValueKind::EndlessTime => Value::Time(seconds(option, value)?),
        ValueKind::Switch => Value::Switch(switch(option, value)?),
        ValueKind::Count(least, most) => Value::Count(count(option, value, least, most)?),
        ValueKind::Choice(why) if !value.is_instance_of::<PyString>() => return Err(refuse(option, value, why)),
        ValueKind::Path => Value::Text(path(option, value)?),
        ValueKind::Instant => Value::Instant(time(option, value)?),
        ValueKind::Addresses => Value::Addresses(addresses(option, value)?),
        _ => Value::Text(text(option, value)?),
    };
    raised(value.py(), row.set(options, given)).map(|()| true)
}

/// The options of a job that were given.
#[derive(Default)]
pub(crate) struct JobChoice {
    pub(crate) lock: LockChoice,
    /// Whether it runs once per scheduled time.
    pub(crate) is_cron_job: bool,
    own: JobOverrides,
}

impl Refer for JobChoice {
    fn refer(&self, py: Python<'_>) -> Self {
        Self { lock: self.lock.refer(py), is_cron_job: self.is_cron_job, own: self.own.clone() }
    }
}

impl JobChoice {
    /// The options in `given`; any other name is refused.
    pub(crate) fn parse(py: Python<'_>, given: Option<&Bound<'_, PyDict>>, is_cron_job: bool) -> PyResult<Self> {
        let mut choice = Self { is_cron_job, ..Self::default() };
        for (name, value) in given.into_iter().flatten() {
            let option = text("option", &name)?;
            let is_own = JobOverrides::has(&option, is_cron_job) && set(&mut choice.own, &option, &value)?;
            if !is_own && !choice.lock.set(&option, &value)? {
                return Err(unknown(&option, &value, if is_cron_job { Place::CronJob } else { Place::Job }));
            }
        }
        // Says at once what the core would say at the first operation.
        raised(py, choice.lock.settings.over(&LockOptions::default()))?;
        raised(py, choice.own.check())?;
        Ok(choice)
    }

    /// The client's job `name` with these options.
    pub(crate) fn job(&self, client: &Client, name: &str) -> Job {
        let job = if self.is_cron_job { client.cron_job(name) } else { client.job(name) };
        job.settings(self.lock.settings.clone()).overrides(self.own.clone())
    }
}

/// A whole number that isn't negative.
fn count(option: &str, value: &Bound<'_, PyAny>, least: u32, most: u32) -> PyResult<u32> {
    let is_number = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    let number = if is_number { value.extract::<u32>().ok() } else { None };
    number.ok_or_else(|| refuse(option, value, format!("must be a whole number from {least} to {most}")))
}

/// The permits of a semaphore.
pub(crate) fn permits_of(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    const MOST: u32 = 10_000;
    let permits = count("permits", value, 1, MOST)?;
    if (1..=MOST).contains(&permits) {
        Ok(permits)
    } else {
        Err(refuse("permits", value, format!("must be a whole number from 1 to {MOST}")))
    }
}

fn on_lost(value: &Bound<'_, PyAny>) -> PyResult<OnLost> {
    if value.is_callable() {
        return callable("on_lost", value).map(OnLost::Call);
    }
    match value.extract::<String>().as_deref() {
        Ok("cancel") => Ok(OnLost::Cancel),
        Ok("continue") => Ok(OnLost::Continue),
        _ => Err(refuse("on_lost", value, "must be \"cancel\", \"continue\" or a callable")),
    }
}

/// The error for an option that the call doesn't have.
pub(crate) fn unknown(option: &str, value: &Bound<'_, PyAny>, place: Place) -> PyErr {
    refuse_misplaced(option, value, instead_of(option, place, Language::Python))
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
        let is_given = !value.is_none();
        match option {
            "pickle_name" | "on_event" | "credentials" if !is_given => (),
            "pickle_name" => self.name = Some(client_name(value)?),
            "on_event" => self.on_event = Some(callable(option, value)?),
            "credentials" => self.credentials = Some(any_callable(option, value)?),
            _ => return set(&mut self.options, option, value),
        }
        Ok(true)
    }
}

/// A dict of addresses.
fn addresses(option: &str, value: &Bound<'_, PyAny>) -> PyResult<BTreeMap<String, String>> {
    let pairs = value.cast::<PyDict>().map_err(|_| refuse(option, value, "must be a dict of addresses"))?;
    pairs.iter().map(|(announced, reachable)| Ok((text(option, &announced)?, text(option, &reachable)?))).collect()
}

fn client_name(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = text("pickle_name", value)?;
    if name.is_empty() { Err(refuse("pickle_name", value, "must not be empty")) } else { Ok(name) }
}

/// A plain function, which a thread of this package's calls: what an `async def` returns nobody would await.
fn callable(option: &str, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let callable = any_callable(option, value)?;
    if own::call(value.py(), "_callables", "is_coroutine_function", (value,))?.extract()? {
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
