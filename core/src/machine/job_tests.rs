use std::sync::Arc;
use std::time::Duration;

use crate::machine::{Env, State, Value, apply};
use crate::name::{Keys, Kind};
use crate::op::holder::named::{in_short, named};
use crate::op::job::{AttemptNumber, Ending, JobRecord, NotBegun, OpenAttempt, ScheduledTime, Terms};
use crate::op::{LockOp, Op, QueuePlace, Queued, Reply, Verb, Verdict};

#[path = "job_ending_tests.rs"]
mod ending;
#[path = "job_scheduled_time_tests.rs"]
mod scheduled_time;

const T: u64 = 1_800_000_000_000_000;
const TTL: u64 = 10_000;
const RETENTION: u64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;
const LATE_MS: u64 = 3_600_000;

/// One server with one job, and a clock that only the test moves.
struct Bench {
    state: State,
    keys: Arc<Keys>,
    now_us: u64,
    max_attempts: u32,
    scheduled_time: Option<ScheduledTime>,
    /// The answer to the last request of `fires`.
    last: Option<Reply>,
}

impl Bench {
    fn new(max_attempts: u32) -> Self {
        let keys = Arc::new(Keys::new(Kind::Job, "", "mail", true).unwrap());
        Self { state: State::new(), keys, now_us: T, max_attempts, scheduled_time: None, last: None }
    }

    fn apply(&mut self, by: &str, verb: Verb) -> Reply {
        let op = Op::Lock(LockOp { keys: Arc::clone(&self.keys), by: named(by).into(), verb });
        in_short(apply(&mut self.state, &op, &Env { now_us: self.now_us, replid: "run", known_as: "run", is_renamed: false }))
    }

    fn begin_as(&mut self, owner: &str, waiter: Option<&str>) -> Reply {
        let place = waiter.map(|entry| QueuePlace { entry: entry.into(), arrival: 0, stays: false });
        let job = Some(Box::new(Terms {
            max_attempts: self.max_attempts,
            retention_ms: RETENTION,
            scheduled_time: self.scheduled_time,
        }));
        let (ttl_ms, proposal) = (TTL, self.now_us);
        self.apply(owner, Verb::Acquire { ttl_ms, proposal, adopt: None, fair: false, place, quorum_config: None, job })
    }

    fn begin(&mut self, owner: &str) -> Reply {
        self.begin_as(owner, None)
    }

    /// Begins the attempt with this number, and gives its fence.
    fn begins(&mut self, owner: &str, number: u16) -> u64 {
        let reply = self.begin(owner);
        assert_eq!(reply.verdict, Verdict::Vote, "{owner}");
        assert_eq!(reply.attempt.map(|attempt| attempt.number), Some(number), "{owner}");
        reply.fence
    }

    /// Begins for the scheduled time that lies `minutes` after the start, or says why not.
    fn fires(&mut self, owner: &str, minutes: i64) -> Result<u16, NotBegun> {
        let at_ms = (T / 1_000).saturating_add_signed(minutes * MINUTE_MS);
        self.scheduled_time = Some(ScheduledTime {
            at_ms,
            max_lateness_ms: LATE_MS,
            ..self.scheduled_time.unwrap_or(ScheduledTime { at_ms, max_lateness_ms: 0, waits: false })
        });
        let reply = self.begin(owner);
        self.last = Some(reply.clone());
        match reply.verdict {
            Verdict::Vote => Ok(reply.attempt.unwrap().number),
            Verdict::Over(end) => Err(end.why),
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, owner: &str, fence: u64, ending: Ending) -> Verdict {
        let number = AttemptNumber { number: 1, max: u16::try_from(self.max_attempts).unwrap(), failures: 0 };
        let scheduled_time_ms = self.scheduled_time.map_or(0, |scheduled_time| scheduled_time.at_ms);
        let attempt = OpenAttempt { fence, number, retention_ms: RETENTION, scheduled_time_ms };
        self.apply(owner, Verb::EndAttempt { ending, attempt, leave: None }).verdict
    }

    fn done(&mut self, owner: &str, fence: u64) -> Verdict {
        self.end(owner, fence, Ending::Done { result: "42".into() })
    }

    fn fail(&mut self, owner: &str, fence: u64, retry_in_ms: u64) -> Verdict {
        self.end(owner, fence, Ending::Failed { error: "no".into(), retry_in_ms: Some(retry_in_ms) })
    }

    fn give_back(&mut self, owner: &str) -> Verdict {
        self.end(owner, 0, Ending::GivenBack)
    }

    fn record(&mut self) -> JobRecord {
        let Verdict::Recorded(record) = self.apply("", Verb::JobStatus).verdict else { panic!("it is no record") };
        *record
    }

    /// The fence of the attempt that began last.
    fn record_fence(&mut self) -> u64 {
        let Some(Value::Fields(fields)) = self.state.get(self.keys.record(), self.now_us).map(|entry| &entry.value) else {
            return 0;
        };
        fields["fence"].parse().unwrap()
    }

    fn pass(&mut self, ms: u64) {
        self.now_us += ms * 1_000;
    }

    fn notified(&mut self) -> Vec<String> {
        self.state.take_published().into_iter().map(|message| message.payload).collect()
    }
}

fn no() -> Verdict {
    Verdict::No { holder: None, remaining: crate::error::Remaining::Gone }
}

fn held_by(name: &str) -> Verdict {
    Verdict::No { holder: Some(name.into()), remaining: crate::error::Remaining::Gone }
}

fn taken_by(name: &str) -> impl Fn(&Verdict) -> bool {
    move |verdict| matches!(verdict, Verdict::No { holder: Some(holder), .. } if holder == name)
}

fn a_job_that_is_done_never_begins_again_while_it_is_kept() {
    let mut bench = Bench::new(3);
    let fence = bench.begins("a", 1);
    assert!(matches!(bench.begin("b").verdict, Verdict::Held { .. }));
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    assert_eq!(bench.done("a", fence), Verdict::Ok, "it is asked again");
    bench.pass(RETENTION - 1);
    let Verdict::Over(end) = bench.begin("b").verdict else { panic!("it began again") };
    assert_eq!((end.why, &*end.text, end.attempts, end.max_attempts, &*end.by), (NotBegun::Done, "42", 1, 3, "a"));
    bench.pass(2);
    bench.begins("b", 1);
}

fn no_more_attempts_begin_than_allowed() {
    let mut bench = Bench::new(2);
    let fence = bench.begins("a", 1);
    assert_eq!(bench.fail("a", fence, 0), Verdict::Ok);
    assert_eq!(bench.fail("a", fence, 0), Verdict::Ok, "it is asked again");
    let fence = bench.begins("b", 2);
    // What a later client allows doesn't matter.
    bench.max_attempts = 9;
    assert_eq!(bench.fail("b", fence, 0), Verdict::Ok);
    let Verdict::Over(end) = bench.begin("c").verdict else { panic!("a third attempt began") };
    assert_eq!((end.why, &*end.text, end.attempts, end.max_attempts), (NotBegun::Dead, "no", 2, 2));
}

fn an_attempt_whose_worker_dies_counts_and_the_last_one_makes_the_job_dead() {
    let mut bench = Bench::new(2);
    let first = bench.begins("a", 1);
    bench.pass(TTL + 1);
    bench.begins("b", 2);
    assert!(taken_by("b")(&bench.done("a", first)), "another attempt has begun");
    bench.pass(TTL + 1);
    let Verdict::Over(end) = bench.begin("c").verdict else { panic!("a third attempt began") };
    assert_eq!((end.why, &*end.text), (NotBegun::Dead, "attempt 2 of 2: its worker died or lost the lease (b)"));
    assert_eq!(bench.record().state, "dead");
}

fn a_request_that_comes_twice_counts_once() {
    let mut bench = Bench::new(3);
    bench.begins("a", 1);
    let fence = bench.begins("a", 1);
    assert_eq!(bench.record().attempts, 1);
    assert_eq!(bench.fail("a", fence, 0), Verdict::Ok);
    bench.begins("a", 2);
}

fn an_attempt_that_is_given_back_does_not_count_and_nobody_gives_back_anothers() {
    let mut bench = Bench::new(2);
    bench.begins("a", 1);
    assert_eq!(bench.give_back("a"), Verdict::Ok);
    assert_eq!((bench.record().attempts, &*bench.record().state), (0, "new"));
    bench.begins("b", 1);
    // The first request of `a` is undone once more, late.
    assert!(taken_by("b")(&bench.give_back("a")));
    assert_eq!((bench.record().attempts, &*bench.record().by), (1, "b"));
}

fn the_next_attempt_begins_when_the_delay_has_passed() {
    let mut bench = Bench::new(3);
    let fence = bench.begins("a", 1);
    assert_eq!(bench.fail("a", fence, 3_000), Verdict::Ok);
    bench.pass(1_000);
    let left = Duration::from_millis(2_000);
    assert_eq!(bench.begin("b").verdict, Verdict::Later { left, error: "no".into() });
    bench.pass(2_000);
    bench.begins("b", 2);
}

fn the_record_decides_and_not_the_lease() {
    let mut bench = Bench::new(3);
    let fence = bench.begins("a", 1);
    bench.pass(TTL + 1);
    assert_eq!(bench.done("a", fence), Verdict::Ok, "nobody has begun since");
    assert_eq!(bench.record().state, "done");
    let mut bench = Bench::new(3);
    let fence = bench.begins("a", 1);
    // The lease says that it is a's attempt, and the record that another one has begun.
    bench.state.put_fields("{mail}:~lt:job", &[("by", "b")], T);
    assert!(taken_by("b")(&bench.done("a", fence)));
    assert_eq!(bench.record().state, "running");
}

fn an_owner_ends_only_the_attempt_with_its_fence() {
    let mut bench = Bench::new(3);
    let older = bench.begins("a", 1);
    bench.pass(TTL + 1);
    let newer = bench.begins("a", 1);
    assert!(older < newer);
    assert_eq!(bench.fail("a", older, 0), no());
    assert_eq!(bench.record().state, "running");
}

#[test]
fn each_rule_of_a_job_holds() {
    a_job_that_is_done_never_begins_again_while_it_is_kept();
    no_more_attempts_begin_than_allowed();
    an_attempt_whose_worker_dies_counts_and_the_last_one_makes_the_job_dead();
    a_request_that_comes_twice_counts_once();
    an_attempt_that_is_given_back_does_not_count_and_nobody_gives_back_anothers();
    the_next_attempt_begins_when_the_delay_has_passed();
    the_record_decides_and_not_the_lease();
    scheduled_time::a_scheduled_time_begins_once();
    scheduled_time::an_earlier_scheduled_time_never_begins_any_more();
    scheduled_time::a_scheduled_time_that_is_too_long_ago_does_not_begin();
    scheduled_time::a_scheduled_time_far_ahead_leaves_nothing_behind();
    an_owner_ends_only_the_attempt_with_its_fence();
}

#[test]
fn each_rule_that_is_left_out_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    let tables: [(Mutant, fn()); 11] = [
        (Mutant::DoneRunsAgain, a_job_that_is_done_never_begins_again_while_it_is_kept),
        (Mutant::OneAttemptTooMany, an_attempt_whose_worker_dies_counts_and_the_last_one_makes_the_job_dead),
        (Mutant::AttemptCountedTwice, a_request_that_comes_twice_counts_once),
        (Mutant::AnybodysAttemptEnded, an_attempt_that_is_given_back_does_not_count_and_nobody_gives_back_anothers),
        (Mutant::RetryDelayIgnored, the_next_attempt_begins_when_the_delay_has_passed),
        (Mutant::LeaseDecides, the_record_decides_and_not_the_lease),
        (Mutant::ScheduledTimeBeginsTwice, scheduled_time::a_scheduled_time_begins_once),
        (Mutant::EarlierScheduledTimeBegins, scheduled_time::an_earlier_scheduled_time_never_begins_any_more),
        (Mutant::LateScheduledTimeBegins, scheduled_time::a_scheduled_time_that_is_too_long_ago_does_not_begin),
        (Mutant::FarScheduledTimeBegins, scheduled_time::a_scheduled_time_far_ahead_leaves_nothing_behind),
        (Mutant::OlderAttemptEnds, an_owner_ends_only_the_attempt_with_its_fence),
    ];
    for (mutant, table) in tables {
        assert_noticed(mutant, table);
    }
}

#[test]
fn the_waiters_of_a_job_that_is_over_are_notified_of_it_eight_at_a_time() {
    let mut bench = Bench::new(3);
    let fence = bench.begins("a", 1);
    for number in 1..=12 {
        let reply = bench.begin_as("w", Some(&format!("b:c{number}:{number} x")));
        assert!(matches!(reply.queued, Queued::At { .. }), "{reply:?}");
    }
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    let notified = |numbers: std::ops::RangeInclusive<u32>| -> Vec<String> {
        numbers.map(|number| format!("free 200 b{number} mail")).collect()
    };
    assert_eq!(bench.notified(), notified(1..=8));
    assert!(matches!(bench.begin_as("w", Some("b:c1:1 x")).verdict, Verdict::Over(_)));
    assert_eq!(bench.notified(), notified(9..=12));
    assert!(bench.state.get(bench.keys.queue(), bench.now_us).is_none());
}

#[test]
fn the_first_waiter_is_notified_when_the_next_attempt_may_begin() {
    let mut bench = Bench::new(3);
    let fence = bench.begins("a", 1);
    bench.begin_as("w", Some("b:c1:1 x"));
    assert_eq!(bench.fail("a", fence, 2_500), Verdict::Ok);
    assert_eq!(bench.notified(), ["next 2500 b1 mail"]);
    let reply = bench.begin_as("w", Some("b:c1:1 x"));
    assert!(matches!((&reply.verdict, &reply.queued), (Verdict::Later { .. }, Queued::At { rank: 0, .. })), "{reply:?}");
    bench.pass(2_500);
    let reply = bench.begin_as("w", Some("b:c1:1 x"));
    assert_eq!((reply.verdict, reply.attempt), (Verdict::Vote, Some(AttemptNumber { number: 2, max: 3, failures: 1 })));
    // Without a delay the first waiter may begin at once.
    bench.begin_as("v", Some("b:c2:2 x"));
    assert_eq!(bench.fail("w", reply.fence, 0), Verdict::Ok);
    assert_eq!(bench.notified(), ["free 200 b2 mail"]);
}

#[test]
fn a_reset_forgets_what_is_over_and_leaves_what_runs() {
    let mut bench = Bench::new(1);
    let fence = bench.begins("a", 1);
    assert!(taken_by("a")(&bench.apply("", Verb::Reset).verdict));
    assert_eq!(bench.fail("a", fence, 0), Verdict::Ok);
    assert_eq!(bench.apply("", Verb::Reset).verdict, Verdict::Ok);
    assert_eq!(bench.apply("", Verb::Reset).verdict, no());
    bench.begins("b", 1);
}

#[test]
fn a_record_of_another_type_stays_as_it_is() {
    let mut bench = Bench::new(1);
    let key = bench.keys.record().to_owned();
    bench.state.put(&key, Value::Foreign("list".into()), T, None);
    let conflict = Verdict::Conflict { found: "list at {mail}:~lt:job".into() };
    assert_eq!(bench.begin("a").verdict, conflict);
    assert_eq!(bench.apply("", Verb::Reset).verdict, conflict);
    assert_eq!(bench.apply("", Verb::JobStatus).verdict, conflict);
    assert_eq!(bench.done("a", 1), conflict);
    assert_eq!(bench.state.get(&key, T).unwrap().value, Value::Foreign("list".into()));
}

#[test]
fn a_long_run_keeps_its_record() {
    let mut bench = Bench::new(2);
    let fence = bench.begins("a", 1);
    let extend = || Verb::Extend { ttl_ms: 86_400_000, fence };
    for _ in 0..5 {
        assert_eq!(bench.apply("a", extend()).verdict, Verdict::Ok);
        bench.pass(86_000_000);
    }
    bench.pass(1_000_000);
    bench.begins("b", 2);
}

#[test]
fn a_record_that_does_not_say_how_long_it_is_kept_is_left_alone_by_an_extension() {
    let mut bench = Bench::new(2);
    let fence = bench.begins("a", 1);
    let (lock, record) = (bench.keys.lock().to_owned(), bench.keys.record().to_owned());
    assert_eq!(bench.done("a", fence), Verdict::Ok);
    bench.state.put_fields(&record, &[("retention", "")], bench.now_us);
    let left = bench.state.get(&record, bench.now_us).unwrap().left_ms(bench.now_us);
    // Nobody but a person writes the same value again.
    bench.state.put(&lock, Value::Text(named("a").into()), bench.now_us, Some(1_000));
    assert_eq!(bench.apply("a", Verb::Extend { ttl_ms: 86_400_000, fence }).verdict, Verdict::Ok);
    assert_eq!(bench.state.get(&record, bench.now_us).unwrap().left_ms(bench.now_us), left);
}
