//! Members: the error for one that there is not, with our word for that of another library.

use locktender::host::{Language, instead_of_member};
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// The `AttributeError` for a member `name` that `object` doesn't have.
pub(crate) fn missing(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<()> {
    let instead = instead_of_member(&name.to_string_lossy());
    let instead = instead.map(|text| format!("; {}", text.in_words_of(Language::Python))).unwrap_or_default();
    let owner = match object.cast::<PyType>() {
        Ok(class) => format!("type object '{}'", class.name()?),
        Err(_) => format!("'{}' object", object.get_type().name()?),
    };
    absent(object, name, format!("{owner} has no attribute '{name}'{instead}"))
}

/// What there is instead of the module's `name`, if it is a word of another library, or one of ours before 0.1.0.
#[pyfunction]
#[pyo3(name = "_instead_of", signature = (name, /))]
pub(crate) fn instead_of(name: &str) -> Option<String> {
    instead_of_member(name).map(|text| text.in_words_of(Language::Python))
}

/// An `AttributeError` as Python makes it: it suggests the nearest name.
pub(crate) fn absent(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>, text: String) -> PyResult<()> {
    let py = object.py();
    let error = PyAttributeError::new_err(text);
    error.value(py).setattr(intern!(py, "name"), name)?;
    error.value(py).setattr(intern!(py, "obj"), object)?;
    Err(error)
}
