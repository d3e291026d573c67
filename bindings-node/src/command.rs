//! The command `locktender`, for the package's program of that name.

use napi_derive::napi;

/// Does what the arguments say, and gives the exit code. The caller's thread waits meanwhile.
#[napi]
pub fn command(arguments: Vec<String>) -> u32 {
    locktender::command::main(arguments.into_iter().map(Into::into)).into()
}
