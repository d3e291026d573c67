//! The name of a lock: a text, or what makes one of the arguments of a decorated function.

use locktender::host::check_name;
use pyo3::prelude::*;

use super::Kind;
use crate::arguments::text;
use crate::errors::raised;
use crate::options::LockChoice;

/// The name of a lock.
pub(super) enum Name {
    Text(String),
    /// Makes names from the arguments of a decorated function.
    Maker(Py<PyAny>),
}

impl Name {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(name) => Some(name),
            Self::Maker(_) => None,
        }
    }

    pub(super) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Text(name) => name.into_pyobject(py)?.into_any(),
            Self::Maker(maker) => maker.bind(py).clone(),
        })
    }
}

/// A name and options that can be a lock's. One with braces may be the template of a decorator, which makes other names of it: of
/// those the braces are left to the first operation.
pub(crate) fn checked(
    name: &Bound<'_, PyAny>,
    client: Option<&locktender::Client>,
    kind: Kind,
    choice: &LockChoice,
) -> PyResult<String> {
    let (py, text) = (name.py(), text("name", name)?);
    if text.contains(['{', '}']) {
        raised(py, check_name(&text.replace(['{', '}'], "_")))?;
    } else if let Some(client) = client {
        raised(py, kind.of(client, &text).settings(choice.settings.clone()).validate())?;
    } else {
        raised(py, check_name(&text))?;
    }
    Ok(text)
}
