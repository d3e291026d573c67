//! A scene: one case while it is played.

mod hold;
mod work;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use locktender::{Cancel, Client, Election, Error, Job, Leadership, Lock, LockEvent, LockOptions, Observer, Release, safe_name};
use locktender_tests::certificate;
use serde_json::{Value, json};

use self::hold::{Body, Got, Hold, begun};
use crate::matching::{Variables, mismatch};
use crate::place::{self, Place};
use crate::seen::{describe, look, ms, observed, plain, show, show_grant, show_hold, status};
use crate::wanted::{client_options, duration, lock_of, lock_settings, now, scheduled};

/// How long something that is certain to happen may take.
const PATIENCE: Duration = Duration::from_secs(20);

type Kinds = Arc<Mutex<Vec<&'static str>>>;

pub struct Scene<'a> {
    place: Place,
    case: &'a Value,
    variables: Variables,
    clients: HashMap<String, (Client, Kinds)>,
    holds: HashMap<String, Hold>,
    later: HashMap<String, Receiver<Result<Got, Error>>>,
    cancels: HashMap<String, Cancel>,
    /// The begin of the case, in whole milliseconds.
    start: SystemTime,
    observers: HashMap<String, Observer>,
}

impl<'a> Scene<'a> {
    pub fn new(place: Place, case: &'a Value, name: &str) -> Self {
        let mut variables = Variables::default();
        variables.set("name", name);
        variables.set("ca", certificate("ca.pem").to_str().unwrap());
        variables.set("pid", std::process::id().to_string());
        variables.set("host", rustix::system::uname().nodename().to_str().unwrap());
        Self {
            place,
            case,
            variables,
            clients: HashMap::new(),
            holds: HashMap::new(),
            later: HashMap::new(),
            cancels: HashMap::new(),
            observers: HashMap::new(),
            start: now(),
        }
    }

    /// Plays every step; the first that sees something else than it expects ends the case.
    pub fn play(mut self) -> Result<(), String> {
        self.steps(&self.case["steps"], None)?;
        self.holds.clear();
        for (client, _) in self.clients.values() {
            client.close_blocking().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn steps(&mut self, steps: &Value, body: Option<Body<'_>>) -> Result<(), String> {
        for (index, step) in steps.as_array().unwrap().iter().enumerate() {
            let began = Instant::now();
            let mut seen = self.act(step, body)?.unwrap_or_else(|error| describe(&error));
            seen["took_ms"] = json!(began.elapsed().as_secs_f64() * 1e3);
            let expected = match &step["expect"] {
                Value::Null => json!({}),
                expected => self.variables.fill(expected),
            };
            let surprise = ["error", "busy"].into_iter().find(|&key| !seen[key].is_null() && expected[key].is_null());
            let why = surprise.map(|key| format!("{key} was not expected")).or_else(|| mismatch(&expected, &seen));
            if let Some(why) = why {
                return Err(format!("step {index} ({}): {why}\n    seen: {seen}", step["do"]));
            }
        }
        Ok(())
    }

    /// Does what a step says. The outer error is a step that failed inside another.
    fn act(&mut self, step: &Value, body: Option<Body<'_>>) -> Result<Result<Value, Error>, String> {
        let filled = self.variables.fill(step);
        let text = |key: &str, default: &str| filled[key].as_str().unwrap_or(default).to_owned();
        let (client, keep) = (text("client", "client"), text("as", "held"));
        let found = || self.holds.get(&text("on", "held")).map(Hold::as_body).or(body).expect("there is no such hold");
        let hold = || found().held();
        let attempt = || match found() {
            Body::Attempt(attempt) => attempt,
            _ => panic!("this hold is no attempt"),
        };
        Ok(match &*text("do", "") {
            "open" => self.client(&client).map(|_| json!({})),
            "acquire" if filled["later"].is_string() => self.lock(&client, &filled["lock"]).map(|lock| {
                let (sender, receiver) = channel();
                let cancel = lock.acquire().then(move |result| drop(sender.send(result.map(|held| Some(Hold::Lock(held))))));
                self.cancels.insert(text("later", ""), cancel);
                self.later.insert(text("later", ""), receiver);
                json!({})
            }),
            "cancel" => {
                self.cancels.remove(&text("of", "")).expect("nothing of that name is under way").cancel();
                Ok(json!({}))
            }
            "join" => {
                let pending = self.later.remove(&text("of", "")).expect("nothing of that name is under way");
                let result = pending.recv_timeout(PATIENCE).map_err(|_| "the acquire continues".to_owned())?;
                result.map(|got| self.keep_if_any(&keep, got))
            }
            "begin" => match self.job(&client, &filled) {
                Ok(job) if filled["later"].is_string() => {
                    let (sender, receiver) = channel();
                    let _detached = job.begin().then(move |result| drop(sender.send(result.map(begun))));
                    self.later.insert(text("later", ""), receiver);
                    Ok(json!({}))
                }
                job => job.and_then(|job| job.begin_blocking()).map(|result| self.keep_if_any(&keep, begun(result))),
            },
            "run" => match self.job(&client, &filled) {
                Ok(job) => self.run(&job, step, &keep)?,
                Err(error) => Err(error),
            },
            "campaign" => match self.election(&client, &filled["election"]) {
                Ok(election) if filled["later"].is_string() => {
                    let (sender, receiver) = channel();
                    let led =
                        move |result: Result<Leadership, Error>| drop(sender.send(result.map(|led| Some(Hold::Leadership(led)))));
                    let _detached = election.campaign().then(led);
                    self.later.insert(text("later", ""), receiver);
                    Ok(json!({}))
                }
                election => election
                    .and_then(|election| election.campaign_blocking())
                    .map(|leadership| self.keep(&keep, Hold::Leadership(leadership))),
            },
            "try_campaign" => {
                let tried = self.election(&client, &filled["election"]).and_then(|election| election.try_campaign_blocking());
                tried.map(|led| led.map_or(json!({ "busy": true }), |led| self.keep(&keep, Hold::Leadership(led))))
            }
            "lead" => match self.election(&client, &filled["election"]) {
                Ok(election) => self.lead(&election, step["terms"].as_array().unwrap())?,
                Err(error) => Err(error),
            },
            "observe" if filled["of"].is_string() => {
                let observer = self.observers.get_mut(&text("of", "")).expect("there is no such observer");
                observer.next_blocking().map(|seen| observed(&seen))
            }
            "observe" => self.election(&client, &filled["election"]).and_then(|election| {
                let mut observer = election.observe();
                let seen = observer.next_blocking();
                self.observers.insert(keep, observer);
                seen.map(|seen| observed(&seen))
            }),
            "resign" => found().resign().map(|release| released(&release)),
            "complete" => attempt().complete(filled["result"].to_string()).blocking().map(|()| json!({})),
            "fail" => {
                let message = text("message", "");
                duration(&filled, "retry_in_ms")
                    .and_then(|retry_in| match retry_in {
                        Some(retry_in) => attempt().fail_in(message, retry_in).blocking(),
                        None if filled["retry"] == false => attempt().fail_permanently(message).blocking(),
                        None => attempt().fail(message).blocking(),
                    })
                    .map(|()| json!({}))
            }
            "status" => self.job(&client, &filled).and_then(|job| job.status_blocking()).map(|found| status(&found, self.start)),
            "reset" => self.job(&client, &filled).and_then(|job| job.reset_blocking()).map(|reset| json!({ "reset": reset })),
            "acquire" => self
                .lock(&client, &filled["lock"])
                .and_then(|lock| lock.acquire_blocking())
                .map(|held| self.keep(&keep, Hold::Lock(held))),
            "try_acquire" => {
                let tried = self.lock(&client, &filled["lock"]).and_then(|lock| lock.try_acquire_blocking());
                tried.map(|held| held.map_or(json!({ "busy": true }), |held| self.keep(&keep, Hold::Lock(held))))
            }
            "adopt" => {
                let adopted = self.client(&client).and_then(|client| {
                    let or_acquire = step["or_acquire"].as_bool().unwrap_or_default();
                    client.adoption(&text("ticket", ""))?.or_acquire(or_acquire).acquire_blocking()
                });
                adopted.map(|held| self.keep(&keep, Hold::Lock(held)))
            }
            "body" => match self.lock(&client, &filled["lock"]) {
                Ok(lock) => self.body(&lock, step, &keep)?,
                Err(error) => Err(error),
            },
            "extend" => {
                let held = hold();
                let call = duration(&filled, "ttl_ms").map(|ttl| ttl.map_or_else(|| held.renew_now(), |ttl| held.extend(ttl)));
                call.and_then(|call| call.blocking()).map(|()| look(held))
            }
            "extend_by" => {
                let held = hold();
                duration(&filled, "by_ms").and_then(|by| held.extend_by(by.unwrap()).blocking()).map(|()| look(held))
            }
            "release" => hold().release().blocking().map(|release| released(&release)),
            "leave" => hold().leave().blocking().map(|()| json!({})),
            "look" => Ok(found().seen()),
            "hand_over" => hold().hand_over().map(|ticket| {
                self.variables.set(&keep, ticket.clone());
                json!({ "ticket": ticket })
            }),
            "downgrade" => hold().downgrade().blocking().map(|held| self.keep(&keep, Hold::Lock(held))),
            "inspect" => {
                self.lock(&client, &filled["lock"]).and_then(|lock| lock.inspect_blocking()).map(|info| show(info.as_ref()))
            }
            "locks" => {
                let (pattern, limit) = (filled["pattern"].as_str().unwrap().to_owned(), filled["limit"].as_u64());
                let locks = self.client(&client).and_then(|own| own.locks_blocking(pattern, limit.map(|limit| limit as usize)));
                locks.map(|locks| json!({ "count": locks.len(), "locks": locks.iter().map(|lock| show(Some(lock))).collect::<Vec<_>>() }))
            }
            "history" => self.client(&client).and_then(|client| history(&client, &filled)),
            "holds" => self.client(&client).map(|own| json!({ "holds": own.holds().iter().map(show_hold).collect::<Vec<_>>() })),
            "force_release" => {
                let owner = filled["owner"].as_str();
                let ended = self.lock(&client, &filled["lock"]).and_then(|lock| lock.force_release_blocking(owner));
                ended.map(|info| show(info.as_ref()))
            }
            "wait_lost" => match hold().lost().wait_for(PATIENCE) {
                Some(lost) => lost
                    .map(|loss| json!({ "reason": loss.reason.as_str(), "next_owner": loss.next_owner, "next_fence": loss.next_fence })),
                None => return Err("the lock is not lost".into()),
            },
            "wait_free" => self.lock(&client, &filled["lock"]).and_then(|lock| wait_free(&lock, &self.place)),
            "events" => {
                let kinds = self.client(&client).map(|_| Arc::clone(&self.clients[&client].1));
                kinds.map(|kinds| wait_for_events(&kinds, filled["kinds"].as_array().unwrap()))
            }
            "metrics" => self.client(&client).map(|client| metrics(&client, &filled)),
            "safe_name" => Ok(json!({ "name": safe_name(&text("text", "")) })),
            "close" => self.client(&client).and_then(|client| client.close_blocking()).map(|()| json!({})),
            "server" => Ok(self.command(&filled["command"], filled.get("until"))),
            "script" => {
                place::play(self.place.scripted.as_ref().expect("this place plays no script"), &filled["lines"]);
                Ok(json!({}))
            }
            "pass_ms" => {
                thread::sleep(Duration::from_millis(filled["ms"].as_u64().unwrap()));
                Ok(json!({}))
            }
            other => panic!("no step {other:?}"),
        })
    }

    fn client(&mut self, name: &str) -> Result<Client, Error> {
        if let Some((client, _)) = self.clients.get(name) {
            return Ok(client.clone());
        }
        let wanted = self.variables.fill(&self.case["clients"][name]);
        let settings = lock_settings(&wanted)?;
        let mut options = self.place.options();
        options.lock = settings.over(&LockOptions::default())?;
        client_options(&wanted, &mut options)?;
        let kinds = Kinds::default();
        let seen = Arc::clone(&kinds);
        let builder = Client::builder()
            .options(options)
            .sink(Arc::new(move |event: &LockEvent| seen.lock().unwrap().push(event.kind.as_str())));
        let builder = self.place.urls.iter().fold(builder, |builder, url| builder.url(url));
        let client = self.place.scripted.iter().fold(builder, |builder, own| builder.server(own.clone())).build()?;
        if self.place.name == "quorum" {
            // So that no attempt has to make three connections within the time that an answer may take.
            client.check_servers().blocking()?;
        }
        self.clients.insert(name.into(), (client.clone(), kinds));
        Ok(client)
    }

    fn lock(&mut self, client: &str, wanted: &Value) -> Result<Lock, Error> {
        let name = match &wanted["name"] {
            Value::String(name) => name.clone(),
            _ => self.variables.fill(&"$name".into()).as_str().unwrap().to_owned(),
        };
        let client = self.client(client)?;
        Ok(lock_of(&client, name, wanted).settings(lock_settings(wanted)?))
    }

    fn job(&mut self, client: &str, step: &Value) -> Result<Job, Error> {
        let (wanted, is_cron_job) = (step.get("cron_job").unwrap_or(&step["job"]), step["cron_job"].is_object());
        let name = match &wanted["name"] {
            Value::String(name) => name.clone(),
            _ => self.variables.fill(&"$name".into()).as_str().unwrap().to_owned(),
        };
        let client = self.client(client)?;
        let job = if is_cron_job { client.cron_job(name) } else { client.job(name) };
        let mut job = scheduled(job, wanted, self.start)?.settings(lock_settings(wanted)?);
        if let Some(max_attempts) = wanted["max_attempts"].as_u64() {
            job = job.max_attempts(u32::try_from(max_attempts).unwrap());
        }
        if let Some(retry_delay) = duration(wanted, "retry_delay_ms")? {
            job = job.retry_delay(retry_delay);
        }
        Ok(if let Some(keep) = duration(wanted, "retention_ms")? { job.retention(keep) } else { job })
    }

    fn election(&mut self, client: &str, wanted: &Value) -> Result<Election, Error> {
        let name = self.variables.fill(&"$name".into()).as_str().unwrap().to_owned();
        Ok(self.client(client)?.election(name).settings(lock_settings(wanted)?))
    }

    fn keep_if_any(&mut self, name: &str, got: Got) -> Value {
        got.map_or(json!({ "done": true }), |hold| self.keep(name, hold))
    }

    fn keep(&mut self, name: &str, hold: Hold) -> Value {
        let held = hold.as_body().held();
        self.variables.set(&format!("{name}.owner"), held.owner());
        self.variables.set(&format!("{name}.fence"), held.fence());
        let seen = hold.as_body().seen();
        self.holds.insert(name.into(), hold);
        seen
    }

    /// Sends a command to the servers, again until the reply is the one that is waited for.
    fn command(&self, words: &Value, until: Option<&Value>) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.command_once(words);
            if until.is_none_or(|until| mismatch(until, &seen["reply"]).is_none()) || Instant::now() > deadline {
                return seen;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn command_once(&self, words: &Value) -> Value {
        let words: Vec<String> = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        json!({ "reply": plain(self.place.reply(&words)) })
    }
}

/// The value of each metric that the step expects.
fn metrics(client: &Client, step: &Value) -> Value {
    let metrics = client.metrics();
    let common = step["labels"].as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str().unwrap()));
    let common: Vec<_> = common.collect();
    let value = |key: &String| {
        let mut words = key.split(' ');
        let name = format!("locktender_{}", words.next().unwrap());
        let labels: Vec<_> = common.iter().copied().chain(words.map(|word| word.split_once('=').unwrap())).collect();
        assert!(metrics.iter().any(|metric| metric.name == name), "no metric {name}");
        (key.clone(), json!(metrics.value(&name, &labels)))
    };
    step["expect"].as_object().unwrap().keys().map(value).collect::<serde_json::Map<_, _>>().into()
}

/// Waits until the lock is free on every server. A majority has released it, or let it expire, before the last one.
fn history(client: &Client, step: &Value) -> Result<Value, Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        let limit = step["limit"].as_u64().map(|limit| limit as usize);
        let grants: Vec<Value> = client.history_blocking(step["name"].as_str(), limit)?.iter().map(show_grant).collect();
        if step["until"].is_null() || grants.first().is_some_and(|latest| latest["state"] == step["until"]) {
            return Ok(json!({ "count": grants.len(), "grants": grants }));
        }
        assert!(Instant::now() < until, "the history is {grants:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn wait_free(lock: &Lock, place: &Place) -> Result<Value, Error> {
    let until = Instant::now() + PATIENCE;
    let is_left = || place.replies(&["EXISTS", lock.name()]).into_iter().any(|reply| reply.int() == 1);
    while lock.inspect_blocking()?.is_some() || is_left() {
        assert!(Instant::now() < until, "the lock does not become free");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(json!({}))
}

fn wait_for_events(kinds: &Kinds, wanted: &[Value]) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let seen = kinds.lock().unwrap().clone();
        let mut rest = wanted.iter().peekable();
        for kind in &seen {
            rest.next_if(|next| *next == kind);
        }
        if rest.peek().is_none() {
            return json!({});
        }
        assert!(Instant::now() < until, "the events were {seen:?}, not {wanted:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

fn released(release: &Release) -> Value {
    json!({
        "outcome": release.outcome.as_str(), "next_owner": release.next_owner, "next_fence": release.next_fence,
        "overrun_ms": ms(release.overrun), "kept_ms": ms(release.kept),
    })
}
