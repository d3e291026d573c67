//! The program `locktender`. Its help says what it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(locktender_cli::main(std::env::args_os()))
}
