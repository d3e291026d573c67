//! Line: an event of the library in a line of JSON, as the logs of the three languages write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::host::cli::{EVENT_KINDS, Fields, MAX_NAME_BYTES, quoted};
use locktender::{EventKind as Kind, OwnerFields};
use serde_json::Value;

use crate::shown;
use crate::span::instant;

/// In milliseconds since 1970.
const YEAR_2000: u64 = 946_684_800_000;

/// A month.
const LONGEST: u64 = 30 * 86_400_000;

/// An event of a client. The lock's name is as it is; other texts are on one line, and not long. Times are milliseconds, moments those
/// since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientEvent {
    pub(super) at: u64,
    pub(super) kind: Kind,
    pub(super) lock: Option<String>,
    /// The application, else the process.
    pub(super) row: String,
    /// The process, with its application.
    pub(super) who: Option<String>,
    pub(super) has_owner: bool,
    pub(super) fence: Option<u64>,
    pub(super) next_fence: Option<u64>,
    pub(super) took: Option<u64>,
    pub(super) overrun: Option<u64>,
    /// What else it says: the reason, the server, the message.
    pub(super) text: String,
}

impl ClientEvent {
    /// Reads a line that came at `now`; `None` if it is no event.
    pub(super) fn read(line: &[u8], now: u64) -> Option<Self> {
        let whole: Value = serde_json::from_slice(line).ok()?;
        // `tracing` writes an event's own fields into one.
        let line = Line { inner: whole.get("fields").unwrap_or(&whole), whole: &whole };
        let kind = line.text(&["event", "kind"])?;
        let kind = *EVENT_KINDS.iter().find(|known| known.as_str() == kind)?;
        let lock = line.text(&["lock_name", "lockName"]);
        if lock.is_some_and(|name| name.len() > MAX_NAME_BYTES) {
            return None;
        }
        let owner = line.text(&["owner"]);
        let fields = owner.and_then(OwnerFields::parse);
        let app = line.text(&["app"]).map(quoted);
        let who = fields.as_ref().map(who);
        let row = app.or_else(|| fields.as_ref().map(row)).unwrap_or_else(|| "unnamed".to_owned());
        let text = ["reason", "server", "message"].iter().filter_map(|name| line.text(&[name])).collect::<Vec<_>>().join(": ");
        Some(Self {
            // A time before 2000 is none of the calendar, such as the seconds since a program's start.
            at: line.moment().filter(|at| (YEAR_2000..now).contains(at)).unwrap_or(now),
            kind,
            lock: lock.map(str::to_owned),
            row,
            who,
            has_owner: owner.is_some(),
            fence: line.number(&["fence"]),
            next_fence: line.number(&["next_fence", "nextFence"]),
            took: line.span("took"),
            overrun: line.span("overrun"),
            text: quoted(&text),
        })
    }
}

/// The row of a process: its application, else itself.
pub(super) fn row(fields: &OwnerFields) -> String {
    fields.app.as_deref().filter(|app| !app.is_empty()).map_or_else(|| who(fields), quoted)
}

/// A process, as `billing@web-3:4711`.
pub(super) fn who(fields: &OwnerFields) -> String {
    quoted(&shown::process(fields))
}

/// The process of a waiter, whose place in the queue is a number and then these fields.
pub(super) fn process(waiter: &str) -> OwnerFields {
    let (fields, mut process) = (Fields::parse(waiter), OwnerFields::default());
    (process.app, process.host) = (fields.get("app"), fields.get("host"));
    process.pid = fields.get("pid").and_then(|pid| pid.parse().ok());
    process
}

struct Line<'a> {
    inner: &'a Value,
    whole: &'a Value,
}

impl Line<'_> {
    fn find(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.inner.get(name).or_else(|| self.whole.get(name)))
    }

    fn text(&self, names: &[&str]) -> Option<&str> {
        self.find(names)?.as_str()
    }

    fn number(&self, names: &[&str]) -> Option<u64> {
        let value = self.find(names)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }

    /// A time: in seconds, or in milliseconds if its name says so. It is at most a month, since no lock is held or waited for that long.
    fn span(&self, name: &str) -> Option<u64> {
        let milliseconds = self.find(&[&format!("{name}_ms"), &format!("{name}Ms")]).and_then(Value::as_f64);
        let time = milliseconds.or_else(|| Some(self.find(&[name])?.as_f64()? * 1e3))?;
        time.is_finite().then_some((time.max(0.0) as u64).min(LONGEST))
    }

    /// When it happened, if the line says so.
    fn moment(&self) -> Option<u64> {
        let value = self.find(&["at", "timestamp", "time", "ts", "@timestamp"])?;
        match value.as_f64() {
            // No clock shows a second as far from 1970 as this: milliseconds.
            Some(at) if at >= 1e11 => Some(at as u64),
            Some(at) => Some((at * 1e3) as u64),
            None => instant(value.as_str()?).ok().map(since_1970),
        }
    }
}

pub(super) fn now() -> u64 {
    since_1970(SystemTime::now())
}

pub(super) fn since_1970(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_795_222_900_000;

    fn read(line: &str) -> Option<ClientEvent> {
        ClientEvent::read(line.as_bytes(), NOW)
    }

    #[test]
    fn the_logs_of_three_languages_are_read() {
        let python = r#"{"level":"INFO","message":"released key=\"a\"","event":"released","lock_name":"a","fence":7,"took":0.25,
            "owner":"app=billing host=web-3 pid=4 at=2026-11-21T02:22:10.123Z id=x","at":1795222800.5}"#;
        let node = r#"{"kind":"released","lockName":"a","fence":7,"tookMs":250.4,"time":1795222800500,
            "owner":"app=billing host=web-3 pid=4 at=2026-11-21T02:22:10.123Z id=x"}"#;
        let rust = r#"{"timestamp":"2026-11-21T01:00:00.500Z","level":"DEBUG","fields":{"kind":"released","lock_name":"a","fence":7,"took_ms":250,
            "owner":"app=billing host=web-3 pid=4 at=2026-11-21T02:22:10.123Z id=x"},"target":"locktender"}"#;
        for line in [python, node, rust] {
            let event = read(line).unwrap();
            assert_eq!((event.at, event.kind, event.lock.as_deref()), (1_795_222_800_500, Kind::Released, Some("a")), "{line}");
            assert_eq!((event.row.as_str(), event.who.as_deref()), ("billing", Some("billing@web-3:4")), "{line}");
            assert_eq!((event.fence, event.took, event.has_owner), (Some(7), Some(250), true), "{line}");
        }
    }

    #[test]
    fn what_is_no_event_is_none() {
        for line in ["", "{}", "[]", "7", "nonsense", r#"{"event":"login"}"#, r#"{"event":7}"#, r#"{"kind":"busy""#, "\u{0}"] {
            assert_eq!(read(line), None, "{line:?}");
        }
        assert_eq!(ClientEvent::read(b"\xff\xfe", NOW), None);
    }

    #[test]
    fn an_event_without_a_time_or_of_the_future_is_of_now() {
        for line in [r#"{"event":"busy"}"#, r#"{"event":"busy","at":"soon"}"#, r#"{"event":"busy","at":9e15}"#] {
            assert_eq!(read(line).unwrap().at, NOW, "{line}");
        }
    }

    #[test]
    fn a_time_that_is_none_of_the_calendar_is_of_now_and_a_span_ends_after_a_month() {
        for (at, read_at) in [("1.5", NOW), ("-5", NOW), ("946684799", NOW), ("946684800", YEAR_2000), ("1e300", NOW)] {
            assert_eq!(read(&format!(r#"{{"event":"busy","at":{at}}}"#)).unwrap().at, read_at, "{at}");
        }
        for (took, ms) in [("1e300", LONGEST), ("2592001", LONGEST), ("-1", 0), ("2.5", 2_500)] {
            let event = read(&format!(r#"{{"event":"released","took":{took},"overrun":{took}}}"#)).unwrap();
            assert_eq!((event.took, event.overrun), (Some(ms), Some(ms)), "{took}");
        }
    }

    #[test]
    fn an_application_has_a_row_and_else_a_process() {
        for (line, row) in [
            (r#"{"event":"busy"}"#, "unnamed"),
            (r#"{"event":"busy","app":"Diego"}"#, "Diego"),
            (r#"{"event":"acquired","owner":"host=a pid=3 id=x"}"#, "a:3"),
            (r#"{"event":"acquired","owner":"app=b host=a pid=3 id=x"}"#, "b"),
            (r#"{"event":"acquired","owner":"ffff"}"#, "unnamed"),
        ] {
            assert_eq!(read(line).unwrap().row, row, "{line}");
        }
    }

    #[test]
    fn texts_are_harmless_and_short() {
        let line = r#"{"event":"warning","lock_name":"a\u001b[2J\u202eb","message":"x\ny","app":"LONG"}"#
            .replace("LONG", &"é".repeat(999));
        let event = read(&line).unwrap();
        assert_eq!((event.lock.as_deref(), event.text.as_str()), (Some("a\u{1b}[2J\u{202e}b"), r"x\ny"));
        assert_eq!(event.row.chars().count(), 201);
        let long = |count| json!({ "event": "busy", "lock_name": "x".repeat(count) }).to_string();
        assert!(read(&long(MAX_NAME_BYTES)).is_some() && read(&long(MAX_NAME_BYTES + 1)).is_none());
    }
}
