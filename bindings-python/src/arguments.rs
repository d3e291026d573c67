//! Arguments: users' values as the core takes them: text, seconds, switches. Any other value is refused by its name.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::Error;
use locktender::host::Text;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::errors::{raise, raised};
use crate::visit::Visit;

/// `INVALID_ARGUMENT` naming `option` and showing `given` as Python would.
pub(crate) fn refuse(option: &str, given: &Bound<'_, PyAny>, why: impl Into<Text>) -> PyErr {
    let refused = |_visit| raise(given.py(), &Error::invalid(option, Shown::of(given), why));
    Visit::begin(given.py()).map_or_else(|interrupt| interrupt, refused)
}

/// The same for what is in the wrong place. Of a text only that it is one is shown: it may be a password, or a URL that has one in it.
pub(crate) fn refuse_misplaced(argument: &str, given: &Bound<'_, PyAny>, why: impl Into<Text>) -> PyErr {
    if given.is_instance_of::<PyString>() {
        refuse(argument, given.get_type().as_any(), why)
    } else {
        refuse(argument, given, why)
    }
}

/// A text without lone surrogates.
pub(crate) fn text(option: &str, given: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = given.cast::<PyString>().map_err(|_| refuse(option, given, "must be a str"))?;
    text.to_str().map(str::to_owned).map_err(|_| refuse(option, given, "must be text without lone surrogates"))
}

/// Texts by name, where `what` says what a name is.
pub(crate) fn texts(what: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, String)>> {
    let named = given.into_iter().flatten().map(|(name, value)| {
        let name = text(what, &name)?;
        text(&name, &value).map(|value| (name, value))
    });
    named.collect()
}

/// A text or a path.
pub(crate) fn path(option: &str, given: &Bound<'_, PyAny>) -> PyResult<String> {
    let _visit = Visit::begin(given.py())?;
    match given.call_method0("__fspath__") {
        Ok(path) => text(option, &path),
        Err(_) => text(option, given),
    }
}

/// A switch: nothing but a bool.
pub(crate) fn switch(option: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.cast::<PyBool>().map(|switch| switch.is_true()).map_err(|_| refuse(option, given, "must be True or False"))
}

/// The most of something; `None` for no limit.
pub(crate) fn limit(option: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    let whole = |given: &Bound<'_, PyAny>| match given.extract() {
        Ok(number) if !given.is_instance_of::<PyBool>() => Ok(number),
        _ => Err(refuse(option, given, "must be a whole number of at least 1, or None")),
    };
    given.filter(|given| !given.is_none()).map(whole).transpose()
}

/// Seconds: a float, an int or a timedelta.
pub(crate) fn seconds(option: &str, given: &Bound<'_, PyAny>) -> PyResult<Duration> {
    const WHY: &str = "must be a number of seconds (float or int) or a timedelta";
    let _visit = Visit::begin(given.py())?;
    let plain = !given.is_instance_of::<PyBool>() && (given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>());
    let number = if plain {
        given.extract::<f64>().map_err(|_| refuse(option, given, "is absurd"))?
    } else if is_of_datetime(given, "timedelta")? {
        given.call_method0("total_seconds")?.extract()?
    } else {
        return Err(refuse(option, given, WHY));
    };
    raised(given.py(), locktender::host::seconds(option, number))
}

/// A time: a datetime with a time zone, or seconds since 1970.
pub(crate) fn time(option: &str, given: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    const WHY: &str = "must be a datetime with a time zone, or the seconds since 1970 as time.time() has them";
    let _visit = Visit::begin(given.py())?;
    let is_number = given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>();
    let seconds: f64 = if is_number && !given.is_instance_of::<PyBool>() {
        given.extract().map_err(|_| refuse(option, given, WHY))?
    } else if is_of_datetime(given, "datetime")? && !given.call_method0("utcoffset")?.is_none() {
        given.call_method0("timestamp")?.extract()?
    } else {
        return Err(refuse(option, given, WHY));
    };
    // Whole microseconds, as a datetime has them.
    let micros = (seconds * 1e6).round();
    let time = (0.0..1e18).contains(&micros).then(|| UNIX_EPOCH + Duration::from_micros(micros as u64));
    time.ok_or_else(|| refuse(option, given, WHY))
}

/// Without importing datetime: a program with an object of its classes has imported it.
fn is_of_datetime(given: &Bound<'_, PyAny>, class: &str) -> PyResult<bool> {
    let modules = given.py().import("sys")?.getattr("modules")?;
    match modules.cast::<PyDict>()?.get_item("datetime")? {
        Some(datetime) => given.is_instance(&datetime.getattr(class)?),
        None => Ok(false),
    }
}

/// A value as Python shows it, in a core error.
struct Shown(String);

impl Shown {
    fn of(given: &Bound<'_, PyAny>) -> Self {
        let shown = given.py().import("builtins").and_then(|builtins| builtins.call_method1("ascii", (given,)));
        Self(shown.and_then(|shown| shown.extract()).unwrap_or_else(|_| "something that can't be shown".to_owned()))
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
