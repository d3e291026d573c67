//! Members: the error for one that there is not, with our word for that of another library.

use locktender::host::{Language, Text, instead_of_member, instead_of_member_of_several};
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyString, PyType};

/// The `AttributeError` for a member `name` that `object` doesn't have.
#[pyfunction]
#[pyo3(name = "_missing", signature = (object, name, /))]
pub(crate) fn missing(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<()> {
    missing_with(object, name, instead_of_member(&name.to_string_lossy()))
}

/// The same for several locks, and for the hold of several.
pub(crate) fn missing_of_several(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<()> {
    missing_with(object, name, instead_of_member_of_several(&name.to_string_lossy()))
}

fn missing_with(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>, instead: Option<Text>) -> PyResult<()> {
    let instead = instead.map(|text| format!("; {}", text.in_words_of(Language::Python))).unwrap_or_default();
    let owner = if let Ok(class) = object.cast::<PyType>() {
        format!("type object '{}'", class.name()?)
    } else if let Ok(module) = object.cast::<PyModule>() {
        format!("module '{}'", module.name()?)
    } else {
        format!("'{}' object", object.get_type().name()?)
    };
    absent(object, name, format!("{owner} has no attribute '{name}'{instead}"))
}

/// An `AttributeError` as Python makes it: it suggests the nearest name.
pub(crate) fn absent(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>, text: String) -> PyResult<()> {
    let py = object.py();
    let error = PyAttributeError::new_err(text);
    error.value(py).setattr(intern!(py, "name"), name)?;
    error.value(py).setattr(intern!(py, "obj"), object)?;
    Err(error)
}
