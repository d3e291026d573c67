//! The command `locktender`, for the package's program of that name.

use std::ffi::OsString;

use napi_derive::napi;

/// Does what the arguments say, and gives the exit code. The caller's thread waits meanwhile.
#[napi]
pub fn command(arguments: Vec<String>) -> u32 {
    locktender_cli::main(as_given(arguments)).into()
}

/// JavaScript's texts can't have each byte that an argument may have. Those of the process can, and end with the same ones.
fn as_given(arguments: Vec<String>) -> Vec<OsString> {
    let all: Vec<OsString> = std::env::args_os().collect();
    let mut given: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    // The first is the program.
    let count = given.len().saturating_sub(1);
    for (given, own) in given.iter_mut().skip(1).zip(all.into_iter().rev().take(count).rev()) {
        let is_changed = given.to_string_lossy().contains('\u{fffd}');
        if is_changed && own.to_str().is_none() {
            *given = own;
        }
    }
    given
}
