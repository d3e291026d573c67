//! What happens to a holder's process: it is stopped, killed, or told to end.
//!
//! The holder is this program again, running the test `holder` with a URL in its environment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use locktender::{Client, Outcome};
use locktender_tests::RealServer;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const URL: &str = "LOCKTENDER_HOLDER_URL";
const TTL: Duration = Duration::from_millis(600);

fn say(line: &str) {
    // Past the test harness, which would keep it until the end.
    let mut out = stdout().lock();
    writeln!(out, "\nholder: {line}").unwrap();
    out.flush().unwrap();
}

/// Holds the lock `a` and does what its standard input says; does nothing as a test of its own.
#[test]
fn holder() {
    let Ok(url) = std::env::var(URL) else { return };
    let client = Client::open(&url).unwrap();
    let held = Arc::new(client.lock("a").ttl(TTL).acquire_blocking().unwrap());
    held.on_lost(|loss| say(&format!("lost {}", loss.reason)));
    say("held");
    for line in stdin().lock().lines() {
        match line.unwrap().as_str() {
            "check" => say(&format!("valid {}", held.is_valid())),
            "release" => {
                let release = held.release().wait().unwrap();
                say(&format!("{} {}", release.outcome.as_str(), release.rival.unwrap_or_default()));
            }
            other => panic!("{other}"),
        }
    }
}

struct Holder {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Holder {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holder", "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut holder = Self { child, input, output };
        assert_eq!(holder.hear(), "held");
        holder
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the holder has ended");
            if let Some(said) = line.trim_end().strip_prefix("holder: ") {
                return said.to_owned();
            }
        }
    }

    /// A signal is not there at once: until it is, the holder could still answer.
    fn wait_stopped(&self) {
        let pid = Pid::from_child(&self.child);
        let status = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap().1;
        assert!(status.stopped());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn f02_a_process_that_was_stopped_knows_before_any_io_that_its_lock_is_gone() {
    let server = RealServer::start();
    let mut holder = Holder::start(&server.url());
    holder.signal(Signal::STOP);
    holder.wait_stopped();
    holder.tell("check");
    let client = Client::open(&server.url()).unwrap();
    let next = client.lock("a").ttl(Duration::from_secs(30)).wait(TTL * 3).acquire_blocking().unwrap();
    holder.signal(Signal::CONT);
    let mut said = [holder.hear(), holder.hear()];
    said.sort();
    assert_eq!(said[1], "valid false");
    assert!(said[0] == "lost expired" || said[0] == "lost taken", "{said:?}");
    holder.tell("release");
    assert_eq!(holder.hear(), format!("taken {}", next.owner()), "the loss is told once, then the rival");
    assert_eq!(next.release().wait().unwrap().outcome, Outcome::Released);
}

#[test]
fn f08_a_killed_owner_frees_its_lock_within_a_ttl() {
    let server = RealServer::start();
    let holder = Holder::start(&server.url());
    let client = Client::open(&server.url()).unwrap();
    assert!(client.lock("a").try_acquire_blocking().unwrap().is_none());
    holder.signal(Signal::KILL);
    let start = Instant::now();
    client.lock("a").wait(TTL * 3).acquire_blocking().unwrap();
    assert!(start.elapsed() < TTL + Duration::from_millis(300), "{:?}", start.elapsed());
}

#[test]
fn f28_a_terminated_process_frees_its_lock_within_a_ttl() {
    let server = RealServer::start();
    let holder = Holder::start(&server.url());
    holder.signal(Signal::TERM);
    let client = Client::open(&server.url()).unwrap();
    client.lock("a").wait(TTL + Duration::from_millis(300)).acquire_blocking().unwrap();
}
