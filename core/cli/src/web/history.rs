//! History: the last minutes of what servers showed and clients event, as the page gets it. Pure, and bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;

use locktender::host::cli::{EVENT_KINDS, Level, is_plain, quoted};
use locktender::host::sync::Mutex;
use locktender::{EventKind as Kind, Grant, LockInfo};
use serde_json::{Value, json};
use wildmatch::WildMatch;

use super::held::Lock;
use super::line::ClientEvent;
use super::spans::{Source, Spans};
use super::{client_events, server_snapshot};

/// The most events that are kept: of normal ones, and of those that a person should check.
const MOST_EVENTS: usize = 500;

pub(super) type Shared = Arc<Mutex<History>>;

/// What can be looked back at.
#[derive(Default)]
pub(super) struct History {
    pattern: WildMatch,
    source: Value,
    spans: Spans,
    locks: BTreeMap<String, Lock>,
    changed: BTreeSet<String>,
    gone: Vec<String>,
    normal: VecDeque<Value>,
    troubles: VecDeque<Value>,
    fresh: Vec<Value>,
    /// The events since the start, all and of each kind.
    events: u64,
    of_kinds: BTreeMap<&'static str, u64>,
    /// How many lines were no events.
    skipped: u64,
    longest_wait: u64,
    looked_at: Option<u64>,
    is_cut: bool,
    outage: Option<String>,
    /// Where events come from: `nowhere`, or a feed that is `open` or has `ended`.
    feed: &'static str,
    /// After so many milliseconds without a look, nobody knows what was in between.
    pub(super) gap: u64,
}

impl History {
    /// A history of the locks that match. `source` says where it looks, and is given to the page as it is.
    pub(super) fn new(pattern: &str, source: Value, feed: &'static str, gap: u64) -> Self {
        let of_kinds = EVENT_KINDS.iter().map(|kind| (kind.as_str(), 0)).collect();
        Self { pattern: WildMatch::new(pattern), source, feed, gap, of_kinds, ..Self::default() }
    }

    /// Takes what the servers show, and whether that is all.
    pub(super) fn seen(&mut self, locks: &[LockInfo], is_cut: bool, now: u64) {
        server_snapshot::see(&mut self.spans, locks, self.looked_at, now, self.gap);
        (self.looked_at, self.is_cut, self.outage) = (Some(now), is_cut, None);
        let mut before = mem::take(&mut self.locks);
        for info in locks {
            let (name, lock) = (info.name.clone(), Lock::of(info, now));
            if before.remove(&name).is_none_or(|before| !before.is_like(&lock)) {
                self.changed.insert(name.clone());
            }
            self.locks.insert(name, lock);
        }
        self.gone.extend(before.into_keys());
    }

    /// Takes what holders have noted before the first look.
    pub(super) fn noted(&mut self, grants: &[Grant], now: u64) {
        server_snapshot::past(&mut self.spans, grants.iter().filter(|grant| self.pattern.matches(&grant.name)), now);
    }

    /// Takes that no server could be asked.
    pub(super) fn unseen(&mut self, why: &str) {
        self.outage = Some(quoted(why));
    }

    /// Takes a line of the events.
    pub(super) fn line(&mut self, line: &[u8], now: u64) {
        match ClientEvent::read(line, now) {
            Some(event) if event.lock.as_ref().is_none_or(|lock| self.pattern.matches(lock)) => self.event(&event),
            Some(_) => (),
            None => self.skip(),
        }
    }

    /// Takes that a line is no event.
    pub(super) fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Takes that no event comes any more.
    pub(super) fn feed_ended(&mut self, now: u64) {
        self.feed = "ended";
        for key in self.spans.open_keys(|span| span.key.source == Source::Client) {
            self.spans.end(&key, now, client_events::SILENT);
        }
    }

    fn event(&mut self, event: &ClientEvent) {
        self.events += 1;
        *self.of_kinds.entry(event.kind.as_str()).or_default() += 1;
        if matches!(event.kind, Kind::Acquired | Kind::TimedOut | Kind::Cancelled | Kind::AcquireFailed) {
            self.longest_wait = self.longest_wait.max(event.took.unwrap_or(0));
        }
        client_events::apply(&mut self.spans, event);
        let is_noise = matches!(event.kind, Kind::Round | Kind::Busy | Kind::Queued | Kind::Notified | Kind::Renewed);
        if is_noise {
            return;
        }
        let level = event.kind.level();
        let shown = json!({
            "n": self.events, "at": event.at, "kind": event.kind.as_str(), "trouble": level >= Level::Warning, "lock": event.lock,
            "lane": event.row, "who": event.who, "fence": event.fence.map(|fence| fence.to_string()), "took": event.took,
            "overrun": event.overrun, "text": event.text,
        });
        let kept = if level >= Level::Warning { &mut self.troubles } else { &mut self.normal };
        if kept.len() >= MOST_EVENTS {
            kept.pop_front();
        }
        kept.push_back(shown.clone());
        if self.fresh.len() < MOST_EVENTS {
            self.fresh.push(shown);
        }
    }

    /// All of it, for a page that begins, and for a report.
    pub(super) fn all(&self, now: u64) -> String {
        let mut events: Vec<&Value> = self.troubles.iter().chain(&self.normal).collect();
        events.sort_unstable_by_key(|event| event["n"].as_u64());
        let locks: Vec<Value> = self.locks.iter().map(|(name, lock)| lock.json(name)).collect();
        let mut all = self.head(now);
        all["source"] = self.source.clone();
        all["spans"] = self.spans.all().into();
        (all["locks"], all["gone"], all["events"]) = (locks.into(), json!([]), json!(events));
        text(&all)
    }

    /// What has changed since this was last asked.
    pub(super) fn part(&mut self, now: u64) -> String {
        client_events::sweep(&mut self.spans, now);
        let changed = mem::take(&mut self.changed);
        let locks: Vec<Value> = changed.iter().filter_map(|name| Some(self.locks.get(name)?.json(name))).collect();
        let mut part = self.head(now);
        part["spans"] = self.spans.changes().into();
        part["locks"] = locks.into();
        part["gone"] = json!(mem::take(&mut self.gone));
        part["events"] = mem::take(&mut self.fresh).into();
        text(&part)
    }

    fn head(&self, now: u64) -> Value {
        let mut numbers = self.of_kinds.clone();
        // An event of the kind `skipped` is in no number of the page.
        numbers.extend([("events", self.events), ("skipped", self.skipped)]);
        numbers.extend([("longest_wait", self.longest_wait), ("left_out", self.spans.left_out)]);
        json!({
            "now": now, "looked_at": self.looked_at, "gap": self.gap, "outage": self.outage, "cut": self.is_cut, "feed": self.feed,
            "numbers": numbers,
        })
    }
}

/// JSON in which a name is whole, and yet nothing that a terminal or a page obeys.
fn text(json: &Value) -> String {
    let text = json.to_string();
    if text.chars().all(is_plain) {
        return text;
    }
    // None of them is above U+FFFF.
    text.chars().map(|c| if is_plain(c) { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) }).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use locktender::Remaining;

    use super::*;
    use crate::samples::lock_info;

    const NOW: u64 = 1_795_222_900_000;

    fn history(pattern: &str) -> History {
        History::new(pattern, json!({}), "open", 1_000)
    }

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn lock(name: &str, left: u64) -> LockInfo {
        lock_info(name, "x", 5, Remaining::For(Duration::from_millis(left)), &[])
    }

    fn event(kind: &str, lock: &str) -> Vec<u8> {
        json!({ "event": kind, "lock_name": lock, "app": "Diego", "took": 0.2 }).to_string().into_bytes()
    }

    #[test]
    fn only_what_changed_is_sent_again() {
        let mut history = history("*");
        history.seen(&[lock("a", 9_000), lock("b", 9_000)], false, NOW);
        assert_eq!(read(&history.part(NOW))["locks"].as_array().unwrap().len(), 2);
        // The end of `a` stays, and `b` was renewed.
        history.seen(&[lock("a", 8_000), lock("b", 9_000)], false, NOW + 1_000);
        let part = read(&history.part(NOW + 1_000));
        assert_eq!((part["locks"][0]["name"].as_str(), part["locks"].as_array().unwrap().len()), (Some("b"), 1));
        history.seen(&[lock("b", 8_000)], false, NOW + 2_000);
        let part = read(&history.part(NOW + 2_000));
        assert_eq!((&part["gone"], &part["locks"]), (&json!(["a"]), &json!([])));
        let all = read(&history.all(NOW + 2_000));
        assert_eq!((all["locks"].as_array().unwrap().len(), all["spans"].as_array().unwrap().len()), (1, 2));
    }

    #[test]
    fn events_are_counted_and_lines_that_are_none() {
        let mut history = history("orders:*");
        for line in [
            &event("acquired", "orders:1"),
            &event("overlapped", "orders:1"),
            &event("overlapped", "other"),
            b"nonsense".as_slice(),
        ] {
            history.line(line, NOW);
        }
        let all = read(&history.all(NOW));
        let numbers = &all["numbers"];
        assert_eq!(
            (&numbers["acquired"], &numbers["overlapped"], &numbers["skipped"], &numbers["longest_wait"]),
            (&json!(1), &json!(1), &json!(1), &json!(200))
        );
        assert_eq!(all["events"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn troubles_are_kept_when_thousands_of_normal_events_follow() {
        let mut history = history("*");
        history.line(&event("overlapped", "a"), NOW);
        for _ in 0..3 * MOST_EVENTS {
            history.line(&event("released", "a"), NOW);
        }
        let all = read(&history.all(NOW));
        let events = all["events"].as_array().unwrap();
        assert_eq!((events.len(), events[0]["kind"].as_str()), (MOST_EVENTS + 1, Some("overlapped")));
        assert_eq!(read(&history.part(NOW))["events"].as_array().unwrap().len(), MOST_EVENTS);
        assert_eq!(read(&history.part(NOW))["events"], json!([]));
    }

    #[test]
    fn names_that_look_the_same_are_different_locks() {
        let mut history = history("*");
        let long = "x".repeat(300);
        let names = ["a\nb", r"a\nb", "a\u{202e}", r"a\u{202e}", &*format!("{long}1"), &*format!("{long}2")];
        for _ in 0..2 {
            history.seen(&names.map(|name| lock(name, 9_000)), false, NOW);
        }
        history.line(&event("acquired", names[5]), NOW);
        let all = history.all(NOW);
        assert!(all.chars().all(is_plain));
        let all = read(&all);
        let found = |what: &str, name: &str| -> BTreeSet<String> {
            all[what].as_array().unwrap().iter().map(|each| each[name].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(found("locks", "name"), names.map(str::to_owned).into());
        assert_eq!((found("spans", "lock"), found("events", "lock")), (found("locks", "name"), [names[5].to_owned()].into()));
        // No span ended: nobody was taken for another.
        assert!(all["spans"].as_array().unwrap().iter().all(|span| span["to"].is_null() || span["what"] == "waits"));
    }

    #[test]
    fn an_outage_is_said_until_the_next_look() {
        let mut history = history("*");
        history.unseen("no server\nanswers");
        assert_eq!(read(&history.part(NOW))["outage"], r"no server\nanswers");
        history.seen(&[], false, NOW);
        assert_eq!(read(&history.part(NOW))["outage"], Value::Null);
    }

    #[test]
    fn when_the_events_end_nobody_holds_in_the_picture_of_the_clients() {
        let mut history = history("*");
        history.line(&event("acquired", "a"), NOW);
        history.feed_ended(NOW + 5);
        let all = read(&history.all(NOW + 9));
        let hold = all["spans"].as_array().unwrap().iter().find(|span| span["what"] == "holds").unwrap();
        assert_eq!((&hold["to"], &hold["end"], &all["feed"]), (&json!(NOW + 5), &json!("unheard"), &json!("ended")));
    }
}
