//! Plays what programs do with locktender, on Windows or under wine. run starts it; without arguments it plays in memory alone.
//!
//! Each argument is a play. What a play needs, such as a server, is in the environment, and a play that lacks it fails. Servers are
//! stopped and started by the program that reads the standard output: a line there that begins with `@` asks for it, and a line of
//! the standard input says that it is done.
#![allow(clippy::print_stdout, reason = "it reports what it plays")]

mod counts;
mod locks;
mod outage;
mod place;
mod soak;

use std::process::ExitCode;
use std::time::Instant;

use place::Outcome;

fn played(name: &str) -> Outcome {
    match name {
        "memory" => locks::all("memory://play", None),
        "server" => locks::all(&place::server()?, None),
        "tls" => locks::tls(),
        "cluster" => locks::of_locks(&place::named("PLAY_CLUSTER")?, None),
        "unix" => locks::unix(),
        "outage" => outage::one_server(),
        "quorum" => outage::quorum(),
        "soak" => soak::soak(),
        _ => Err(format!("no such play: {name}").into()),
    }
}

fn main() -> ExitCode {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = ["memory", "unix"].map(str::to_owned).to_vec();
    }
    let mut failed = 0;
    for name in names {
        let began = Instant::now();
        match played(&name) {
            Ok(()) => println!("ok     {name}, {:.1} s", began.elapsed().as_secs_f64()),
            Err(error) => {
                println!("failed {name}: {error}");
                failed += 1;
            }
        }
    }
    ExitCode::from(failed)
}
