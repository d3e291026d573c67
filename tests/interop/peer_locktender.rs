//! locktender's Rust as a peer; README.md says what it is asked.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a peer of the tests answers by printing, and fails by panicking"
)]

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use std::{env, fs, io, thread};

use locktender::{Client, Code, Error, Hold, NotRunReason, Outcome, RunError};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

fn main() {
    let url = env::args().nth(1).unwrap();
    let builder = Client::builder().url(url).configure(|options| options.app = Some("peer rust".into()));
    let mut peer = Peer { client: builder.build().unwrap(), held: None, kept: Vec::new() };
    for line in io::stdin().lines() {
        let asked: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = peer.answer(&asked).unwrap_or_else(
            |error| json!({ "error": error.code().as_str(), "holder": error.holder().map(|holder| &holder.owner) }),
        );
        println!("{answer}");
    }
    peer.client.close_blocking().unwrap();
}

/// The time by the clock that all processes of a machine share.
fn clock() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

struct Peer {
    client: Client,
    held: Option<Hold>,
    kept: Vec<Hold>,
}

impl Peer {
    fn answer(&mut self, asked: &Value) -> Result<Value, Error> {
        let text = |key: &str| asked[key].as_str().unwrap();
        let span = |key: &str| Duration::from_millis(asked[key].as_u64().unwrap());
        let names = || asked["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        match text("do") {
            "try" => self.held = self.client.lock(text("name")).ttl(span("ttl_ms")).try_acquire_blocking()?,
            "acquire" => self.held = Some(self.client.lock(text("name")).wait(span("wait_ms")).acquire_blocking()?),
            "adopt" => self.held = Some(self.client.adopt(text("ticket")).blocking()?),
            "release" => {
                let release = self.held.as_ref().unwrap().release().blocking()?;
                return Ok(json!({ "released": release.outcome == Outcome::Released }));
            }
            "hand_over" => return Ok(json!({ "ticket": self.held.as_ref().unwrap().hand_over()? })),
            "inspect" => return self.inspect(text("name")),
            "turn" => return self.turn(text("name"), text("file"), asked["fair"].as_bool().unwrap(), text("who")),
            "work" => {
                let max_attempts = u32::try_from(asked["max_attempts"].as_u64().unwrap()).unwrap();
                return self.work(&names().collect::<Vec<_>>(), text("file"), max_attempts, span("ms"));
            }
            "fire" => return self.fire(text("name"), asked["at_ms"].as_u64().unwrap(), text("file")),
            "occupy" => return self.occupy(text("name"), &asked["as"], span("ttl_ms"), text("file")),
            "lead" => return self.lead(text("name"), span("ttl_ms"), text("file")),
            "keep" => {
                let take = |name| self.client.lock(name).ttl(span("ttl_ms")).acquire_blocking();
                self.kept = names().map(take).collect::<Result<_, _>>()?;
                return Ok(json!({ "fences": self.kept.iter().map(Hold::fence).collect::<Vec<_>>() }));
            }
            "let_go" => return self.let_go(),
            "rotate" => return self.rotate(&names().collect::<Vec<_>>(), text("file"), text("stop").as_ref(), span("wait_ms")),
            "count" => return self.count(text("name"), text("file"), asked["times"].as_u64().unwrap()),
            other => panic!("asked to {other}"),
        }
        Ok(match &self.held {
            Some(held) => json!({ "owner": held.owner(), "fence": held.fence() }),
            None => json!({ "owner": null }),
        })
    }

    fn work(&self, names: &[&str], file: &str, max_attempts: u32, work: Duration) -> Result<Value, Error> {
        let mut done = 0;
        for &name in names {
            let job = self.client.job(name).max_attempts(max_attempts);
            let job = job.ttl(Duration::from_millis(300)).wait(Duration::from_millis(100));
            let outcome = job.run_blocking(|attempt| {
                let mut lines = fs::OpenOptions::new().append(true).open(file).unwrap();
                lines.write_all(format!("{name} {} {}\n", attempt.number(), attempt.fence()).as_bytes()).unwrap();
                thread::sleep(work);
                let fails = attempt.number() == 1 && name.ends_with('7');
                if fails { Err("the first attempt fails") } else { Ok(attempt.fence().to_string()) }
            });
            match outcome {
                Ok(_) => done += 1,
                Err(RunError::Lock(error)) if ![Code::AcquireTimeout, Code::LockLost].contains(&error.code()) => {
                    return Err(error);
                }
                Err(_) => (),
            }
        }
        Ok(json!({ "done": done }))
    }

    fn fire(&self, name: &str, at_ms: u64, file: &str) -> Result<Value, Error> {
        let job = self.client.cron_job(name).at(UNIX_EPOCH + Duration::from_millis(at_ms));
        let outcome = job.run_blocking(|attempt| {
            let mut lines = fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
            lines.write_all(format!("{at_ms} {}\n", attempt.fence()).as_bytes()).unwrap();
            Ok::<_, String>(())
        });
        match outcome {
            Ok(outcome) => Ok(json!({ "reason": outcome.reason.map(NotRunReason::as_str) })),
            Err(RunError::Lock(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    fn occupy(&self, name: &str, role: &Value, ttl: Duration, file: &str) -> Result<Value, Error> {
        let lock = match role.as_u64() {
            Some(permits) => self.client.semaphore(name, u32::try_from(permits).unwrap()),
            None if role == "reader" => self.client.read_lock(name),
            None if role == "wide" => self.client.multi_lock([name, &format!("{name}:2")]).into_lock(),
            None => self.client.lock(name),
        };
        let (lock, role) = (lock.ttl(ttl), role.as_str().map_or_else(|| role.to_string(), str::to_owned));
        loop {
            let held = lock.with_blocking(|hold| -> Result<(), Error> {
                for _ in 0..3 {
                    let before = clock();
                    hold.check()?;
                    let (pid, fence, after) = (std::process::id(), hold.fence(), clock());
                    let mut lines = fs::OpenOptions::new().append(true).open(file).unwrap();
                    lines.write_all(format!("{pid} {role} {fence} {before} {after}\n").as_bytes()).unwrap();
                    thread::sleep(Duration::from_millis(3));
                }
                Ok(())
            });
            match held {
                Err(RunError::Lock(error) | RunError::Failed(error)) if error.code() != Code::LockLost => return Err(error),
                _ => (),
            }
        }
    }

    fn lead(&self, name: &str, ttl: Duration, file: &str) -> Result<Value, Error> {
        let led = self.client.election(name).ttl(ttl).lead_blocking(|leadership| {
            loop {
                let before = clock();
                leadership.check()?;
                let (pid, term, after) = (std::process::id(), leadership.term(), clock());
                let mut lines = fs::OpenOptions::new().append(true).open(file).unwrap();
                lines.write_all(format!("{pid} {term} {before} {after}\n").as_bytes()).unwrap();
                thread::sleep(Duration::from_millis(5));
            }
        });
        match led {
            Err(RunError::Lock(error) | RunError::Failed(error)) => Err(error),
            other => panic!("it is never stopped: {other:?}"),
        }
    }

    fn inspect(&self, name: &str) -> Result<Value, Error> {
        let Some(info) = self.client.lock(name).inspect_blocking()? else { return Ok(json!({ "owner": null })) };
        let fields = info.fields.map(|fields| {
            let at_ms = fields.at.unwrap().duration_since(UNIX_EPOCH).unwrap().as_millis();
            json!({ "app": fields.app, "host": fields.host, "pid": fields.pid, "at_ms": at_ms, "id": fields.id })
        });
        Ok(json!({ "owner": info.owner, "fence": info.fence, "fields": fields }))
    }

    fn turn(&self, name: &str, file: &str, fair: bool, who: &str) -> Result<Value, Error> {
        let lock = self.client.lock(name).ttl(Duration::from_secs(60)).fair(fair);
        let fence = lock.with_blocking(|held| {
            writeln!(fs::OpenOptions::new().append(true).open(file).unwrap(), "{who}").unwrap();
            Ok::<_, Error>(held.fence())
        })?;
        Ok(json!({ "fence": fence }))
    }

    fn let_go(&mut self) -> Result<Value, Error> {
        let mut released = 0;
        for held in self.kept.drain(..) {
            released += usize::from(held.release().blocking()?.outcome == Outcome::Released);
        }
        Ok(json!({ "released": released }))
    }

    fn rotate(&self, names: &[&str], file: &str, stop: &Path, wait: Duration) -> Result<Value, Error> {
        let turns = |name: &str| {
            let mut done = 0;
            while done == 0 || !stop.exists() {
                let held = self.client.lock(name).wait(wait).fair(name.ends_with('7')).acquire_blocking()?;
                for _ in 0..2 {
                    held.check()?;
                    let mut lines = fs::OpenOptions::new().append(true).open(file).unwrap();
                    lines.write_all(format!("{name} {} rust\n", held.fence()).as_bytes()).unwrap();
                    thread::sleep(Duration::from_millis(20));
                }
                held.release_blocking()?;
                done += 1;
            }
            Ok(done)
        };
        let turns: Result<Vec<u64>, Error> = thread::scope(|scope| {
            let threads: Vec<_> = names.iter().map(|name| scope.spawn(move || turns(name))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        Ok(json!({ "turns": turns? }))
    }

    fn count(&self, name: &str, file: &str, times: u64) -> Result<Value, Error> {
        for _ in 0..times {
            self.client.lock(name).with_blocking(|_| -> Result<(), Error> {
                let number: u64 = fs::read_to_string(file).unwrap().parse().unwrap();
                fs::write(file, (number + 1).to_string()).unwrap();
                Ok(())
            })?;
        }
        Ok(json!({}))
    }
}
