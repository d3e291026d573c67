//! Events as points of a time series, in InfluxDB's line protocol.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Field, LockEvent};
use crate::clock::micros;

/// The measurement of all points.
const MEASUREMENT: &str = "locktender";

/// The fields of an event that are tags of a point, with the names that they have there.
const TAGS: [(&str, &str); 4] = [("category", "category"), ("lock_kind", "kind"), ("reason", "reason"), ("server", "server")];

/// The line of an event of this kind with these fields, with the `given` tags first.
#[must_use]
pub fn line(kind: &str, fields: &[(&str, Field<'_>)], given: &[(&str, &str)], at: SystemTime) -> String {
    let mut line = MEASUREMENT.to_owned();
    let text_of = |name: &str| match fields.iter().find(|field| field.0 == name) {
        Some((_, Field::Text(text))) => *text,
        _ => None,
    };
    let own = TAGS.iter().map(|(field, name)| (*name, text_of(field).unwrap_or_default()));
    for (name, value) in given.iter().copied().chain([("event", kind)]).chain(own) {
        // A tag without a value is none.
        if !value.is_empty() && !name.is_empty() {
            let _ = write!(line, ",{}={}", tag(name), tag(value));
        }
    }
    let [mut texts, mut numbers, mut times] = [const { Vec::new() }; 3];
    for (name, field) in fields.iter().filter(|(name, _)| *name != "key" && TAGS.iter().all(|(tag, _)| tag != name)) {
        match *field {
            // A point has at least one field.
            Field::Text(value) if *name == "message" => texts.push(format!("message=\"{}\"", text(value.unwrap_or(kind)))),
            Field::Text(value) => texts.extend(value.map(|value| format!("{name}=\"{}\"", text(value)))),
            // A point is about one lock.
            Field::Texts(_) => (),
            Field::Number(value) => numbers.extend(value.map(|value| format!("{name}={value}i"))),
            Field::Time(value) | Field::Measured(value) => {
                times.extend(value.map(|value| format!("{name}={}", micros(value) as f64 / 1e6)));
            }
        }
    }
    let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let _ = write!(line, " {} {at}", [texts, numbers, times].concat().join(","));
    line
}

impl LockEvent {
    /// The event as one line of [InfluxDB's line protocol](https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/): a
    /// point of the measurement `locktender`, with its time in nanoseconds, without a newline at the end.
    ///
    /// Its tags are the given ones, such as `app` and `host`, and `event` (the kind), `category`, `kind` (what the lock is for),
    /// `reason` and `server`. All other fields of the event are fields of the point; times are in seconds. Text has no control
    /// characters there. A backslash in a tag becomes a slash, because the protocol can't have one at the end.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use std::time::SystemTime;
    /// # use locktender::{Client, LockEvent};
    /// # let lines = Arc::new(Mutex::new(Vec::new()));
    /// # let kept = Arc::clone(&lines);
    /// let sink = move |event: &LockEvent| kept.lock().unwrap().push(event.line_protocol(&[("app", "billing")], SystemTime::now()));
    /// let client = Client::builder().url("memory://docs-line-protocol").sink(Arc::new(sink)).build()?;
    /// client.lock("orders:42").acquire_blocking()?.release_blocking()?;
    /// assert!(lines.lock().unwrap()[0].starts_with("locktender,app=billing,event=round,category=orders,kind=lock "));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn line_protocol(&self, tags: &[(&str, &str)], at: SystemTime) -> String {
        line(self.kind.as_str(), &self.fields(), tags, at)
    }
}

/// A tag's name or value.
fn tag(value: &str) -> String {
    let mut tag = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            ',' | '=' | ' ' => tag.extend(['\\', letter]),
            '\\' => tag.push('/'),
            other => tag.push(plain(other)),
        }
    }
    tag
}

/// A field's text, between quotes.
fn text(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            other => text.push(plain(other)),
        }
    }
    text
}

/// A newline would end the point, and a terminal obeys other control characters.
fn plain(letter: char) -> char {
    if letter.is_control() { '\u{fffd}' } else { letter }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::EventKind;
    use crate::name::{Keys, Kind};

    #[test]
    fn a_point_has_the_events_fields() {
        let keys = Keys::new(Kind::Job, "prod:", "mail:7", true).unwrap();
        let mut event = LockEvent::of(EventKind::Overlapped, &keys);
        (event.owner, event.fence, event.attempt) = (Some("app=billing".into()), Some(7), Some(2));
        (event.took, event.overrun) = (Some(Duration::from_millis(1_500)), Some(Duration::ZERO));
        (event.next_owner, event.next_fence) = (Some("a \"b\"\\\n".to_owned()), Some(8));
        let at = UNIX_EPOCH + Duration::new(1, 500);
        let line = event.line_protocol(&[("app", "billing"), ("host", "")], at);
        let fields = "lock_name=\"mail:7\",owner=\"app=billing\",next_owner=\"a \\\"b\\\"\\\\\u{fffd}\",message=\"overlapped\",fence=7i,next_fence=8i,\
                      attempt=2i,took=1.5,overrun=0";
        assert_eq!(line, format!("locktender,app=billing,event=overlapped,category=mail,kind=job {fields} 1000000500"));
    }

    #[test]
    fn an_event_of_a_server_has_a_field_too() {
        let mut event = LockEvent::new(EventKind::ServerRecovered);
        event.server = Some("redis://a b,c=d\\".to_owned());
        let line = event.line_protocol(&[("a=b", "x\ny")], UNIX_EPOCH);
        assert_eq!(
            line,
            "locktender,a\\=b=x\u{fffd}y,event=server_recovered,server=redis://a\\ b\\,c\\=d/ message=\"server_recovered\" 0"
        );
    }
}
