//! Processes that hold locks or wait for them: they are stopped, killed, or asked to end.
//!
//! That process is this program again, running the test `holder` or `crowd` with a URL in its environment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use locktender::{Client, Error, Outcome};
use locktender_tests::{PATIENCE, RealServer, TTL, eventually};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const URL: &str = "LOCKTENDER_CHILD_URL";

fn print_line(line: &str) {
    // Past the test harness, which would keep it until the end.
    let mut out = stdout().lock();
    writeln!(out, "\nchild: {line}").unwrap();
    out.flush().unwrap();
}

/// Holds the lock `a` and does what its standard input says; does nothing as a test of its own.
#[test]
fn holder() {
    let Ok(url) = std::env::var(URL) else { return };
    let client = Client::open(url).unwrap();
    let held = Arc::new(client.lock("a").ttl(TTL).acquire_blocking().unwrap());
    held.on_lost(|loss| print_line(&format!("lost {}", loss.reason)));
    print_line("held");
    for line in stdin().lock().lines() {
        match line.unwrap().as_str() {
            "check" => print_line(&format!("valid {}", held.is_valid())),
            "release" => {
                let release = held.release().blocking().unwrap();
                print_line(&format!("{} {}", release.outcome.as_str(), release.next_owner.unwrap_or_default()));
            }
            other => panic!("{other}"),
        }
    }
}

/// Has threads take and give back locks, their own and each other's, until its standard input ends, and says what fails; does
/// nothing as a test of its own.
#[test]
fn crowd() {
    let Ok(url) = std::env::var(URL) else { return };
    let client = Client::open(url).unwrap();
    let (turns, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let visit = |n: usize| {
        let lock = match n % 4 {
            0 => client.lock(format!("own:{n}")),
            1 => client.lock("shared"),
            _ => client.lock("fair").fair(true),
        };
        let held = lock.ttl(Duration::from_secs(60)).acquire_blocking()?;
        held.release().blocking()?;
        turns.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Error>(())
    };
    thread::scope(|scope| {
        for n in 0..40 {
            let (visit, over) = (&visit, &over);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    if let Err(error) = visit(n) {
                        return print_line(&format!("failed: {error}"));
                    }
                }
            });
        }
        for line in stdin().lock().lines() {
            line.unwrap();
            let seen = turns.load(Ordering::SeqCst);
            eventually("more turns", PATIENCE, || turns.load(Ordering::SeqCst) > seen + 100);
            print_line("goes on");
        }
        over.store(true, Ordering::SeqCst);
    });
    print_line("done");
}

struct Process {
    child: Child,
    /// `None` once its input is closed.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn holder(url: &str) -> Self {
        let mut holder = Self::start("holder", url);
        assert_eq!(holder.receive(), "held");
        holder
    }

    fn start(test: &str, url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("process::{test}"), "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input: Some(input), output }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_ref().unwrap(), "{line}").unwrap();
    }

    fn receive(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the child has ended");
            if let Some(lines) = line.trim_end().strip_prefix("child: ") {
                return lines.to_owned();
            }
        }
    }

    /// Stops it. A signal is not there at once: until it is, the process could still answer.
    fn stop(&self) {
        self.signal(Signal::STOP);
        let pid = Pid::from_child(&self.child);
        let status = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap().1;
        assert!(status.stopped());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn f02_a_process_that_was_stopped_knows_before_any_io_that_its_lock_is_gone() {
    let server = RealServer::start();
    let mut holder = Process::holder(&server.url());
    holder.stop();
    holder.send("check");
    let client = Client::open(server.url()).unwrap();
    let next = client.lock("a").ttl(Duration::from_secs(30)).wait(TTL + Duration::from_millis(300)).acquire_blocking().unwrap();
    holder.signal(Signal::CONT);
    let mut lines = [holder.receive(), holder.receive()];
    lines.sort();
    assert_eq!(lines[1], "valid false");
    assert!(lines[0] == "lost expired" || lines[0] == "lost taken", "{lines:?}");
    holder.send("release");
    assert_eq!(holder.receive(), format!("taken {}", next.owner()), "the loss is reported once, then the next owner");
    assert_eq!(next.release().blocking().unwrap().outcome, Outcome::Released);
}

/// The holder has ended: nobody renews any more.
fn expires_within_a_ttl(server: &RealServer) {
    let left = server.command(&["PTTL", "a"]).int();
    assert!(left <= i64::try_from(TTL.as_millis()).unwrap(), "{left} ms");
    assert_ne!(left, -1, "it has no expiry");
}

#[test]
fn f08_a_killed_owner_frees_its_lock_within_a_ttl() {
    let server = RealServer::start();
    let mut holder = Process::holder(&server.url());
    let client = Client::open(server.url()).unwrap();
    assert!(client.lock("a").try_acquire_blocking().unwrap().is_none());
    drop(holder.child.kill());
    drop(holder.child.wait());
    expires_within_a_ttl(&server);
    client.lock("a").wait(TTL + Duration::from_millis(300)).acquire_blocking().unwrap();
}

#[test]
fn f28_a_terminated_process_frees_its_lock_within_a_ttl() {
    let server = RealServer::start();
    let mut holder = Process::holder(&server.url());
    holder.signal(Signal::TERM);
    drop(holder.child.wait());
    expires_within_a_ttl(&server);
    let client = Client::open(server.url()).unwrap();
    client.lock("a").wait(TTL + Duration::from_millis(300)).acquire_blocking().unwrap();
}

/// Lets a crowd stand still for longer than an outage is borne with, and with it the server or not.
fn stands_still(with_server: bool) {
    let server = RealServer::start();
    let mut crowd = Process::start("crowd", &server.url());
    crowd.send("go on");
    assert_eq!(crowd.receive(), "goes on");
    if with_server {
        server.pause();
    }
    crowd.stop();
    // Longer than `unavailable_after`.
    thread::sleep(Duration::from_millis(5_500));
    crowd.signal(Signal::CONT);
    if with_server {
        server.resume();
    }
    crowd.send("go on");
    assert_eq!(crowd.receive(), "goes on");
    crowd.input = None;
    assert_eq!(crowd.receive(), "done");
}

#[test]
fn a_process_that_stood_still_does_not_take_that_for_an_outage() {
    stands_still(false);
}

#[test]
fn a_process_that_stood_still_with_its_server_does_not_take_that_for_an_outage() {
    stands_still(true);
}
