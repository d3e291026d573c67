//! Server reports: the facts about each server of a client, and the guarantees that it can give.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Now;
use crate::error::quoted::quoted;
use crate::error::{Error, ServerFailure};
use crate::op::{Answer, ClusterFacts, FailureKind, QuorumConfig, Reply, SentinelFacts, Verdict};
use crate::protocol::failures;
use crate::sync::Mutex;

/// The guarantees of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// The server's address, without credentials.
    pub server: String,
    /// The reason why the server didn't answer; then the other fields are empty.
    pub failure: Option<ServerFailure>,
    /// The product and its version, such as `valkey 9.1.2`.
    pub version: Option<String>,
    /// `master` or `slave`, as the server calls itself.
    pub role: Option<String>,
    /// `aof`, `rdb` (the time of the last snapshot is what a crash goes back to) or `none`.
    pub persistence: Option<String>,
    /// The server's eviction policy for a full memory. Any policy but `noeviction` may evict a lock.
    pub eviction: Option<String>,
    /// The server's clock minus this machine's clock, in milliseconds; negative if the server's clock is behind.
    pub clock_offset_ms: Option<i64>,
    /// The commands that locks need and this client's user may not run, one line each; `None` if the server doesn't show them.
    /// Example: `PEXPIRE of :~lt:probe, to renew and extend a lock`.
    pub denied: Option<Vec<String>>,
    /// Warnings for an operator, one sentence each.
    pub warnings: Vec<String>,
}

/// The difference between clocks from which on a report warns, in milliseconds.
const OFFSET_WORTH_A_WARNING: u64 = 1_000;

/// What the client asks of its servers, so far as a report depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ClientTerms {
    /// The ttl of its locks.
    pub ttl: Duration,
    /// Whether a server that has failed over is in quarantine.
    pub quarantine: bool,
    /// How many replicas have to confirm a grant.
    pub replicas: u32,
    /// Whether a tag in their prefix puts all its locks into one slot.
    pub has_one_slot: bool,
}

/// The reports so far. A server's clock is compared as soon as its answer arrives, however late other servers answer.
#[derive(Debug)]
pub struct Reports {
    servers: Arc<[String]>,
    terms: ClientTerms,
    reports: Mutex<Vec<Option<ServerReport>>>,
}

impl Reports {
    /// Empty reports of these servers.
    #[must_use]
    pub fn of(servers: Arc<[String]>, terms: ClientTerms) -> Self {
        let reports = Mutex::new(vec![None; servers.len()]);
        Self { servers, terms, reports }
    }

    /// Takes the answers that arrived by `now`: those to `Examine`, those to `Probe`, and, where replicas have to confirm
    /// something, those to `AwaitReplicas`. Gives one report per server when all servers have answered all.
    pub fn take(&self, answers: &[Option<Answer>], now: Now) -> Option<Vec<ServerReport>> {
        let (examined, others) = answers.split_at(self.servers.len());
        let (probed, waited) = others.split_at(self.servers.len());
        let mut reports = self.reports.lock();
        for ((report, server), answer) in reports.iter_mut().zip(&*self.servers).zip(examined) {
            if let (None, Some(answer)) = (&report, answer) {
                *report = Some(ServerReport::of(server, answer, self.terms, now));
            }
        }
        let permitted = |(at, report): (usize, &Option<ServerReport>)| {
            let waited = waited.get(at).map_or(Some(None), |answer| answer.as_ref().map(Some))?;
            Some(report.clone()?.permitted(probed[at].as_ref()?, waited))
        };
        reports.iter().enumerate().map(permitted).collect()
    }
}

impl ServerReport {
    fn of(server: &str, answer: &Answer, terms: ClientTerms, now: Now) -> Self {
        let mut report = Self { server: server.to_owned(), ..Self::default() };
        match answer {
            Ok(reply) => report.fill(reply, terms, now),
            Err(failure) => {
                // A refusal by the server, not by a connection that could not be opened.
                if failure.kind == FailureKind::Denied && failure.maybe_applied {
                    let blind = "INFO is not permitted: neither a restart with old data nor a server listed twice is noticed";
                    report.warnings.push(blind.to_owned());
                }
                report.failure = Some(ServerFailure::of(server, failure));
            }
        }
        report
    }

    /// Adds the rights that the server's answers show.
    fn permitted(mut self, probed: &Answer, waited: Option<&Answer>) -> Self {
        self.denied = match probed {
            Ok(Reply { verdict: Verdict::Probed { missing }, .. }) => Some(missing.clone()),
            // The script itself was denied: the message names the missing rights.
            Err(failure) if failure.kind == FailureKind::Denied && failure.maybe_applied => Some(vec![failure.message.clone()]),
            _ => None,
        };
        if let (Some(denied), Some(Err(failure))) = (&mut self.denied, waited)
            && failure.kind == FailureKind::Denied
        {
            denied.push("WAIT, to have replicas confirm what is granted".to_owned());
        }
        self.warnings.extend(self.denied.iter().flatten().map(|missing| format!("a right is missing: {missing}")));
        self
    }

    fn fill(&mut self, reply: &Reply, terms: ClientTerms, now: Now) {
        let facts = if let Verdict::Described(facts) = &reply.verdict { Some(facts) } else { None };
        if let Some(facts) = facts {
            self.version = Some(facts.version.clone());
            self.role = Some(facts.role.clone());
            self.persistence = Some(facts.persistence.clone());
            self.eviction = Some(facts.eviction.clone());
        }
        if reply.time_us > 0 {
            self.clock_offset_ms =
                Some((i64::try_from(reply.time_us).unwrap_or(0) - i64::try_from(now.wall_us).unwrap_or(0)) / 1_000);
        }
        self.warnings = self.concerns(facts.is_some_and(|facts| facts.is_writable_replica));
        if facts.is_some_and(|facts| facts.in_cluster && facts.cluster.is_none()) {
            let why = "it is a node of a cluster: write redis+cluster://, or a lock whose slot moves to another node can't be taken or \
                       renewed";
            self.warnings.push(why.to_owned());
        }
        if facts.is_some_and(|facts| !facts.shows_replid) {
            let why = "it does not show its replication id (master_replid in INFO), as behind a proxy: a failover is not noticed as such, and each hold \
                       learns at its next renewal whether it is still there";
            self.warnings.push(why.to_owned());
        }
        let cluster = facts.and_then(|facts| facts.cluster.as_ref());
        self.warnings.extend(cluster.and_then(|facts| spread(facts, terms)));
        self.warnings.extend(cluster.and_then(unserved));
        self.warnings.extend(facts.and_then(|facts| replicated(facts.replicas, terms)));
        self.warnings
            .extend(facts.and_then(|facts| facts.sentinels.as_ref()).map(|facts| watched(facts, terms)).into_iter().flatten());
    }

    fn concerns(&self, is_writable_replica: bool) -> Vec<String> {
        let mut concerns = Vec::new();
        if self.role.as_deref() == Some("slave") {
            let why = if is_writable_replica {
                "it is a replica that accepts writes (replica-read-only no): its primary may grant a lock that it grants, too"
            } else {
                "it is a replica: locks can't be written there"
            };
            concerns.push(why.to_owned());
        }
        if let Some(policy) = self.eviction.as_deref().filter(|policy| *policy != "noeviction") {
            concerns
                .push(format!("its eviction policy is {}: a full memory may evict a held lock; use noeviction", quoted(policy)));
        }
        if self.persistence.as_deref() == Some("none") {
            concerns.push("it keeps nothing on disk: a restart forgets every lock".to_owned());
        }
        if let Some(offset) = self.clock_offset_ms.filter(|offset| offset.unsigned_abs() > OFFSET_WORTH_A_WARNING) {
            concerns.push(format!("its clock is {offset} ms off this machine's"));
        }
        concerns
    }
}

/// The warning about locks of a cluster that are all on one of its primaries.
fn spread(facts: &ClusterFacts, terms: ClientTerms) -> Option<String> {
    (terms.has_one_slot && facts.primaries > 1).then(|| {
        let others = facts.primaries - 1;
        format!(
            "the prefix has a {{tag}}, which puts every lock into one slot, on one primary: the other {others} have none of them"
        )
    })
}

/// The warning about slots of a cluster without a node.
fn unserved(facts: &ClusterFacts) -> Option<String> {
    (facts.unserved > 0).then(|| {
        format!(
            "{} of 16384 slots are served by no node: their locks can't be taken, and with cluster-require-full-coverage yes (the \
             default) no lock can",
            facts.unserved
        )
    })
}

/// The warning about the replicas that have to confirm a grant.
fn replicated(connected: u32, ClientTerms { replicas, quarantine, .. }: ClientTerms) -> Option<String> {
    if connected < replicas {
        return Some(format!(
            "{replicas} replicas have to confirm each grant, and {connected} are connected to it: nothing is granted or extended"
        ));
    }
    let is_enough = replicas == 0 || connected == replicas || quarantine;
    (!is_enough).then(|| {
        format!(
            "{replicas} replicas have to confirm each grant, and {connected} are connected to it: a failover may choose one that \
             doesn't know the lock; let all of them confirm it, or use failover \"quarantine\""
        )
    })
}

/// How long a failover takes at the most once the sentinels consider the primary down, as it was measured, in seconds.
const ELECTION: u64 = 6;

/// The number of sentinels of which one may fail.
const ENOUGH: usize = 3;

/// The warnings about a server that sentinels watch.
fn watched(facts: &SentinelFacts, terms: ClientTerms) -> Vec<String> {
    let SentinelFacts { known, answered, quorum, down_after_ms, ref foreign } = *facts;
    let mut warnings: Vec<String> = foreign
        .iter()
        .map(|place| {
            let place = quoted(place);
            format!(
                "the sentinel {place} belongs to another group, which has a service of the same name: it is not followed; take it out of the URL"
            )
        })
        .collect();
    let needed = quorum.max(known as u64 / 2 + 1);
    if known < ENOUGH {
        warnings.push(format!(
            "the sentinels that watch it are too few, {known}: without one of them there is no failover; use {ENOUGH} or more"
        ));
    }
    if (answered as u64) < needed {
        warnings.push(format!("{answered} of {known} sentinels answer, and a failover needs {needed}: there will be none"));
    } else if answered < known {
        warnings.push(format!("only {answered} of {known} sentinels answer; a failover needs {needed}"));
    }
    // A third of the ttl may be used up when the failover begins.
    let lives = (3 * (down_after_ms.div_ceil(1_000) + ELECTION)).div_ceil(2);
    if terms.ttl < Duration::from_secs(lives) {
        let (ttl, down) = (terms.ttl.as_secs_f64(), Duration::from_millis(down_after_ms).as_secs_f64());
        warnings.push(format!(
            "its sentinels begin a failover after {down} s of silence (down-after-milliseconds), and need up to {ELECTION} s for it: \
             a hold survives that with a ttl of {lives} s or more, and the ttl here is {ttl} s by default"
        ));
    }
    if !terms.quarantine && terms.replicas == 0 {
        let why = "a failover may forget the newest locks, and then grants them again while the first holders still count on them: this \
                   client has failover \"confirm\", and with \"quarantine\" no lock is granted twice";
        warnings.push(why.to_owned());
    }
    warnings
}

/// Whether every server took the marker that lets it vote at once.
pub fn trusted(servers: &[String], answers: &[Option<Answer>], quorum_config: QuorumConfig) -> Option<Result<(), Error>> {
    if answers.iter().any(Option::is_none) {
        return None;
    }
    for answer in answers.iter().flatten().flatten() {
        let why = match &answer.verdict {
            Verdict::Mismatch { quorum } => {
                format!("a server belongs to a quorum of {}, this client is configured for {quorum_config}", quoted(quorum))
            }
            Verdict::Conflict { found } => format!("a server's marker key holds something else: {}", quoted(found)),
            _ => continue,
        };
        return Some(Err(Error::invalid("servers", servers, why)));
    }
    let failed = failures(servers, answers);
    Some(if failed.is_empty() { Ok(()) } else { Err(Error::unavailable(None, servers.len(), failed)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Tick;
    use crate::op::ServerFacts;

    fn answer(time_us: u64) -> Option<Answer> {
        let facts =
            ServerFacts { role: "master".into(), eviction: "noeviction".into(), shows_replid: true, ..ServerFacts::default() };
        Some(Ok(Reply::new(Verdict::Described(Box::new(facts)), time_us, 0)))
    }

    const TERMS: ClientTerms = ClientTerms { ttl: Duration::from_secs(10), quarantine: false, replicas: 0, has_one_slot: false };

    fn at(wall_us: u64) -> Now {
        Now { tick: Tick::default(), wall_us, servers_us: 0 }
    }

    #[test]
    fn a_server_that_answers_late_does_not_make_the_clocks_of_the_others_look_slow() {
        let reports = Reports::of(["a".to_owned(), "b".to_owned()].into(), TERMS);
        assert_eq!(reports.take(&[answer(50_000_000), None, None, None], at(50_001_000)), None);
        let both = [answer(50_000_000), answer(58_000_000)];
        let probed = || Some(Ok(Reply::new(Verdict::Probed { missing: Vec::new() }, 0, 0)));
        assert_eq!(reports.take(&[both[0].clone(), both[1].clone(), probed(), None], at(55_000_000)), None);
        let reports = reports.take(&[both[0].clone(), both[1].clone(), probed(), probed()], at(55_500_000)).unwrap();
        let offsets: Vec<_> = reports.iter().map(|report| report.clock_offset_ms.unwrap()).collect();
        assert_eq!(offsets, [-1, 3_000]);
        assert_eq!(reports.iter().map(|report| report.warnings.len()).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_replica_is_warned_of_and_differently_if_it_accepts_writes() {
        for (is_writable_replica, words) in [(false, "locks can't be written there"), (true, "replica-read-only no")] {
            let facts = ServerFacts {
                role: "slave".into(),
                eviction: "noeviction".into(),
                persistence: "aof".into(),
                is_writable_replica,
                shows_replid: true,
                ..ServerFacts::default()
            };
            let report = ServerReport::of("a", &Ok(Reply::new(Verdict::Described(Box::new(facts)), 0, 0)), TERMS, at(0));
            assert!(matches!(&*report.warnings, [why] if why.contains(words)), "{:?}", report.warnings);
        }
    }

    #[test]
    fn a_server_that_hides_its_replid_is_warned_of() {
        let facts = ServerFacts { role: "master".into(), eviction: "noeviction".into(), ..ServerFacts::default() };
        let report = ServerReport::of("a", &Ok(Reply::new(Verdict::Described(Box::new(facts)), 0, 0)), TERMS, at(0));
        assert!(matches!(&*report.warnings, [why] if why.contains("a failover is not noticed")), "{:?}", report.warnings);
    }

    #[test]
    fn replicas_that_do_not_confirm_what_a_failover_may_need_are_warned_of() {
        for (connected, replicas, quarantine, words) in [
            (0, 0, false, None),
            (2, 0, false, None),
            (2, 2, false, None),
            (3, 2, true, None),
            (1, 2, true, Some("nothing is granted or extended")),
            (3, 2, false, Some("let all of them confirm it")),
        ] {
            let warning = replicated(connected, ClientTerms { quarantine, replicas, ..TERMS });
            assert_eq!(warning.is_some(), words.is_some(), "{warning:?}");
            assert!(warning.unwrap_or_default().contains(words.unwrap_or_default()));
        }
    }

    #[test]
    fn locks_that_are_all_on_one_primary_are_warned_of() {
        for (has_one_slot, primaries, is_warned_of) in [(false, 3, false), (true, 1, false), (true, 3, true)] {
            let warning = spread(&ClusterFacts { primaries, unserved: 0 }, ClientTerms { has_one_slot, ..TERMS });
            assert_eq!(warning.is_some(), is_warned_of);
            assert!(!is_warned_of || warning.unwrap().contains("the other 2 have none"));
        }
    }

    #[test]
    fn what_is_wrong_with_sentinels_is_warned_of() {
        let fit = SentinelFacts { known: 3, answered: 3, quorum: 2, down_after_ms: 1_500, foreign: Vec::new() };
        let long = ClientTerms { ttl: Duration::from_secs(60), quarantine: true, replicas: 0, has_one_slot: false };
        let cases: [(SentinelFacts, ClientTerms, &[&str]); 9] = [
            (SentinelFacts { foreign: vec!["x:1".into()], ..fit.clone() }, long, &["the sentinel x:1 belongs to another group"]),
            (fit.clone(), long, &[]),
            (fit.clone(), ClientTerms { ttl: Duration::from_secs(12), ..long }, &[]),
            (fit.clone(), ClientTerms { quarantine: false, ..long }, &["failover \"confirm\""]),
            (
                fit.clone(),
                ClientTerms { ttl: Duration::from_millis(10_500), ..long },
                &[
                    "after 1.5 s of silence (down-after-milliseconds), and need up to 6 s for it: a hold survives that with a ttl of 12 s or more, and the ttl here is 10.5 s",
                ],
            ),
            (
                SentinelFacts { down_after_ms: 30_000, ..fit.clone() },
                ClientTerms { ttl: Duration::from_secs(53), ..long },
                &["with a ttl of 54 s"],
            ),
            (SentinelFacts { answered: 2, ..fit.clone() }, long, &["only 2 of 3 sentinels answer; a failover needs 2"]),
            (
                SentinelFacts { answered: 2, quorum: 3, ..fit.clone() },
                long,
                &["2 of 3 sentinels answer, and a failover needs 3: there will be none"],
            ),
            (
                SentinelFacts { known: 1, answered: 1, quorum: 1, ..fit },
                long,
                &["too few, 1: without one of them there is no failover"],
            ),
        ];
        for (facts, terms, expected) in cases {
            let messages = watched(&facts, terms);
            assert_eq!(messages.len(), expected.len(), "{messages:?}");
            assert!(messages.iter().zip(expected).all(|(message, words)| message.contains(words)), "{messages:?}");
        }
    }
}
