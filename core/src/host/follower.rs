//! Follower: makes the spans and the times of acquires and their holds out of their events. A span is made when it ends: none is ever left
//! open. A binding keeps the context in which each acquire began, by its number, and passes each record on to its instrumentation.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::millis;
use crate::error::LossReason;
use crate::event::{EventKind, Field, LockEvent};
use crate::metrics::meter::{MAX_LABELS, OTHER, plain};
use crate::session::trace::trace_next;

/// While so many records wait, no further acquire is to be followed, and the times of renewals are dropped.
const MOST: usize = 2_048;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(u64),
    /// A time.
    Time(Duration),
}

/// Attributes, in order.
pub type Attributes = Vec<(String, AttributeValue)>;

/// What is to be recorded of an acquire.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The acquire's number.
    pub number: u64,
    /// The number of its client, unless the acquire had no event.
    pub client: Option<u64>,
    /// A value of a histogram: what was measured (`wait`, `hold`, `handover` or `renewal`), and the labels of a client's metrics.
    pub time: Option<(&'static str, Duration, Attributes)>,
    /// A span that has ended.
    pub span: Option<Span>,
    /// Whether no record of this acquire comes any more.
    pub is_last: bool,
}

/// A span that has ended. Its times are since 1970.
#[derive(Debug, PartialEq, Eq)]
pub struct Span {
    /// `acquire` or `hold`.
    pub name: &'static str,
    /// When it began.
    pub begun: Duration,
    /// When it ended.
    pub ended: Duration,
    /// Its attributes.
    pub attributes: Attributes,
    /// The text of its error.
    pub error: Option<String>,
    /// The name and the attributes of the event at its end.
    pub event: Option<(&'static str, Attributes)>,
}

/// The acquires that are followed, with their holds.
#[derive(Debug, Default)]
pub struct Follower {
    followed: HashMap<u64, Followed>,
    categories: HashSet<Attributes>,
    /// What is to be recorded.
    pub records: Vec<Record>,
}

/// An acquire and its hold, as far as their events have come. Times are since 1970.
#[derive(Debug, Default)]
struct Followed {
    began: Duration,
    /// The number of the acquire in whose start it is.
    around: u64,
    /// Whether the core has begun it, once that is known.
    has_begun: Option<bool>,
    client: Option<u64>,
    /// What its spans say of the lock, and its times.
    lock: Attributes,
    labels: Attributes,
    rounds: u64,
    /// The event that ended the acquire.
    ending: Option<(LockEvent, Duration)>,
    /// How the hold ended.
    over: Option<(LockEvent, Duration)>,
    /// When the caller got its answer.
    answered: Option<Duration>,
    /// The code and the text of the error that it got.
    failure: Option<(String, String)>,
    /// Whether it left before the acquire had ended.
    left: bool,
    has_span: bool,
}

impl Follower {
    /// Follows the acquire that begins next on this thread, by a number of its own. The lock's name is for a span without an event.
    pub fn begin(&mut self, number: u64, lock: Option<&str>, at: SystemTime) {
        let lock = lock.map(|lock| attribute("locktender.lock_name", lock)).into_iter().collect();
        let followed = Followed { began: since_1970(at), around: trace_next(number), lock, ..Followed::default() };
        self.followed.insert(number, followed);
    }

    /// The acquire was started on this thread: what begins next on it is another one.
    pub fn started(&mut self, number: u64) {
        if let Some(followed) = self.followed.get_mut(&number) {
            // Only the first call returns a number that no acquire took.
            followed.has_begun.get_or_insert_with(|| trace_next(followed.around) != number);
        }
    }

    /// Takes an event of a client.
    pub fn event(&mut self, client: u64, app: &str, event: &LockEvent, at: SystemTime) {
        let is_full = self.is_full();
        let Some(followed) = self.followed.get_mut(&event.trace) else { return };
        if followed.client.is_none() {
            followed.identify(client, &plain(app), event, &mut self.categories);
        }
        let measured = match event.kind {
            // Several locks are handed over as one.
            EventKind::Acquired if followed.granted().is_none() => event.notified_ago.map(|ago| ("handover", ago)),
            EventKind::Extended => event.took.map(|took| ("renewal", took)),
            EventKind::Renewed if !is_full => event.took.map(|took| ("renewal", took)),
            _ => None,
        };
        followed.note(event, since_1970(at));
        if let Some((name, took)) = measured {
            let time = Some((name, took, followed.labels.clone()));
            self.records.push(Record { number: event.trace, client: Some(client), time, ..Record::default() });
        }
        self.settle(event.trace);
    }

    /// Takes what the caller of an acquire got: a result, an error with this code and this text, or nothing because it `left`. An acquire
    /// that was not said to be started is started on this thread.
    pub fn answer(&mut self, number: u64, failure: Option<(String, String)>, left: bool, at: SystemTime) {
        self.started(number);
        if let Some(followed) = self.followed.get_mut(&number) {
            (followed.answered, followed.failure, followed.left) = (Some(since_1970(at)), failure, left);
            self.settle(number);
        }
    }

    /// Whether too many records wait.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.records.len() >= MOST
    }

    /// Records the spans of what has ended, once the caller has its answer.
    fn settle(&mut self, number: u64) {
        let Some(followed) = self.followed.get_mut(&number).filter(|followed| followed.has_ended()) else { return };
        let record = |end: &Option<(LockEvent, Duration)>, name, span| {
            let took = end.as_ref().and_then(|(event, _)| event.took);
            let time = took.map(|took| (name, took, followed.labels.clone()));
            Record { number, client: followed.client, time, span: Some(span), is_last: false }
        };
        if !followed.has_span {
            self.records.push(record(&followed.ending, "wait", followed.acquire()));
        }
        let hold = followed.hold().map(|span| record(&followed.over, "hold", span));
        let is_over = followed.granted().is_none() || hold.is_some();
        followed.has_span = true;
        self.records.extend(hold);
        if is_over {
            self.followed.remove(&number);
            self.records.last_mut().into_iter().for_each(|record| record.is_last = true);
        }
    }
}

impl Followed {
    /// Takes from the first event what all of them have. As many `categories` are distinguished as in a client's metrics; further
    /// ones are one.
    fn identify(&mut self, client: u64, app: &str, event: &LockEvent, categories: &mut HashSet<Attributes>) {
        self.client = Some(client);
        self.labels = [vec![attribute("locktender.app", app)], fields(event, &["lock_kind", "category"])].concat();
        self.lock = [fields(event, &["lock_name", "key"]), self.labels.clone()].concat();
        if categories.len() < MAX_LABELS {
            categories.insert(self.labels.clone());
        } else if !categories.contains(&self.labels) {
            self.labels.retain(|(name, _)| name != "locktender.category");
            self.labels.push(attribute("locktender.category", OTHER));
        }
    }

    fn note(&mut self, event: &LockEvent, at: Duration) {
        let is_granted = self.granted().is_some();
        if event.kind == EventKind::Round {
            self.rounds += 1;
        } else if is_granted && event.kind.ends_hold() {
            self.over.get_or_insert_with(|| (event.clone(), at));
        } else if !is_granted && event.kind.ends_acquire() {
            self.ending = Some((event.clone(), at));
        }
    }

    /// The event that granted the lock.
    fn granted(&self) -> Option<&(LockEvent, Duration)> {
        self.ending.as_ref().filter(|(event, _)| event.kind == EventKind::Acquired)
    }

    /// Whether the acquire has ended. Of one that its caller left, the core says how it ended, if it had begun.
    fn has_ended(&self) -> bool {
        self.answered.is_some() && (!self.left || self.has_begun != Some(true) || self.ending.is_some())
    }

    /// The acquire's span.
    fn acquire(&self) -> Span {
        let answered = self.answered.unwrap_or_default();
        let (code, error) = self.failure.clone().unzip();
        let (end, took, ended) = match &self.ending {
            Some((event, at)) => (event.kind, event.took, *at),
            // It has not begun.
            None if error.is_some() => (EventKind::AcquireFailed, None, answered),
            None => (EventKind::Cancelled, None, answered),
        };
        let wait = took.unwrap_or_else(|| answered.saturating_sub(self.began));
        let mut attributes = self.attributes(end);
        attributes.push(("locktender.rounds".to_owned(), AttributeValue::Whole(self.rounds)));
        attributes.push(("locktender.wait".to_owned(), AttributeValue::Time(wait)));
        attributes.extend(code.map(|code| attribute("error.type", &code)));
        Span { name: "acquire", begun: self.began, ended: ended.max(self.began), attributes, error, event: None }
    }

    /// The hold's span, if there was a hold and it has ended.
    fn hold(&self) -> Option<Span> {
        let ((_, begun), (over, ended)) = self.granted().zip(self.over.as_ref())?;
        let error = match over.kind {
            EventKind::Lost => Some("LOCK_LOST"),
            EventKind::Overlapped => Some("overlapped"),
            _ => None,
        };
        let mut attributes = self.attributes(over.kind);
        attributes.extend(error.map(|error| attribute("error.type", error)));
        attributes.extend(fields(over, &["reason"]));
        let name = over.kind.as_str();
        let message = over.message.as_deref().or(over.reason.map(LossReason::as_str)).unwrap_or(name);
        let found = || fields(over, &["reason", "next_owner", "next_fence", "overrun", "message"]);
        let (begun, ended) = (*begun, *ended);
        let (error, event) = (error.map(|_| message.to_owned()), error.map(|_| (name, found())));
        Some(Span { name: "hold", begun, ended, attributes, error, event })
    }

    /// What each span of the acquire and its hold says.
    fn attributes(&self, end: EventKind) -> Attributes {
        let granted = self.granted().map(|(granted, _)| fields(granted, &["owner", "fence", "attempt"]));
        [self.lock.clone(), vec![attribute("locktender.end", end.as_str())], granted.unwrap_or_default()].concat()
    }
}

/// The fields of an event with these names, as attributes.
fn fields(event: &LockEvent, names: &[&str]) -> Attributes {
    let attribute = |(name, field)| {
        let value = match field {
            Field::Text(text) => AttributeValue::Text(text?.to_owned()),
            Field::Texts(texts) => AttributeValue::Text(texts?.join(", ")),
            Field::Number(number) => AttributeValue::Whole(number?),
            Field::Time(time) => AttributeValue::Time(Duration::from_millis(millis(time?))),
            Field::Measured(time) => AttributeValue::Time(time?),
        };
        let name = match name {
            "lock_kind" => "kind",
            "attempt" => "job.attempt",
            name => name,
        };
        Some((format!("locktender.{name}"), value))
    };
    event.fields().into_iter().filter(|(name, _)| names.contains(name)).filter_map(attribute).collect()
}

fn attribute(name: &str, text: &str) -> (String, AttributeValue) {
    (name.to_owned(), AttributeValue::Text(text.to_owned()))
}

fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
