//! Tether: a server process that ends with its test, also if the test is killed; `tests/tether` explains how.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::PATIENCE;
use crate::checkout::checkout;

/// A running program with its own directory.
pub(crate) struct Tether {
    tether: Child,
    /// The pipe whose end also ends the program. It is kept apart, because waiting closes the one in `tether`.
    leash: Option<ChildStdin>,
    pid: Pid,
}

impl Tether {
    /// Starts the program; its output goes to `log` in the directory.
    pub(crate) fn start(directory: &Path, program: &Path, arguments: &[&str]) -> Self {
        let mut tether = Command::new(checkout().join("tests/tether"))
            .arg(directory)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tests/tether can't be started");
        let mut line = String::new();
        BufReader::new(tether.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().parse().ok().and_then(Pid::from_raw);
        Self { leash: tether.stdin.take(), tether, pid: pid.expect("tests/tether printed no pid") }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether the program ended by itself.
    pub(crate) fn ended(&mut self) -> bool {
        self.tether.try_wait().unwrap().is_some()
    }

    /// Kills the program and waits until it is gone; its directory stays.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        self.tether.wait().unwrap();
    }

    /// Stops the program and waits until it has stopped.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let status = format!("/proc/{}/stat", self.pid());
        let deadline = Instant::now() + PATIENCE;
        // Where there is no /proc the signal has to be trusted.
        while let Ok(stat) = fs::read_to_string(&status) {
            if stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')) {
                return;
            }
            assert!(Instant::now() < deadline, "pid {} does not stop", self.pid());
            thread::yield_now();
        }
    }

    /// Continues a paused program.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the server is gone");
    }
}

impl Drop for Tether {
    /// Ends the program: it is killed and its directory removed.
    fn drop(&mut self) {
        drop(self.leash.take());
        // Nothing to report: the tether ends once the program has.
        let _ = self.tether.wait();
    }
}
