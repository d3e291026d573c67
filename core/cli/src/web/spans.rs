//! Spans: who held a lock or waited for it, and from when to when, by what the servers show and by what clients report. Pure, and
//! bounded.

use std::collections::{HashMap, HashSet, VecDeque};
use std::mem;

use serde_json::{Value, json};

/// The most spans that are kept of what has ended, and of what continues.
const MOST_ENDED: usize = 10_000;
const MOST_OPEN: usize = 5_000;

/// How far back a hold is looked for that has ended already, when its release finds more.
const LATE: usize = 500;

/// Whose word a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Server,
    Client,
}

/// What continues: one at a time for each of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) source: Source,
    pub(super) lock: String,
    pub(super) place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The holder that the servers show: they show one.
    Holder,
    /// A hold that a client reports, by its fence. Several of them are an overlap.
    Hold(u64),
    /// The waiter of this row or process.
    Waiter(String),
}

/// The time of a hold or of a wait. Moments are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) id: u64,
    pub(super) key: Key,
    pub(super) row: String,
    /// The process, if it is known.
    pub(super) who: String,
    /// The owner value, of a hold that the servers show.
    pub(super) owner: String,
    pub(super) from: u64,
    pub(super) to: Option<u64>,
    /// How it ended, in the word of the event.
    pub(super) end: &'static str,
    pub(super) fence: u64,
    /// Since when the hold was not valid any more, although its holder had not ended it.
    pub(super) over_from: Option<u64>,
    /// Whether it is proved that another hold began in this time.
    pub(super) is_overlapped: bool,
    /// Whether the servers have shown this hold.
    pub(super) is_confirmed: bool,
    /// When the client last reported it.
    pub(super) last_event: u64,
}

impl Span {
    pub(super) fn new(key: Key, row: &str, who: &str, from: u64) -> Self {
        let (row, who) = (row.to_owned(), who.to_owned());
        Self {
            id: 0,
            key,
            row,
            who,
            owner: String::new(),
            from,
            to: None,
            end: "",
            fence: 0,
            over_from: None,
            is_overlapped: false,
            is_confirmed: false,
            last_event: from,
        }
    }

    pub(super) fn is_hold(&self) -> bool {
        !matches!(self.key.place, Place::Waiter(_))
    }

    pub(super) fn json(&self) -> Value {
        let source = if self.key.source == Source::Server { "server" } else { "client" };
        json!({
            "id": self.id, "lock": self.key.lock, "source": source, "what": if self.is_hold() { "holds" } else { "waits" },
            "lane": self.row, "who": self.who, "from": self.from, "to": self.to, "end": self.end,
            // As text: JavaScript would round larger ones.
            "fence": if self.fence > 0 { json!(self.fence.to_string()) } else { Value::Null },
            "over": self.over_from, "overlapped": self.is_overlapped,
        })
    }
}

/// The spans.
#[derive(Debug, Default)]
pub(super) struct Spans {
    last_id: u64,
    open: HashMap<Key, Span>,
    ended: VecDeque<Span>,
    changed: HashSet<Key>,
    /// Those that have ended since they were last taken.
    fresh: Vec<Span>,
    /// How many could not be shown, since too many continued.
    pub(super) left_out: u64,
}

impl Spans {
    pub(super) fn get(&self, key: &Key) -> Option<&Span> {
        self.open.get(key)
    }

    /// Begins a span. One of the same key ends.
    pub(super) fn begin(&mut self, span: Span) {
        self.end(&span.key, span.from, "");
        if self.open.len() >= MOST_OPEN {
            self.left_out += 1;
            return;
        }
        self.last_id += 1;
        self.changed.insert(span.key.clone());
        self.open.insert(span.key.clone(), Span { id: self.last_id, ..span });
    }

    /// Ends a span, if it is open; whether it was.
    pub(super) fn end(&mut self, key: &Key, at: u64, end: &'static str) -> bool {
        let Some(span) = self.open.remove(key) else { return false };
        self.changed.remove(key);
        self.keep(Span { to: Some(at.max(span.from)), end, ..span });
        true
    }

    /// Adds a span that has ended.
    pub(super) fn add(&mut self, span: Span, to: u64, end: &'static str) {
        self.last_id += 1;
        self.keep(Span { id: self.last_id, to: Some(to.max(span.from)), end, ..span });
    }

    fn keep(&mut self, span: Span) {
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        if self.fresh.len() < MOST_ENDED {
            self.fresh.push(span.clone());
        }
        self.ended.push_back(span);
    }

    /// Changes a span that continues.
    pub(super) fn change(&mut self, key: &Key, change: impl FnOnce(&mut Span)) {
        if let Some(span) = self.open.get_mut(key) {
            let before = span.clone();
            change(span);
            if *span != before {
                self.changed.insert(key.clone());
            }
        }
    }

    /// Changes a span that has just ended; whether there is one.
    pub(super) fn change_late(&mut self, key: &Key, change: impl FnOnce(&mut Span)) -> bool {
        let Some(span) = self.ended.iter_mut().rev().take(LATE).find(|span| span.key == *key) else { return false };
        change(span);
        let span = span.clone();
        self.fresh.push(span);
        true
    }

    /// The keys of what continues.
    pub(super) fn open_keys(&self, wanted: impl Fn(&Span) -> bool) -> Vec<Key> {
        self.open.values().filter(|span| wanted(span)).map(|span| span.key.clone()).collect()
    }

    /// All of them, the oldest first.
    pub(super) fn all(&self) -> Vec<Value> {
        let mut all: Vec<&Span> = self.ended.iter().chain(self.open.values()).collect();
        all.sort_unstable_by_key(|span| span.id);
        all.into_iter().map(Span::json).collect()
    }

    /// Those that have changed since this was last asked.
    pub(super) fn changes(&mut self) -> Vec<Value> {
        let mut all: Vec<Value> = mem::take(&mut self.fresh).iter().map(Span::json).collect();
        all.extend(mem::take(&mut self.changed).iter().filter_map(|key| Some(self.open.get(key)?.json())));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(lock: &str, fence: u64) -> Key {
        Key { source: Source::Client, lock: lock.to_owned(), place: Place::Hold(fence) }
    }

    #[test]
    fn a_change_is_reported_once_and_all_is_kept() {
        let mut spans = Spans::default();
        spans.begin(Span::new(hold("a", 1), "Diego", "", 5));
        assert_eq!(spans.changes().len(), 1);
        assert!(spans.changes().is_empty());
        spans.change(&hold("a", 1), |_| ());
        assert!(spans.changes().is_empty());
        spans.change(&hold("a", 1), |span| span.over_from = Some(7));
        assert_eq!(spans.changes()[0]["over"], 7);
        assert!(spans.end(&hold("a", 1), 9, "lost"));
        assert!(!spans.end(&hold("a", 1), 9, "lost"));
        assert!(spans.change_late(&hold("a", 1), |span| span.is_overlapped = true));
        let changed = spans.changes();
        assert_eq!((&changed[0]["to"], changed.last().map(|span| &span["overlapped"])), (&json!(9), Some(&json!(true))));
        assert_eq!(spans.all().len(), 1);
    }

    #[test]
    fn what_is_kept_is_bounded_also_if_nobody_takes_it() {
        let mut spans = Spans::default();
        for number in 0..3 * MOST_ENDED as u64 {
            spans.begin(Span::new(hold("a", 1), "Diego", "", number));
            spans.begin(Span::new(hold("a", number + 2), "Diego", "", number));
        }
        assert_eq!(spans.all().len(), MOST_ENDED + MOST_OPEN);
        assert!(spans.left_out > 0 && spans.fresh.len() <= MOST_ENDED && spans.changed.len() <= MOST_OPEN);
    }
}
