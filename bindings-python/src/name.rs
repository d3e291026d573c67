//! Names: one for any text.

use pyo3::prelude::*;

use crate::arguments::text;

/// A lock's name for any text.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn safe_name(text: &Bound<'_, PyAny>) -> PyResult<String> {
    self::text("text", text).map(|text| locktender::safe_name(&text))
}
