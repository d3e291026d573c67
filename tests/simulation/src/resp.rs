//! RESP: the protocol on the server's side. It makes commands of bytes, operations of commands, and bytes of replies.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use locktender::Remaining;
use locktender::internals::name::{Keys, Kind};
use locktender::internals::redis::Script;
use locktender::machine::UNKNOWN_ERA;
use locktender::op::{Adoption, LockOp, Op, Place, Queued, QuorumConfig, Reply, Verb, Verdict};

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

/// The name of the operation whose script has this hash or text.
pub(super) fn script(word: &str) -> Option<&'static str> {
    static NAMES: OnceLock<HashMap<String, &'static str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let Ok(keys) = Keys::new(Kind::Exclusive, "", "any", true).map(Arc::new) else { return HashMap::new() };
        let owner: Arc<str> = Arc::from("");
        let (adopt, place, quorum_config) = (None, None, None);
        let (ttl_ms, fence) = (1, 1);
        let ops = [
            Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Acquire { ttl_ms, proposal: 1, adopt, fair: false, place, quorum_config, job: None },
            }),
            Op::Lock(LockOp { keys: Arc::clone(&keys), by: Arc::clone(&owner), verb: Verb::Confirm { fence } }),
            Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Extend { ttl_ms, fence, lock_only: false, timed: true },
            }),
            Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Extend { ttl_ms, fence, lock_only: true, timed: true },
            }),
            Op::Lock(LockOp { keys: Arc::clone(&keys), by: Arc::clone(&owner), verb: Verb::Heal { ttl_ms, fence } }),
            Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: owner,
                verb: Verb::Release { leave: None, single_server: true, kept_ms: 0 },
            }),
            Op::inspect(keys),
            Op::Greet { quorum_config },
            Op::Trust { quorum_config: QuorumConfig { servers: 1, max_ttl_ms: 1 } },
        ];
        let both = |op: &Op| {
            let (script, name) = (Script::of(op)?, name(op));
            let words = [false, true].map(|header| [script.sha(header).to_string(), script.text(header).to_owned()]);
            Some(words.into_iter().flatten().map(move |word| (word, name)))
        };
        ops.iter().filter_map(both).flatten().collect()
    });
    names.get(word).copied()
}

/// The quorum of a marker.
fn marked(text: &str) -> Option<QuorumConfig> {
    let mut fields = text.split(' ');
    let mut number = |key: &str| fields.next()?.strip_prefix(key)?.parse().ok();
    let servers = number("n=")?;
    Some(QuorumConfig { servers: u32::try_from(servers).ok()?, max_ttl_ms: number("max_ttl=")? })
}

/// The era in which the client of an acquire was greeted, by the marker in its words.
pub(super) fn greeted_in(words: &[String]) -> &str {
    let marker = words.iter().find(|word| word.starts_with("n=")).map(String::as_str).unwrap_or_default();
    marker.split(' ').find_map(|field| field.strip_prefix("run=")).unwrap_or(UNKNOWN_ERA)
}

/// The name of an operation's script.
fn name(op: &Op) -> &'static str {
    if matches!(op.verb(), Some(Verb::Extend { lock_only: true, .. })) { "renew" } else { op.name() }
}

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
        "acquire" => {
            let (mode, adopted) = (text(4), text(7));
            let count = |at: usize| if text(at).is_empty() { Some(0) } else { number(at) };
            let place =
                if mode.len() > 1 { Some(Place { entry: mode.into(), arrival: count(5)?, stays: count(6)? == 1 }) } else { None };
            Op::Lock(LockOp {
                keys: keys()?,
                by: owner(),
                verb: Verb::Acquire {
                    ttl_ms: number(1)?,
                    proposal: number(2)?,
                    adopt: (!adopted.is_empty()).then(|| Adoption { owner: adopted.into(), or_acquire: mode != "o" }),
                    fair: mode.starts_with('f'),
                    place,
                    quorum_config: marked(text(8)),
                    job: None,
                },
            })
        }
        "confirm" => Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Confirm { fence: number(1)? } }),
        "extend" => Op::Lock(LockOp {
            keys: keys()?,
            by: owner(),
            verb: Verb::Extend { ttl_ms: number(1)?, fence: number(2)?, lock_only: false, timed: true },
        }),
        // The fence isn't sent.
        "renew" => {
            let timed = number(2).is_some();
            Op::Lock(LockOp {
                keys: keys()?,
                by: owner(),
                verb: Verb::Extend { ttl_ms: number(1)?, fence: 0, lock_only: true, timed },
            })
        }
        "heal" => Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Heal { ttl_ms: number(1)?, fence: number(2)? } }),
        // A waiter that leaves a queue has no hold: its own name is no owner.
        "release" if text(0) == text(1) => {
            Op::Lock(LockOp { keys: keys()?, by: owner(), verb: Verb::Leave { single_server: text(2) != "1" } })
        }
        "release" => {
            let leave = Some(text(1)).filter(|leave| !leave.is_empty()).map(Arc::from);
            Op::Lock(LockOp {
                keys: keys()?,
                by: owner(),
                verb: Verb::Release { leave, single_server: text(2) != "1", kept_ms: 0 },
            })
        }
        "inspect" => Op::inspect(keys()?),
        "greet" => Op::Greet { quorum_config: quorum_config(0) },
        "trust" => Op::Trust { quorum_config: quorum_config(0)? },
        _ => return None,
    })
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The number that a script may answer in place of a list, where it does what was asked for and there is nothing more to say. Which
/// one it answers depends on what it finds; here it is one of the two.
fn number_of(op: &Op, reply: &Reply) -> Option<i64> {
    let lock_only = matches!(op.verb(), Some(Verb::Extend { lock_only: true, .. }));
    if reply.queued != Queued::Nothing || reply.time_us.is_multiple_of(2) && !lock_only {
        return None;
    }
    let number = |number: u64| i64::try_from(number).ok();
    match (op, &reply.verdict) {
        (Op::Lock(LockOp { verb: Verb::Acquire { proposal, .. }, .. }), Verdict::Vote) if reply.fence == *proposal => {
            number(if reply.time_us % 4 == 1 { 0 } else { reply.time_us })
        }
        (Op::Lock(LockOp { verb: Verb::Extend { timed: false, .. }, .. }), Verdict::Ok) => Some(-1),
        (Op::Lock(LockOp { verb: Verb::Extend { .. }, .. }), Verdict::Ok) => number(reply.time_us).map(|time| -time),
        (Op::Lock(LockOp { verb: Verb::Release { .. }, .. }), Verdict::Ok) => Some(1),
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
        Verdict::NewEra => ("era", None, nobody),
        Verdict::Mismatch { quorum } => ("mismatch", Some(quorum.as_str()), nobody),
        Verdict::Seen { holder, remaining } => ("info", holder.as_deref(), *remaining),
        // After a release the lock has no owner; after all other operations it is ours.
        done => {
            let is_gone = matches!(op.verb(), Some(Verb::Release { .. } | Verb::Leave { .. }));
            let tag = if *done == Verdict::Vote { "vote" } else { "ok" };
            (tag, op.owner().filter(|_| !is_gone).map(|owner| &**owner), nobody)
        }
    };
    let holder = fourth.map_or("$-1\r\n".to_owned(), bulk);
    let remaining = match remaining {
        Remaining::For(span) => i64::try_from(span.as_millis()).unwrap_or(i64::MAX),
        Remaining::Forever => -1,
        Remaining::Gone => -2,
    };
    let queued = match &reply.queued {
        Queued::At { rank, arrival } => format!(":{rank}\r\n:{arrival}\r\n"),
        Queued::NotNotified(why) => bulk(why),
        Queued::Waiters { count, first } => {
            format!(":{count}\r\n*{}\r\n{}", first.len(), first.iter().map(|entry| bulk(entry)).collect::<String>())
        }
        // Every other server is of version 7.
        _ if matches!(op, Op::Greet { .. }) => format!(":{}\r\n", if reply.time_us.is_multiple_of(2) { 0 } else { 0x0007_0000 }),
        _ => String::new(),
    };
    let more = match &reply.queued {
        Queued::At { .. } | Queued::Waiters { .. } => 2,
        Queued::NotNotified(_) => 1,
        _ => usize::from(matches!(op, Op::Greet { .. })),
    };
    let (tag, time, fence) = (bulk(tag), reply.time_us, reply.fence);
    format!("*{}\r\n{tag}:{time}\r\n:{fence}\r\n{holder}:{remaining}\r\n{queued}", 5 + more)
}

/// A server's answer to a subscription: a push in RESP3, else a list.
pub(super) fn subscribed(resp3: bool, kind: &str, channel: &str) -> String {
    format!("{}3\r\n{}{}:1\r\n", if resp3 { '>' } else { '*' }, bulk(kind), bulk(channel))
}

/// A message on a channel.
pub(super) fn message(resp3: bool, channel: &str, payload: &str) -> String {
    format!("{}3\r\n{}{}{}", if resp3 { '>' } else { '*' }, bulk("smessage"), bulk(channel), bulk(payload))
}

/// A server's answer to `INFO`, of each section.
pub(super) fn info(run_id: &str, (era, followed): (&str, Option<&str>), time_us: u64) -> String {
    let version = if run_id.ends_with(['0', '2', '4', '6', '8']) { 6 } else { 7 };
    let server =
        format!("redis_version:{version}.2.0\r\nrun_id:{run_id}\r\nredis_mode:standalone\r\nserver_time_usec:{time_us}\r\n");
    let before = followed.unwrap_or("0000");
    bulk(&format!("{server}role:master\r\nmaster_replid:{era}\r\nmaster_replid2:{before}\r\n"))
}

/// A server's answer to `TIME`.
pub(super) fn time(time_us: u64) -> String {
    format!("*2\r\n{}{}", bulk(&(time_us / 1_000_000).to_string()), bulk(&(time_us % 1_000_000).to_string()))
}
