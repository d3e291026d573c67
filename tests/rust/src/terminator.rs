//! Terminator: TLS in front of a server that was built without TLS; `tests/terminator.py` does it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::checkout::{checkout, prepared};

pub(crate) struct Terminator {
    process: Child,
    pub(crate) port: u16,
}

impl Terminator {
    pub(crate) fn start(upstream: u16, certificate: &str, mutual: bool) -> Self {
        let mut process = Command::new(prepared("bin/python"))
            .arg(checkout().join("tests/terminator.py"))
            .args([&upstream.to_string(), certificate])
            .args(mutual.then_some("mutual"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the TLS terminator can't be started");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("the TLS terminator printed no port");
        Self { process, port }
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
