//! Twins: a real server and the machine, which get the same operations.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use locktender::ClientOptions;
use locktender::internals::clock::Tick;
use locktender::internals::name::{Keys, Kind};
use locktender::internals::redis::RedisServer;
use locktender::machine::{self, Env, State, Value};
use locktender::op::{LockOp, Op, QuorumConfig, Reply, Verb, Verdict};
use locktender::server::{Completion, Request, Server};
use locktender_tests::{Binary, Connection, RealServer, Reply as Raw, ServerOptions};

use crate::replies::{LONGEST_VALUE, TOLERANCE_MS, agree, budget, key, micros, name, size};
use crate::step::{ALIKE, CLIENTS, LOCKS, PARTED, Step};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a command and gives its time.
const TIMED: &str = "local t = redis.call('TIME') redis.call(unpack(ARGV)) return t";

/// Everything the server holds: key, type, string, remaining time.
const DUMP: &str = "local all = redis.call('TIME') for _, key in ipairs(redis.call('KEYS', '*')) do \
    local kind, text = redis.call('TYPE', key).ok, '' \
    if kind == 'string' then text = redis.call('GET', key) end \
    if kind == 'hash' then \
        local fields, sorted = redis.call('HGETALL', key), {} \
        for at = 1, #fields, 2 do sorted[#sorted + 1] = fields[at] .. ';' .. fields[at + 1] end \
        table.sort(sorted) text = table.concat(sorted, ';') \
    end \
    if kind == 'stream' then \
        local info = redis.call('XINFO', 'STREAM', key) \
        for at = 1, #info, 2 do if info[at] == 'last-generated-id' then text = info[at + 1] .. ' ' .. redis.call('XLEN', key) end end \
    end \
    if kind == 'zset' then text = table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ';') end \
    all[#all + 1] = { key, kind, text, redis.call('PTTL', key) } end return all";

/// The last id of a stream.
const LAST_ID: &str = "local info = redis.pcall('XINFO', 'STREAM', KEYS[1]) if info.err then return false end \
    for at = 1, #info, 2 do if info[at] == 'last-generated-id' then return info[at + 1] end end";

/// The ends of the claims among the marks of a lock.
const CLAIMS: &str = "local ends = {} if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then return ends end \
    local marks = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') \
    for at = 1, #marks, 2 do if string.sub(marks[at], 1, 6) == 'claim ' then ends[#ends + 1] = marks[at + 1] end end return ends";

pub(crate) struct Twins {
    name: String,
    raw: Connection,
    /// Receives what is published, by either command.
    subscriber: Connection,
    /// The second is of a single server: what it can it does without scripts.
    dialects: [Arc<RedisServer>; 2],
    dialect: usize,
    machine: State,
    run_id: String,
    now_us: u64,
    fences: Vec<u64>,
    /// The largest fence that each dialect's client has seen of a clock: it asks for one above it.
    seen: HashMap<(usize, String), u64>,
    verdicts: BTreeSet<String>,
    _server: RealServer,
}

impl Twins {
    pub(crate) fn start(binary: &Binary) -> Self {
        let server = ServerOptions::new().binary(binary).start();
        let info = server.command(&["INFO", "replication"]).text().unwrap();
        let run_id = info.lines().find_map(|line| line.strip_prefix("master_replid:")).unwrap().trim().to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let host = runtime.handle().clone();
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        // As a member of a quorum, because only that learns the server's replication id.
        let quorum_config = Some(QuorumConfig { servers: 3, max_ttl_ms: 60_000 });
        let options = ClientOptions::default();
        let subject = |config| RedisServer::new(&server.unix_url(), &options, PATIENCE, config, host.clone(), |_| {}).unwrap();
        let dialects = [subject(quorum_config), subject(None)];
        // `greet` comes before there is a marker, which it would refuse.
        let (answered, until_answered) = channel();
        let completion = Completion::new(move |answer| answered.send(answer.is_ok()).unwrap_or_default());
        dialects[1].submit(Request::new(Op::Marker { remove: true }, Tick::NEVER), completion);
        assert_eq!(until_answered.recv_timeout(PATIENCE), Ok(true));
        let raw = server.connection().unwrap();
        let machine = State::new();
        let mut subscriber = server.connection().unwrap();
        let names = [LOCKS, ALIKE, PARTED].concat();
        let keys = names.iter().map(|(name, servers)| Keys::new(Kind::of_lock(*servers), "", name, *servers == 1).unwrap());
        let by_lock: BTreeSet<String> = keys.map(|keys| machine::channel_of(&keys, CLIENTS[1])).collect();
        for channel in CLIENTS.map(machine::channel).into_iter().chain(by_lock) {
            subscriber.command(&["SUBSCRIBE", &channel]).unwrap();
            // Refused by servers that don't know it, whose scripts don't use it either.
            subscriber.command(&["SSUBSCRIBE", &channel]).unwrap();
        }
        Self {
            subscriber,
            name: binary.name.clone(),
            raw,
            dialects,
            dialect: 0,
            machine,
            run_id,
            now_us: 0,
            fences: Vec::new(),
            seen: HashMap::new(),
            verdicts: BTreeSet::new(),
            _server: server,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.now_us
    }

    pub(crate) fn fences(&self) -> &[u64] {
        &self.fences
    }

    /// Every answer there was, over all sequences.
    pub(crate) fn verdicts(&self) -> &BTreeSet<String> {
        &self.verdicts
    }

    /// Empties both, for the sequence of a seed.
    pub(crate) fn begin(&mut self, seed: u64) {
        self.dialect = usize::try_from(seed % 2).unwrap();
        self.command(&["FLUSHALL"]);
        self.machine.clear();
        self.fences.clear();
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Op(op) => self.ask(op),
            Step::Put(key, text, ttl_ms) => {
                let text = text.replace("RUN", &self.run_id);
                let ttl = ttl_ms.map(|ms| ms.to_string());
                match &ttl {
                    Some(ttl) => self.command(&["SET", key, &text, "PX", ttl]),
                    None => self.command(&["SET", key, &text]),
                }
                self.machine.put(key, Value::Text(text.into()), self.now_us, *ttl_ms);
            }
            Step::List(key) => {
                self.command(&["DEL", key]);
                self.command(&["RPUSH", key, "x"]);
                self.machine.put(key, Value::Foreign("list".into()), self.now_us, None);
            }
            Step::Member(key, member, score) => {
                if self.machine.get(key, self.now_us).is_some_and(|entry| !matches!(entry.value, Value::Members(_))) {
                    return;
                }
                self.command(&["ZADD", key, &score.to_string(), member]);
                self.machine.put_member(key, member, *score, self.now_us);
            }
            Step::Gone(key) => {
                self.command(&["PEXPIRE", key, "-1"]);
                self.machine.remove(key);
            }
            Step::Expire(key, ttl_ms) => {
                self.command(&["PEXPIRE", key, &ttl_ms.to_string()]);
                self.machine.expire(key, self.now_us, *ttl_ms);
            }
            Step::FlushScripts => {
                self.raw.command(&["SCRIPT", "FLUSH"]).unwrap();
            }
        }
    }

    /// What the machine has.
    pub(crate) fn state(&self) -> State {
        self.machine.clone()
    }

    /// What is left of a state at `keys` by now.
    pub(crate) fn left_of(&self, state: &State, keys: &[&str]) -> Vec<Option<Value>> {
        keys.iter().map(|key| state.get(key, self.now_us).map(|entry| entry.value.clone())).collect()
    }

    /// A command past the library.
    fn command(&mut self, words: &[&str]) {
        let reply = self.raw.command(&[&["EVAL", TIMED, "0"], words].concat()).unwrap();
        let Raw::Array(time) = reply else { panic!("{words:?}: {reply:?}") };
        self.now_us = micros(&time);
    }

    /// The server's time, for an answer that doesn't show it.
    fn time(&mut self) -> u64 {
        let Raw::Array(time) = self.raw.command(&["TIME"]).unwrap() else { panic!("no time") };
        micros(&time)
    }

    /// When a release or a leave was done that began after `before`, and ended at `now`. Its answer may not show it, and a script that goes
    /// through several locks reads the time for each of them before Redis 7. A claim that it has written for a waiter shows it to the
    /// millisecond.
    fn time_of(&mut self, op: &Op, before: u64, now: u64) -> u64 {
        let marks = op.keys().into_iter().flat_map(|keys| keys.each()).map(Keys::marks).filter(|marks| !marks.is_empty());
        let mut written = None;
        for marks in marks {
            let Raw::Array(ends) = self.raw.command(&["EVAL", CLAIMS, "1", marks]).unwrap() else { panic!("no claims") };
            let begins = ends.into_iter().filter_map(|end| end.text()?.parse::<u64>().ok()?.checked_sub(machine::CLAIM_MS));
            written = written.max(begins.filter(|ms| (before / 1_000..=now / 1_000).contains(ms)).max());
        }
        written.map_or(now, |ms| now.min(ms * 1_000 + 999))
    }

    /// What a release of a plain lock compares, if it does so: nobody is known to wait.
    fn compared(&self, op: &Op) -> Option<Arc<str>> {
        let Op::Lock(LockOp { keys, by, verb: Verb::Release { leave: None, kept_ms: 0 } }) = op else { return None };
        let value = self.machine.get(keys.lock(), self.now_us)?.text().filter(|_| keys.kind() == Kind::Exclusive)?;
        (machine::owner_of(value) == &**by && !machine::shows_waiters(value)).then(|| value.into())
    }

    /// What the machine does with it, as the server did.
    fn apply(&mut self, op: &Op, scripts: &Reply, is_native: bool, env: &Env<'_>) -> Reply {
        let Op::Lock(LockOp { keys, by, verb: Verb::Acquire { ttl_ms, .. } }) = op else {
            return machine::apply(&mut self.machine, op, env);
        };
        if !scripts.is_bare {
            let (ms, number) = (scripts.fence / 1_000, scripts.fence % 1_000);
            // Whether a transaction has used the number before this one up hangs on the names that its client has met busy.
            if is_native && scripts.verdict == Verdict::Vote && number > 0 {
                self.set_clock(keys.clock(), (ms, number - 1), env.now_us);
            }
            return machine::apply(&mut self.machine, op, env);
        }
        let (taken, id) = machine::take_free(&mut self.machine, keys, (by, *ttl_ms), env);
        let (ms, number) = id.unwrap();
        assert!(taken, "{} took {op:?}, which is held", self.name);
        let mut reply = Reply::new(Verdict::Vote, env.now_us, ms * 1_000 + number);
        reply.is_bare = true;
        reply
    }

    /// An attempt without a script uses a number up also where it meets the lock held, and no answer shows which.
    fn see_clock(&mut self, keys: &Keys) {
        let id = self.raw.command(&["EVAL", LAST_ID, "1", keys.clock()]).unwrap().text();
        if let Some((ms, number)) = id.as_deref().and_then(|id| id.split_once('-')) {
            self.set_clock(keys.clock(), (ms.parse().unwrap(), number.parse().unwrap()), self.now_us);
        }
    }

    /// Its expiry stays.
    fn set_clock(&mut self, key: &str, (ms, number): (u64, u64), now_us: u64) {
        let left_ms = self.machine.get(key, now_us).and_then(|entry| entry.left_ms(now_us));
        self.machine.put(key, Value::Clock(ms, number), now_us, left_ms);
    }

    fn ask(&mut self, op: &Op) {
        let (sender, receiver) = channel();
        let completion = Completion::new(move |answer| sender.send(answer).unwrap());
        let compared = self.compared(op);
        // A floor that is above what the clock gives has the lock taken twice, which the machine doesn't do.
        let has_floor = matches!(op.verb(), Some(Verb::Acquire { proposal: 1.., .. })) || self.has_seen_more(op);
        let is_native = self.dialect == 1 && (op.takes_if_free() && !has_floor || compared.is_some());
        let dialect = usize::from(is_native);
        let raised = self.raised(dialect, op);
        let gives_way = matches!(op.verb(), Some(Verb::Release { .. } | Verb::Leave | Verb::EndAttempt { .. }));
        let before = gives_way.then(|| self.time());
        self.dialects[dialect].submit(Request::new(op.clone(), Tick::NEVER).of_value(compared), completion);
        let mut scripts = receiver.recv_timeout(PATIENCE).unwrap().unwrap();
        // The transport's, not the script's.
        (scripts.run_id, scripts.is_alone, scripts.socket) = (None, false, 0);
        if scripts.time_us == 0 {
            scripts.time_us = self.time();
        }
        if let Some(before) = before {
            scripts.time_us = self.time_of(op, before, scripts.time_us);
        }
        if scripts.is_bare {
            // The clock gave its number somewhat earlier.
            scripts.time_us = scripts.time_us.min(scripts.fence / 1_000 * 1_000 + 999);
        }
        let replid = self.run_id.clone();
        let env = Env { now_us: scripts.time_us, replid: &replid, known_as: &replid, is_renamed: false };
        // The clock is read behind the time that the answer shows. A fence that begins a millisecond says when.
        for (keys, fence) in fences_of(op, &scripts) {
            if fence % 1_000 == 0 && fence.abs_diff(scripts.time_us) < 1_000_000 {
                self.machine.clock_sees(keys.clock(), fence);
            }
        }
        let machine = self.apply(&raised, &scripts, is_native, &env);
        assert!(agree(&scripts, &machine), "{} on {op:?}\nscripts {scripts:?}\nmachine {machine:?}", self.name);
        assert!(size(&scripts) <= budget(op), "{} on {op:?}: {} bytes", self.name, size(&scripts));
        let (received, published) = (self.received(), self.machine.take_published());
        let same = received.len() == published.len()
            && received.iter().zip(&published).all(|(one, other)| one.0 == other.channel && one.1 == other.payload);
        assert!(same, "{} on {op:?}\nreceived  {received:?}\npublished {published:?}", self.name);
        assert!(received.iter().all(|(_, payload)| payload.len() <= LONGEST_VALUE + 100), "{} on {op:?}", self.name);
        let of_several = if op.keys().is_some_and(|keys| keys.kind() == Kind::Several) { "several: " } else { "" };
        self.verdicts.insert(format!("{of_several}{} {}", op.name(), name(&scripts.verdict)));
        self.now_us = scripts.time_us;
        if let Some(keys) = op.keys().filter(|_| is_native) {
            self.see_clock(keys);
        }
        // The clocks before a broken one have given a number that no answer shows.
        let is_unseen = matches!(scripts.verdict, Verdict::Conflict { .. });
        op.keys().into_iter().filter(|_| is_unseen).flat_map(|keys| keys.parts()).for_each(|keys| self.see_clock(keys));
        if scripts.fence > 0 {
            self.fences.push(scripts.fence);
        }
        for (keys, fence) in fences_of(op, &scripts).filter(|(keys, _)| keys.kind() != Kind::Quorum) {
            let seen = self.seen.entry((dialect, keys.clock().to_owned())).or_default();
            *seen = fence.max(*seen);
        }
    }

    fn seen(&self, dialect: usize, keys: &Keys) -> u64 {
        self.seen.get(&(dialect, keys.clock().to_owned())).copied().unwrap_or_default()
    }

    /// Whether the client that uses transactions has seen a larger fence than the clock has given, which was set back since.
    fn has_seen_more(&self, op: &Op) -> bool {
        op.keys().is_some_and(|keys| match self.machine.get(keys.clock(), self.now_us).map(|entry| &entry.value) {
            Some(Value::Clock(ms, number)) => self.seen(2, keys) > ms * 1_000 + number,
            _ => self.seen(2, keys) > 0,
        })
    }

    /// What the client sends: it asks for a fence above those that it has seen.
    fn raised(&self, dialect: usize, op: &Op) -> Op {
        let mut raised = op.clone();
        if let Op::Lock(LockOp { keys, verb: Verb::Acquire { proposal, .. }, .. }) = &mut raised
            && keys.kind() != Kind::Quorum
        {
            *proposal = keys.each().map(|keys| self.seen(dialect, keys)).max().unwrap_or_default().max(*proposal);
        }
        raised
    }

    /// What the server has published since it was asked for last: channel and payload.
    fn received(&mut self) -> Vec<(String, String)> {
        // The answer comes after everything that was published before.
        let mut next = self.subscriber.command(&["PING"]).unwrap();
        let mut received = Vec::new();
        while let Raw::Array(words) = next {
            let words: Vec<String> = words.into_iter().map(|word| word.text().unwrap()).collect();
            match words.as_slice() {
                [kind, ..] if kind == "pong" => break,
                // A script cuts the number of a waiter behind any byte, the machine behind a whole letter.
                [_, channel, payload] => received.push((channel.clone(), payload.replace(char::REPLACEMENT_CHARACTER, ""))),
                other => panic!("{other:?}"),
            }
            next = self.subscriber.reply().unwrap();
        }
        received
    }

    /// Compares every remaining key.
    pub(crate) fn compare_keys(&mut self) {
        let Raw::Array(mut dump) = self.raw.command(&["EVAL", DUMP, "0"]).unwrap() else { panic!("no dump") };
        let keys = dump.split_off(2);
        let now_us = micros(&dump);
        let server: BTreeMap<String, (String, String, i64)> = keys.into_iter().map(key).collect();
        let machine: BTreeMap<String, (String, String, i64)> = self
            .machine
            .iter(now_us)
            .map(|(key, entry)| {
                let left = entry.left_ms(now_us).map_or(-1, |left| i64::try_from(left).unwrap());
                let text = match &entry.value {
                    Value::Members(members) => {
                        members.from(i64::MIN).map(|(score, member)| format!("{member};{score}")).collect::<Vec<_>>().join(";")
                    }
                    Value::Fields(fields) => {
                        fields.iter().map(|(name, value)| format!("{name};{value}")).collect::<Vec<_>>().join(";")
                    }
                    Value::Clock(ms, count) => format!("{ms}-{count} 0"),
                    _ => entry.text().unwrap_or_default().to_owned(),
                };
                (key.to_owned(), (entry.value.type_name().to_owned(), text, left))
            })
            .collect();
        let same = server.len() == machine.len()
            && server.iter().zip(&machine).all(|((key, one), (other_key, other))| {
                let expiry = (one.2 < 0) == (other.2 < 0) && one.2.abs_diff(other.2) <= TOLERANCE_MS;
                key == other_key && one.0 == other.0 && one.1 == other.1 && expiry
            });
        assert!(same, "{}\nserver  {server:#?}\nmachine {machine:#?}", self.name);
    }
}

/// The locks of which an answer shows a fence, each with that.
fn fences_of<'a>(op: &'a Op, reply: &'a Reply) -> impl Iterator<Item = (&'a Keys, u64)> {
    op.keys().into_iter().flat_map(|keys| reply.shown_fences(keys))
}
