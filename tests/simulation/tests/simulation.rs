//! The decision code against N servers and a bad network, in virtual time.
//!
//! `LOCKTENDER_SEEDS=2000` runs that many seeds from `LOCKTENDER_FIRST_SEED` on and names all that fail; `LOCKTENDER_SEED=17`
//! replays one and prints what happens:
//!
//! ```text
//! LOCKTENDER_SEEDS=20000 cargo test --release -p locktender-simulation --test simulation -- --nocapture seeds
//! LOCKTENDER_SEED=17 cargo test --release -p locktender-simulation --test simulation -- --nocapture seeds
//! ```
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use locktender_simulation::{self as simulation, Outcome, Stats};

/// Seeds that are run without further words: in `tests/run`, and where the long tests run.
const SEEDS: [u64; 2] = [300, 2_000];

/// Seeds that once failed, and the bug each showed.
const KEPT: &[(u64, &str)] = &[
    (15, "a waiter gave up the place that another of its process had enqueued, and nobody took it out of the queue"),
    (33, "a server that got no say in the grant kept the winner in its queue"),
    (145, "a server that answered after the grant had enqueued the winner, and kept it"),
    (54, "a server on which the lock was free notified the waiter that undid its vote there to try again, without end"),
    (64, "the same, with the others out of reach"),
    (17131, "a place was enqueued by another of its process after the vote of the one that got the lock, and nobody took it out"),
    (
        2071,
        "a grant took a shared place out of the queue, and the waiter that had come to it meanwhile stood in no queue until its turn",
    ),
    (
        183,
        "another library's holder was shown by a minority, the others being new, and a look was expected as soon as behind one that a majority shows",
    ),
    (
        903,
        "a release after a loss that had named its rival was expected to name it again, though that hold had ended and a server had forgotten its fence",
    ),
    (1842, "a minority showed an older holder of another library among the first answers, and the pause behind the new one grew"),
    (
        265,
        "a waiter that closes had been notified of a release, and undid that behind an acquire which was long on its way: it is a dead one so long",
    ),
    (528, "an adoption that came too late was refused on a free lock, and was expected to keep the lock for the first waiter"),
    (
        1407,
        "an acquire without an answer was read after the hold of the next round had expired, and its vote was reported as another's hold",
    ),
    (6182, "a release overtook a heal on the other connection, and was over before that wrote the key"),
    (7877, "the same, with another server"),
    (7115, "a refusal that was received after a grant gave the shared place the rank back that the grant had used up"),
    (
        36122,
        "a winner didn't leave where another of its process had enqueued their entry behind the vote, and was received first",
    ),
    (13359, "an extension that reached further than the one confirmed behind it was confirmed, and didn't count"),
    (5751, "an acquire that had timed out enqueued a shared place, when the last of its process had left that"),
    (26660, "a waiter with a short ttl left, and its acquire that had timed out enqueued it again later"),
    (17399, "a close took an acquire back on a server that didn't know the script of releases, and was over before that said so"),
    (35057, "a waiter left, and was taken out on a connection that was still to be made: the response timeout was too short"),
    (46286, "a close took an acquire back on a connection that was made at the last moment, by the hash of a script"),
    (45447, "a release was expected to report what an answer proved that came after its outcome was decided: the key had ended"),
    (7872, "the simulated server, stopped twice in a row, read two commands of one connection in the wrong order"),
    (16580, "a grant to a waiter of a shared place forgot that a server in quarantine, which didn't vote, had the place, too"),
    (2757, "the same as 35057, without a close"),
    (16470, "who got the lock after a close was expected to be named by a release that asked again for what the close had found"),
    (
        28818,
        "three that gave up in an outage stood in the queue, and their process didn't pass on the second's turn: it was expected to",
    ),
    (35787, "an acquire without an answer enqueued a waiter that had had the lock, given it back, and whose key had expired"),
    (
        37246,
        "a waiter came to a place which its server had dropped in an outage, and was expected in the queue before the one it shares that with had looked",
    ),
    (
        42094,
        "a confirmation found no key on a server whose connection had broken with the acquire, which was read behind the heal that followed",
    ),
    (
        42209,
        "a server asked for the script of a hold's first renewal, which took a round trip more, and the hold ended before its answer",
    ),
    (
        4790,
        "a waiter that left where a failover had lost the hold was followed by the claim of the next one, and the hold did not get its key again",
    ),
    (16298, "an extension that the server had read ahead of a heal, and answered behind it, ended the hold"),
    (28446, "a failover lost an extension and not the key, which the confirmation let end before the hold"),
    (9837, "a hold was confirmed long after its server was back: its connection waited to try again, and another one was up"),
    (26233, "the handshake of an old primary ended after that of its successor, and the client went back to it"),
    (13778, "a release before a close was sent by its hash, and the server's question for the script came after the end"),
    (
        2598,
        "an old primary granted a lock that had moved to its successor and ended there: nobody can know, and the page says so",
    ),
    (
        3148,
        "a promoted node still had the lock for a holder that had released it, and the hold was expected to be written over that",
    ),
    (
        50620,
        "an acquire that was cancelled on a connection that stayed open was undone on another one, and read when that was long over",
    ),
    (40086, "a vote from before a failover was answered behind it, and its loss was expected to be none"),
    (
        6073,
        "a client had read the old primary's clock when it connected, long before that was followed, and fences sank by the drift since then",
    ),
    (7009, "the same by less than two clocks may drift, and no drift was allowed"),
    (
        4463,
        "a process that was stopped until long after its hold's end read a server's refusal first, and was expected to get the key again",
    ),
    (32355, "a reader took over a hold of a long ttl, and its mark outlasted its own ttl, and so the retries of its release"),
    (6530, "a reader that entered beside another one of its client stayed in the queue"),
    (19252, "the same, and those who shared the place were not put into the queue again"),
    (835, "a promoted node whose clock was behind showed marks again that had expired, with a writer in the place of their gate"),
    (
        3764,
        "the extension of a lost writer's hold showed a gate, which names nobody, and its release was expected to name a holder",
    ),
    (55280, "an old primary granted a lock behind the return of its successor, and that was expected to keep it"),
    (
        127613,
        "a client was expected to know that a promoted node had lost its hold by a return, before a handshake could show it",
    ),
    (
        210846,
        "one of several locks was lost, and another one, no longer renewed, was expected to be written again behind a return",
    ),
    (
        21853,
        "an acquire that a release on the other connection had overtaken lay in a silent socket, which was given up before anything undid it there",
    ),
    (
        49775,
        "a waiter for several locks was dropped as a dead one of a free lock by its own acquire, and nobody was notified of that",
    ),
    (
        14391,
        "a waiter for several locks died in the queue of one, though the first of its process asked, which stood at another one",
    ),
    (307924, "a waiter came behind a transaction of its process, and was believed to be in the queue by that grant"),
    (300387, "a waiter whose answers came after its ttl was expected to know that another library has the lock"),
    (308538, "a server that nobody reached for long after its crash was expected to vote when its quarantine had just begun"),
    (
        314016,
        "a lock was kept for a waiter for several, another one of which was kept for another waiter, and was expected to be passed on",
    ),
    (
        33356,
        "a clock jumped forward after its server's last answer, and the fence of the next server was expected to be above it",
    ),
    (2347, "a release came between two heals on the server, and was over when it had undone the first"),
    (5139, "a socket had lingered, and was closed: what was read from it late was expected to come before any heal"),
    (
        1403753,
        "a paused client took the vote of an old primary when the next holder was there already, and only the other order was excused",
    ),
    (1411914, "a replica behind its primary had a waiter that had left, and a reset was expected to notify it"),
    (1426350, "an old primary answered over two failovers, and the difference of the clocks of the second was not counted"),
    (1412868, "a hint came just before a grant and had taken the slot out again: the next waiter believed to be in the queue"),
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {value:?}")))
}

/// Fails with the end of the trace of a failed run.
fn explain(seed: u64, why: &str) -> String {
    let trace = simulation::run(seed, true).trace;
    let end = trace.len().saturating_sub(40);
    format!(
        "seed {seed}: {why}\n{}\nall of it: LOCKTENDER_SEED={seed} cargo test -p locktender-simulation --test simulation -- --nocapture seeds",
        trace[end..].join("\n")
    )
}

fn sum(all: &mut Stats, one: &Stats) {
    all.events += one.events;
    all.acquires += one.acquires;
    all.rounds += one.rounds;
    all.grants += one.grants;
    all.renewals += one.renewals;
    all.losses += one.losses;
    all.releases += one.releases;
    all.unavailable += one.unavailable;
    all.passed += one.passed;
    all.simulated_us += one.simulated_us;
}

#[test]
fn seeds_keep_every_promise() {
    if let Some(seed) = number("LOCKTENDER_SEED") {
        let Outcome { violation, trace, stats, .. } = simulation::run(seed, true);
        trace.iter().for_each(|line| println!("{line}"));
        println!("{stats:?}");
        return assert_eq!(violation, None, "seed {seed}");
    }
    let count = number("LOCKTENDER_SEEDS").unwrap_or(SEEDS[usize::from(std::env::var_os("LOCKTENDER_LONG").is_some())]);
    let first = number("LOCKTENDER_FIRST_SEED").unwrap_or(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let (next, began) = (AtomicU64::new(first), Instant::now());
    let work = || {
        let (mut all, mut failed) = (Stats::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return (all, failed);
            }
            let Outcome { violation, stats, .. } = simulation::run(seed, false);
            if let Some(why) = violation {
                println!("seed {seed}: {why}");
                failed.push((seed, why));
            }
            sum(&mut all, &stats);
        }
    };
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all = Stats::default();
    results.iter().for_each(|(stats, _)| sum(&mut all, stats));
    let took = began.elapsed().as_secs_f64();
    println!(
        "{count} seeds on {threads} threads in {took:.1} s: {:.0} seeds/s per thread, {:.0} h simulated, {all:?}",
        count as f64 / took / threads as f64,
        all.simulated_us as f64 / 3.6e9,
    );
    let failed: Vec<_> = results.into_iter().flat_map(|(_, failed)| failed).collect();
    if let Some((seed, why)) = failed.iter().min() {
        panic!("{} seeds failed, the first:\n{}", failed.len(), explain(*seed, why));
    }
}

#[test]
fn seeds_that_failed_once() {
    for (seed, why) in KEPT {
        let outcome = simulation::run(*seed, false);
        assert!(outcome.violation.is_none(), "{why}\n{}", explain(*seed, &outcome.violation.unwrap_or_default()));
    }
}

#[test]
fn a_seed_replays_bit_for_bit() {
    for seed in [3, 4, 5, 6] {
        let (first, second) = (simulation::run(seed, true), simulation::run(seed, true));
        assert_eq!(first.trace, second.trace);
        assert_eq!(first.digest, simulation::run(seed, false).digest, "tracing changes nothing");
    }
}
