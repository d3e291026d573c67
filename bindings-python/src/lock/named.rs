//! The name of a lock, or the names of several: texts, or what makes them of the arguments of a decorated function.

use locktender::host::check_name;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::Kind;
use crate::arguments::{refuse, text};
use crate::errors::raised;
use crate::options::LockChoice;
use crate::visit::Visit;

/// The name of a lock, or the names of several.
pub(super) enum Name {
    Text([String; 1]),
    Texts(Vec<String>),
    /// Makes names from the arguments of a decorated function.
    Maker(Py<PyAny>),
}

impl Name {
    /// What a program has given as the name of a lock of this kind.
    pub(super) fn given(name: &Bound<'_, PyAny>, kind: Kind) -> PyResult<Self> {
        const WHY: &str = "multi_lock() takes several names: [\"a\", \"b\"]";
        if kind != Kind::Several {
            return Ok(Self::Text([text("name", name)?]));
        }
        let _visit = Visit::begin(name.py())?;
        let names = if name.is_instance_of::<PyString>() { None } else { name.try_iter().ok() };
        let names = names.ok_or_else(|| refuse("names", name, WHY))?;
        Ok(Self::Texts(names.map(|name| text("names", &name?)).collect::<PyResult<_>>()?))
    }

    /// The same, if it can be a lock's with these options. A name with braces may be the template of a decorator, which makes other names
    /// of it: of those the braces are left to the first operation.
    pub(super) fn checked(
        name: &Bound<'_, PyAny>,
        client: Option<&locktender::Client>,
        kind: Kind,
        choice: &LockChoice,
    ) -> PyResult<Self> {
        let (py, given) = (name.py(), Self::given(name, kind)?);
        let names = given.texts();
        match client {
            Some(client) if !names.iter().any(|name| name.contains(['{', '}'])) => {
                raised(py, kind.of(client, names).settings(choice.settings.clone()).validate())?;
            }
            _ => names.iter().try_for_each(|name| raised(py, check_name(&name.replace(['{', '}'], "_"))))?,
        }
        Ok(given)
    }

    /// The texts; none if a callable makes them.
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Self::Text(name) => name,
            Self::Texts(names) => names,
            Self::Maker(_) => &[],
        }
    }

    /// As one text; `None` if a callable makes it.
    pub(super) fn shown(&self) -> Option<String> {
        if let Self::Maker(_) = self { None } else { Some(self.texts().join(", ")) }
    }

    pub(super) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Text([name]) => name.into_pyobject(py)?.into_any(),
            Self::Texts(names) => PyTuple::new(py, names)?.into_any(),
            Self::Maker(maker) => maker.bind(py).clone(),
        })
    }
}

/// The name of what is a plain lock on the servers, checked as [`Name::checked`] does.
pub(crate) fn checked(name: &Bound<'_, PyAny>, client: Option<&locktender::Client>, choice: &LockChoice) -> PyResult<String> {
    Ok(Name::checked(name, client, Kind::Exclusive, choice)?.texts().concat())
}
