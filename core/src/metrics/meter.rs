//! Meters: the numbers that a client counts, always and without a lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::error::LossReason;
use crate::event::{ACQUIRE_ENDS, EventKind, HOLD_ENDS, LockEvent};
use crate::metrics::histogram::Times;
use crate::metrics::published::Published;
use crate::metrics::table::{self, Row};
use crate::name::{Label, LockKind};
use crate::sync::Mutex;

/// The most labels that are counted apart. Further ones are counted as the category [`OTHER`].
pub(crate) const MAX_LABELS: usize = 100;

/// The category of the labels that are too many.
pub(crate) const OTHER: &str = "other";

/// How an attempt of a job ends.
pub(crate) const JOB_ENDS: [EventKind; 3] = [EventKind::Done, EventKind::Retry, EventKind::Dead];

/// Why a hold is lost.
pub(crate) const LOSSES: [LossReason; LossReason::ALL.len()] = *LossReason::ALL.first_chunk().unwrap();

/// What a release after the end of validity found: that another program has held the lock, that none has, or neither.
pub(crate) const OVERLAPS: [&str; 3] = ["proved", "excluded", "unknown"];

/// What the end of a hold says of an overlap, if there may have been one.
pub(crate) const fn overlap(event: &LockEvent) -> Option<&'static str> {
    match event.kind {
        EventKind::Overlapped => Some("proved"),
        EventKind::Expired if event.is_excluded => Some("excluded"),
        EventKind::Expired => Some("unknown"),
        _ => None,
    }
}

/// A number that only grows.
#[derive(Debug)]
pub(crate) struct Counter {
    number: AtomicU64,
    published: Published,
}

impl Counter {
    pub(crate) fn new(published: Published) -> Self {
        Self { number: AtomicU64::new(0), published }
    }

    pub(crate) fn add(&self, number: u64) {
        self.number.fetch_add(number, Ordering::Release);
        self.published.grew(number);
    }

    pub(crate) fn read(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }
}

/// One counter for each of several ends or reasons.
#[derive(Debug)]
pub(crate) struct Tally<const N: usize>([Counter; N]);

impl<const N: usize> Tally<N> {
    /// A counter for each of these `names`, which are values of the label `name`.
    fn new(about: &About<'_>, row: &Row, name: &'static str, names: [&str; N]) -> Self {
        Self(names.map(|value| Counter::new(about.published(row, Some((name, value))))))
    }

    pub(crate) fn add<T: PartialEq>(&self, ends: &[T; N], end: &T) {
        if let Some(at) = ends.iter().position(|known| known == end) {
            self.0[at].add(1);
        }
    }

    pub(crate) fn read(&self) -> [u64; N] {
        std::array::from_fn(|at| self.0[at].read())
    }
}

/// What numbers are about: an application and a label of locks.
struct About<'a> {
    app: &'a str,
    label: &'a Label,
}

impl About<'_> {
    fn published(&self, row: &Row, more: Option<(&'static str, &str)>) -> Published {
        let own = [("app", self.app), ("category", &*self.label.category), ("kind", self.label.kind.as_str())];
        Published::new(row, &own.into_iter().chain(more).collect::<Vec<_>>())
    }

    fn counter(&self, row: &Row) -> Counter {
        Counter::new(self.published(row, None))
    }

    fn times(&self, row: &Row) -> Times {
        Times::new(self.published(row, None))
    }
}

/// The numbers of all locks with one label.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) label: Label,
    begun: AtomicU64,
    pub(crate) rounds: Counter,
    pub(crate) busy: Counter,
    pub(crate) acquires: Tally<8>,
    pub(crate) holds: Tally<6>,
    pub(crate) losses: Tally<8>,
    pub(crate) overlaps: Tally<3>,
    pub(crate) renewals: Counter,
    pub(crate) late_renewals: Counter,
    pub(crate) extensions: Counter,
    pub(crate) jobs: Tally<3>,
    pub(crate) waits: Times,
    pub(crate) hold_times: Times,
    pub(crate) round_trips: Times,
    pub(crate) handovers: Times,
    last_fence: AtomicU64,
    published: Present,
}

/// What a recorder knows of now.
#[derive(Debug)]
struct Present {
    held: Published,
    waiting: Published,
    last_fence: Published,
}

impl Meter {
    fn new(app: &str, label: Label) -> Self {
        let about = About { app, label: &label };
        Self {
            begun: AtomicU64::new(0),
            rounds: about.counter(&table::ROUNDS),
            busy: about.counter(&table::BUSY),
            acquires: Tally::new(&about, &table::ACQUIRES, "end", ACQUIRE_ENDS.map(EventKind::as_str)),
            holds: Tally::new(&about, &table::HOLDS, "end", HOLD_ENDS.map(EventKind::as_str)),
            losses: Tally::new(&about, &table::LOSSES, "reason", LOSSES.map(LossReason::as_str)),
            overlaps: Tally::new(&about, &table::EXCEEDED, "overlap", OVERLAPS),
            renewals: about.counter(&table::RENEWALS),
            late_renewals: about.counter(&table::LATE_RENEWALS),
            extensions: about.counter(&table::EXTENSIONS),
            jobs: Tally::new(&about, &table::JOB_ATTEMPTS, "end", JOB_ENDS.map(EventKind::as_str)),
            waits: about.times(&table::WAIT),
            hold_times: about.times(&table::HOLD),
            round_trips: about.times(&table::RENEWAL),
            handovers: about.times(&table::HANDOVER),
            last_fence: AtomicU64::new(0),
            published: Present {
                held: about.published(&table::HELD, None),
                waiting: about.published(&table::WAITING, None),
                last_fence: about.published(&table::LAST_FENCE, None),
            },
            label,
        }
    }

    pub(crate) fn acquire_begun(&self) {
        self.begun.fetch_add(1, Ordering::Release);
        self.published.waiting.changed(1.0);
    }

    pub(crate) fn acquire_ended(&self, end: EventKind, waited: Duration) {
        self.acquires.add(&ACQUIRE_ENDS, &end);
        self.waits.note(waited);
        self.published.waiting.changed(-1.0);
        if end == EventKind::Acquired {
            self.published.held.changed(1.0);
        }
    }

    pub(crate) fn hold_ended(&self, end: EventKind, lasted: Duration) {
        self.holds.add(&HOLD_ENDS, &end);
        self.hold_times.note(lasted);
        self.published.held.changed(-1.0);
    }

    pub(crate) fn granted(&self, fence: u64) {
        let before = self.last_fence.fetch_max(fence, Ordering::Relaxed);
        self.published.last_fence.is(before.max(fence) as f64);
    }

    /// Acquires that have begun. It is read behind their ends, so that it is never the smaller number.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    pub(crate) fn last_fence(&self) -> u64 {
        self.last_fence.load(Ordering::Relaxed)
    }
}

/// The numbers of one server.
#[derive(Debug)]
pub(crate) struct ServerMeter {
    is_down: AtomicBool,
    up: Published,
    pub(crate) failures: Counter,
    pub(crate) failovers: Counter,
}

impl ServerMeter {
    pub(crate) fn new(app: &str, server: &str) -> Self {
        let published = |row| Published::new(row, &[("app", app), ("server", server)]);
        let up = published(&table::SERVER_UP);
        // It counts as up until it doesn't answer.
        up.is(1.0);
        Self {
            is_down: AtomicBool::new(false),
            up,
            failures: Counter::new(published(&table::SERVER_FAILURES)),
            failovers: Counter::new(published(&table::FAILOVERS)),
        }
    }

    /// Notes an event of the server.
    pub(crate) fn note(&self, kind: EventKind) {
        match kind {
            EventKind::ServerFailed => self.failures.add(1),
            EventKind::FailedOver => self.failovers.add(1),
            _ => (),
        }
        let is_down = kind == EventKind::ServerFailed;
        self.is_down.store(is_down, Ordering::Relaxed);
        self.up.is(if is_down { 0.0 } else { 1.0 });
    }

    pub(crate) fn is_up(&self) -> bool {
        !self.is_down.load(Ordering::Relaxed)
    }
}

/// The meters of one client in one process.
#[derive(Debug)]
pub(crate) struct Meters {
    app: String,
    meters: Mutex<HashMap<Label, Arc<Meter>>>,
    pub(crate) servers: Vec<Arc<ServerMeter>>,
}

impl Meters {
    pub(crate) fn new(app: &str, servers: impl IntoIterator<Item = String>) -> Self {
        let app = plain(app);
        let servers = servers.into_iter().map(|address| Arc::new(ServerMeter::new(&app, &plain(&address)))).collect();
        Self { app, meters: Mutex::default(), servers }
    }

    /// The meter of locks with this label.
    pub(crate) fn of(&self, label: &Label) -> Arc<Meter> {
        let mut meters = self.meters.lock();
        if let Some(meter) = meters.get(label) {
            return Arc::clone(meter);
        }
        let is_too_many = meters.len() >= MAX_LABELS;
        let label = if is_too_many { Label { category: OTHER.into(), ..label.clone() } } else { label.clone() };
        let meter = meters.entry(label.clone()).or_insert_with(|| Arc::new(Meter::new(&self.app, label)));
        Arc::clone(meter)
    }

    /// All meters, in the order of their labels.
    pub(crate) fn all(&self) -> Vec<Arc<Meter>> {
        let mut meters: Vec<_> = self.meters.lock().values().cloned().collect();
        meters.sort_by(|one, other| one.label.cmp(&other.label));
        meters
    }
}

/// A label's value: a terminal and a page show it as it is, so it has no control characters.
pub(crate) fn plain(value: &str) -> String {
    value.replace(char::is_control, "\u{fffd}")
}

/// Whether an attempt of such a lock is counted as one of a job.
pub(crate) const fn is_job(kind: LockKind) -> bool {
    matches!(kind, LockKind::Job | LockKind::CronJob)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(category: &str) -> Label {
        Label::new(LockKind::Lock, category)
    }

    #[test]
    fn labels_that_are_too_many_are_counted_together() {
        let meters = Meters::new("", []);
        for number in 0..100_000 {
            meters.of(&label(&format!("category-{number}"))).rounds.add(1);
        }
        let all = meters.all();
        assert_eq!(all.len(), MAX_LABELS + 1);
        let other = all.iter().find(|meter| &*meter.label.category == OTHER).unwrap();
        assert_eq!(other.rounds.read(), 100_000 - MAX_LABELS as u64);
        meters.of(&label("category-7")).rounds.add(1);
        assert_eq!(meters.of(&label("category-7")).rounds.read(), 2);
    }

    #[test]
    fn every_reason_and_end_has_a_counter_of_its_own() {
        let meter = Meter::new("", label("orders"));
        LOSSES.iter().for_each(|reason| meter.losses.add(&LOSSES, reason));
        assert_eq!(meter.losses.read(), [1; 8]);
        ACQUIRE_ENDS.iter().for_each(|end| meter.acquire_ended(*end, Duration::ZERO));
        HOLD_ENDS.iter().for_each(|end| meter.hold_ended(*end, Duration::ZERO));
        assert_eq!((meter.acquires.read(), meter.holds.read()), ([1; 8], [1; 6]));
    }
}
