//! Names: one for any text.

use pyo3::prelude::*;

use crate::arguments::text;

/// A lock's name for any text: an empty one, one that is too long, one with ``{``, ``}``, NUL or ``:~lt:``.
///
/// Two texts never get the same name, and every language gives a text the same one. What a name can't have is written as ``%XX``,
/// and so is ``%``. Of a text whose name would be too long the beginning stays, with the SHA-256 of the whole. Use it for all
/// texts of a kind or for none: ``safe_name("50%")`` is not the lock ``50%``. ::
///
///     with client.lock(safe_name(user)) as hold: ...
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn safe_name(text: &Bound<'_, PyAny>) -> PyResult<String> {
    self::text("text", text).map(|text| locktender::safe_name(&text))
}
