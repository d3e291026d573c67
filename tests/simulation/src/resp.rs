//! RESP: the protocol on the server's side. It makes commands of bytes, operations of commands, and bytes of replies.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use locktender::Remaining;
use locktender::internals::name::{Keys, Kind};
use locktender::internals::redis::Script;
use locktender::machine::{UNKNOWN_REPLID, owner_of};
use locktender::op::job::Ending;
use locktender::op::{
    Adoption, Beside, HistoryEntry, HistoryNote, HoldState, LockOp, Op, QueuePlace, Queued, QuorumConfig, Reply, Verb, Verdict,
};

use super::jobs;
use super::several;

/// The first command in these bytes, and its length in bytes; `None` if not all of it is there.
pub(super) fn command(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let mut at = 0;
    let count = number(bytes, &mut at)?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = number(bytes, &mut at)?;
        words.push(String::from_utf8_lossy(bytes.get(at..at + length)?).into_owned());
        at += length + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}

/// The number behind the next sign, up to the end of the line.
fn number(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let line = bytes.get(*at + 1..)?;
    let end = line.iter().position(|byte| *byte == b'\r').filter(|end| *end + 1 < line.len())?;
    *at += end + 3;
    std::str::from_utf8(&line[..end]).ok()?.parse().ok()
}

/// The name of the script that compares and deletes.
pub(super) const COMPARE: &str = "compare";

/// The name of the operation whose script has this hash or text.
pub(super) fn script(word: &str) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<String, &'static str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let (ttl_ms, fence) = (1, 1);
        let of_lock = |kind| {
            let keys = Keys::new(kind, "", "any", true).map(Arc::new).ok()?;
            let (adopt, place, quorum_config) = (None, None, None);
            let job = (kind == Kind::Job).then_some(jobs::ANY);
            let verbs = [
                Verb::Acquire { ttl_ms, proposal: 1, adopt, fair: false, place, quorum_config, job: job.map(Box::new) },
                Verb::Confirm { fence },
                Verb::Extend { ttl_ms, fence },
                Verb::Heal { ttl_ms, fence },
                Verb::Release { leave: None, kept_ms: 0 },
                Verb::Inspect,
                if job.is_some() { jobs::any_end() } else { Verb::Leave },
            ];
            Some(verbs.map(|verb| Op::Lock(LockOp { keys: Arc::clone(&keys), by: Arc::from(""), verb })))
        };
        let of_locks =
            [Kind::Exclusive, Kind::Quorum, Kind::Read, Kind::Several, Kind::Job].into_iter().filter_map(of_lock).flatten();
        let others = [Op::Greet { quorum_config: None }, Op::Trust { quorum_config: QuorumConfig { servers: 1, max_ttl_ms: 1 } }];
        let both = |op: Op| {
            let (script, name) = (Script::of(&op)?, name(&op));
            let words = [false, true].map(|header| [script.sha(header).to_string(), script.text(header).to_owned()]);
            Some(words.into_iter().flatten().map(move |word| (word, name)))
        };
        let compare = [Script::compare().sha(false).to_string(), Script::compare().text(false).to_owned()];
        of_locks.chain(others).filter_map(both).flatten().chain(compare.map(|word| (word, COMPARE))).collect()
    });
    names.get(word).copied()
}

/// The quorum of a marker.
pub(super) fn marked(text: &str) -> Option<QuorumConfig> {
    let mut fields = text.split(' ');
    let mut number = |key: &str| fields.next()?.strip_prefix(key)?.parse().ok();
    let servers = number("n=")?;
    Some(QuorumConfig { servers: u32::try_from(servers).ok()?, max_ttl_ms: number("max_ttl=")? })
}

/// The replication id that the client of an acquire knows, by the marker in its words.
pub(super) fn known_as(words: &[String]) -> &str {
    let marker = words.iter().find(|word| word.starts_with("n=")).map(String::as_str).unwrap_or_default();
    marker.split(' ').find_map(|field| field.strip_prefix("run=")).unwrap_or(UNKNOWN_REPLID)
}

/// The name of an operation's script.
fn name(op: &Op) -> &'static str {
    if let Some(name) = jobs::name(op).or_else(|| several::name(op)) {
        return name;
    }
    let proposes = op.keys().is_some_and(|keys| keys.kind() == Kind::Quorum) && matches!(op.verb(), Some(Verb::Acquire { .. }));
    if proposes { PROPOSES } else { op.name() }
}

/// The script of an acquire with a proposal: one more word stands behind it.
const PROPOSES: &str = "propose";

/// The operation of a script that is called with these words.
pub(super) fn op(script: &str, words: &[String], known: &[Arc<Keys>]) -> Option<Op> {
    let count: usize = words.first()?.parse().ok()?;
    let keys = || known.iter().find(|keys| Some(keys.lock()) == words.get(1).map(String::as_str)).cloned();
    let rest = words.get(1 + count..)?;
    let text = |at: usize| rest.get(at).map(String::as_str).unwrap_or_default();
    let number = |at: usize| text(at).parse::<u64>().ok();
    let owner = || Arc::<str>::from(text(0));
    let quorum_config = |at: usize| Some(QuorumConfig { servers: u32::try_from(number(at)?).ok()?, max_ttl_ms: number(at + 1)? });
    Some(match script {
        "acquire" | PROPOSES => {
            let behind = if script == PROPOSES { 4 } else { 3 };
            let (mode, adopted) = (text(behind), text(behind + 3));
            let count = |at: usize| if text(at).is_empty() { Some(0) } else { number(at) };
            let place = if mode.len() > 1 {
                Some(QueuePlace { entry: mode.into(), arrival: count(behind + 1)?, stays: count(behind + 2)? == 1 })
            } else {
                None
            };
            Op::Lock(LockOp {
                keys: keys()?,
                by: owner(),
                verb: Verb::Acquire {
                    ttl_ms: number(1)?,
                    proposal: count(2)?,
                    adopt: (!adopted.is_empty()).then(|| Adoption {
                        owner: adopted.into(),
                        or_acquire: mode != "o",
                        beside: false,
                    }),
                    fair: mode.starts_with('f'),
                    place,
                    quorum_config: marked(text(behind + 4)),
                    job: None,
                },
            })
        }
        "confirm" => Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Confirm { fence: number(1)? } }),
        "extend" => Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Extend { ttl_ms: number(1)?, fence: number(2)? } }),
        "heal" => Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Heal { ttl_ms: number(1)?, fence: number(2)? } }),
        // A waiter that leaves a queue has no hold: its own name is no owner.
        "release" if text(0) == text(1) => Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Leave }),
        "release" => {
            let leave = Some(text(1)).filter(|leave| !leave.is_empty()).map(Arc::from);
            Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Release { leave, kept_ms: 0 } })
        }
        "inspect" => Op::inspect(keys()?),
        "greet" => Op::Greet { quorum_config: quorum_config(0) },
        "trust" => Op::Trust { quorum_config: quorum_config(0)? },
        _ => return None,
    })
}

/// The acquire that a transaction does: `SET <lock> <owner> NX PX <ms>`, and `XADD <clock> …`.
pub(super) fn taken(set: &[String], clock: &[String], known: &[Arc<Keys>]) -> Option<Op> {
    let keys = known.iter().find(|keys| set.get(1).is_some_and(|lock| keys.lock() == lock))?;
    let text = |at: usize| set.get(at).map(String::as_str);
    let is_it = set.len() == 6 && (text(0), text(3), text(4)) == (Some("SET"), Some("NX"), Some("PX"));
    let adds = clock.first().map(String::as_str) == Some("XADD") && clock.get(1).map(String::as_str) == Some(keys.clock());
    let verb = Verb::Acquire {
        ttl_ms: text(5)?.parse().ok()?,
        proposal: 0,
        adopt: None,
        fair: false,
        place: None,
        quorum_config: None,
        job: None,
    };
    (is_it && adds).then(|| Op::Lock(LockOp { keys: Arc::clone(keys), by: text(2).unwrap_or_default().into(), verb }))
}

/// The release that a comparison does, with the lock and its value.
pub(super) fn deleted(words: &[String], known: &[Arc<Keys>]) -> Option<Op> {
    let keys = known.iter().find(|keys| words.first().is_some_and(|lock| keys.lock() == lock))?;
    let by = owner_of(words.get(1)?).into();
    Some(Op::Lock(LockOp { keys: Arc::clone(keys), by, verb: Verb::Release { leave: None, kept_ms: 0 } }))
}

/// The results of that transaction.
pub(super) fn executed(took: bool, (ms, number): (u64, u64)) -> String {
    format!("*2\r\n{}{}", if took { "+OK\r\n" } else { "$-1\r\n" }, bulk(&format!("{ms}-{number}")))
}

/// The operation on the history of these words.
pub(super) fn about_history(words: &[String]) -> Option<Op> {
    let text = |at: usize| words.get(at).map(String::as_str);
    let number = |at: usize| text(at)?.parse().ok();
    if text(0) == Some("XREVRANGE") {
        return Some(Op::History { before: None, since_ms: number(3)?, count: text(5)?.parse().ok()? });
    }
    let (lock, owner, state) = (text(6)?.into(), text(8)?.into(), HoldState::read(text(12)?)?);
    let beside = Beside::read(text(14).unwrap_or_default())?;
    Some(Op::Log(Box::new(HistoryNote { lock, owner, fence: number(10)?, state, beside })))
}

/// The answer about the history.
pub(super) fn shown(reply: &Reply) -> String {
    let Verdict::Logged(entries) = &reply.verdict else { return bulk("1-0") };
    let entry = |HistoryEntry { id: (ms, number), note }: &HistoryEntry| {
        let (fence, state, beside) = (note.fence.to_string(), note.state.as_str(), note.beside.as_str());
        let fields = ["l", &note.lock, "o", &note.owner, "f", &fence, "s", state, "k", beside].map(bulk);
        format!("*2\r\n{}*10\r\n{}", bulk(&format!("{ms}-{number}")), fields.concat())
    };
    format!("*{}\r\n{}", entries.len(), entries.iter().map(entry).collect::<String>())
}

pub(super) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The number that a script may answer in place of a list, where it does what was asked for and there is nothing more to answer.
/// Which one it answers depends on what it finds; here it is one of the two.
fn number_of(op: &Op, reply: &Reply) -> Option<i64> {
    let is_quorum = op.keys().is_some_and(|keys| keys.kind() == Kind::Quorum);
    if op.keys().is_some_and(|keys| keys.kind().is_shared()) {
        return None;
    }
    let is_number = !is_quorum && matches!(op.verb(), Some(Verb::Extend { .. }));
    if reply.queued != Queued::Nothing || reply.waits || reply.time_us.is_multiple_of(2) && !is_number {
        return None;
    }
    let number = |number: u64| i64::try_from(number).ok();
    match (op, &reply.verdict) {
        (Op::Lock(LockOp { verb: Verb::Acquire { proposal, .. }, .. }), Verdict::Vote)
            if is_quorum && reply.fence == *proposal =>
        {
            number(if reply.time_us % 4 == 1 { 0 } else { reply.time_us })
        }
        (Op::Lock(LockOp { verb: Verb::Extend { .. }, .. }), Verdict::Ok) => number(reply.time_us).map(|time| -time),
        (Op::Lock(LockOp { verb: Verb::Release { .. }, .. }), Verdict::Ok) => Some(1),
        (Op::Lock(LockOp { verb: Verb::EndAttempt { ending: Ending::Done { .. }, .. }, .. }), Verdict::Ok) => {
            number(reply.time_us)
        }
        _ => None,
    }
}

/// The answer of an operation's script.
pub(super) fn reply(op: &Op, reply: &Reply) -> String {
    if let Some(number) = number_of(op, reply) {
        return format!(":{number}\r\n");
    }
    let nobody = Remaining::Gone;
    let (tag, fourth, remaining) = match &reply.verdict {
        Verdict::Held { holder, remaining } => ("held", Some(holder.as_str()), *remaining),
        Verdict::No { holder, remaining } => ("no", holder.as_deref(), *remaining),
        Verdict::Conflict { found } => ("conflict", Some(found.as_str()), nobody),
        Verdict::Quarantine { left } => ("quarantine", None, Remaining::For(*left)),
        Verdict::NewReplid => ("era", None, nobody),
        Verdict::Mismatch { quorum } => ("mismatch", Some(quorum.as_str()), nobody),
        Verdict::Seen { holder, remaining, .. } => ("info", holder.as_deref(), *remaining),
        // After a release the lock has no owner; after all other operations it is ours.
        done => {
            let is_gone = matches!(op.verb(), Some(Verb::Release { .. } | Verb::Leave | Verb::EndAttempt { .. }));
            let tag = if *done == Verdict::Vote { "vote" } else { "ok" };
            (tag, op.owner().filter(|_| !is_gone).map(|owner| &**owner), nobody)
        }
    };
    let is_refused = matches!(reply.verdict, Verdict::No { .. }) && reply.last_fence > 0;
    let holder = fourth.map_or("$-1\r\n".to_owned(), bulk);
    let remaining = match remaining {
        Remaining::For(span) => i64::try_from(span.as_millis()).unwrap_or(i64::MAX),
        Remaining::Forever => -1,
        _ => -2,
    };
    let queued = match &reply.queued {
        Queued::At { rank, arrival } => format!(":{rank}\r\n:{arrival}\r\n"),
        Queued::NotNotified(why) => bulk(why),
        Queued::Waiters { count, first } => {
            format!(":{count}\r\n*{}\r\n{}", first.len(), first.iter().map(|entry| bulk(entry)).collect::<String>())
        }
        // Every other server is of version 7.
        _ if reply.waits => ":1\r\n".to_owned(),
        _ if is_refused => format!("$-1\r\n:{}\r\n", reply.last_fence),
        _ if matches!(op, Op::Greet { .. }) => format!(":{}\r\n", if reply.time_us.is_multiple_of(2) { 0 } else { 0x0007_0000 }),
        _ => String::new(),
    };
    let more = match &reply.queued {
        Queued::At { .. } | Queued::Waiters { .. } => 2,
        Queued::NotNotified(_) => 1,
        _ if reply.waits => 1,
        _ if is_refused => 2,
        _ => usize::from(matches!(op, Op::Greet { .. })),
    };
    let (queued, more) = match op {
        Op::Lock(LockOp { keys, verb: Verb::Acquire { .. }, .. }) if keys.kind() == Kind::Several => {
            let fences = || reply.fences.iter().map(|fence| format!(":{fence}\r\n")).collect::<String>();
            let is_granted = reply.verdict == Verdict::Vote;
            let ninth =
                if is_granted { format!("*{}\r\n{}", reply.fences.len(), fences()) } else { format!(":{}\r\n", reply.at + 1) };
            (format!("{queued}{}{ninth}", "$-1\r\n".repeat(3 - more)), 4)
        }
        _ => (queued, more),
    };
    let (tag, time, fence) = (bulk(tag), reply.time_us, reply.fence);
    let fields = format!("{tag}:{time}\r\n:{fence}\r\n{holder}:{remaining}\r\n");
    let begins = matches!(op.verb(), Some(Verb::Acquire { job: Some(_), .. }));
    if let Some(begun) = jobs::begun(reply, &fields, &queued).filter(|_| begins) {
        return begun;
    }
    format!("*{}\r\n{fields}{queued}", 5 + more)
}

/// A server's answer to a subscription.
pub(super) fn subscribed(kind: &str, channel: &str) -> String {
    format!("*3\r\n{}{}:1\r\n", bulk(kind), bulk(channel))
}

/// A message on a channel.
pub(super) fn message(channel: &str, payload: &str) -> String {
    format!("*3\r\n{}{}{}", bulk("smessage"), bulk(channel), bulk(payload))
}

/// A server's answer to `INFO`, of each section.
pub(super) fn info(run_id: &str, (replid, followed): (&str, Option<&str>), replicas: u8, time_us: u64) -> String {
    let version = if run_id.ends_with(['0', '2', '4', '6', '8']) { 6 } else { 7 };
    let server =
        format!("redis_version:{version}.2.0\r\nrun_id:{run_id}\r\nredis_mode:standalone\r\nserver_time_usec:{time_us}\r\n");
    // Every third server can compare and delete.
    let valkey = if run_id.ends_with(['0', '3', '6', '9']) { "valkey_version:9.0.0\r\n" } else { "" };
    let server = format!("{server}{valkey}");
    let before = followed.unwrap_or("0000");
    let replicas = format!("connected_slaves:{replicas}\r\nrepl_backlog_active:{replicas}\r\n");
    bulk(&format!("{server}role:master\r\n{replicas}master_replid:{replid}\r\nmaster_replid2:{before}\r\n"))
}

/// A server's answer to `TIME`.
pub(super) fn time(time_us: u64) -> String {
    format!("*2\r\n{}{}", bulk(&(time_us / 1_000_000).to_string()), bulk(&(time_us % 1_000_000).to_string()))
}
