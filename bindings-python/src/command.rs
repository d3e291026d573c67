//! The command `locktender`, for the script of that name in the wheel.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Does what the arguments say, and gives the exit code.
#[pyfunction]
#[pyo3(name = "_command", signature = (arguments, /))]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| locktender::command::main(arguments))
}
