//! Events as points of a time series, in InfluxDB's line protocol.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Event;
use crate::clock::micros;
use crate::error::LossReason;
use crate::name::LockKind;

/// The measurement of all points.
const MEASUREMENT: &str = "locktender";

/// What a point says. What there is none of is left out.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the fields of an event")]
pub struct Point<'a> {
    pub kind: &'a str,
    pub family: Option<&'a str>,
    pub lock_kind: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub server: Option<&'a str>,
    pub lock: Option<&'a str>,
    pub owner: Option<&'a str>,
    pub rival: Option<&'a str>,
    pub address: Option<&'a str>,
    pub old_era: Option<&'a str>,
    pub new_era: Option<&'a str>,
    pub message: Option<&'a str>,
    pub fence: Option<u64>,
    pub rival_fence: Option<u64>,
    pub rank: Option<u64>,
    pub attempt: Option<u32>,
    pub took: Option<Duration>,
    pub overrun: Option<Duration>,
    pub remaining: Option<Duration>,
}

impl Point<'_> {
    /// The line, with the `given` tags first.
    #[must_use]
    pub fn line(&self, given: &[(&str, &str)], at: SystemTime) -> String {
        let mut line = MEASUREMENT.to_owned();
        let own = [
            ("event", Some(self.kind)),
            ("family", self.family),
            ("kind", self.lock_kind),
            ("reason", self.reason),
            ("server", self.server),
        ];
        let given = given.iter().map(|(name, value)| (*name, Some(*value)));
        for (name, value) in given.chain(own) {
            // A tag without a value is none.
            if let Some(value) = value.filter(|value| !value.is_empty() && !name.is_empty()) {
                let _ = write!(line, ",{}={}", tag(name), tag(value));
            }
        }
        let texts = [
            ("lock", self.lock),
            ("owner", self.owner),
            ("rival", self.rival),
            ("address", self.address),
            ("old_era", self.old_era),
            ("new_era", self.new_era),
            // A point has at least one field.
            ("message", Some(self.message.unwrap_or(self.kind))),
        ];
        let attempt = self.attempt.map(u64::from);
        let numbers = [("fence", self.fence), ("rival_fence", self.rival_fence), ("rank", self.rank), ("attempt", attempt)];
        let times = [("took", self.took), ("overrun", self.overrun), ("remaining", self.remaining)];
        let texts = texts.into_iter().filter_map(|(name, value)| Some(format!("{name}=\"{}\"", text(value?))));
        let numbers = numbers.into_iter().filter_map(|(name, value)| Some(format!("{name}={}i", value?)));
        let times = times.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", micros(value?) as f64 / 1e6)));
        let fields: Vec<String> = texts.chain(numbers).chain(times).collect();
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let _ = write!(line, " {} {at}", fields.join(","));
        line
    }
}

impl Event {
    /// The event as one line of [InfluxDB's line protocol](https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/): a
    /// point of the measurement `locktender`, with its time in nanoseconds, without a newline at the end.
    ///
    /// Its tags are the given ones, such as `app` and `host`, and `event` (the kind), `family`, `kind` (what the lock is for), `reason` and
    /// `server`. All other fields of the event are fields of the point; times are in seconds. Text has no control characters there. A
    /// backslash in a tag becomes a slash, because the protocol can't have one at the end.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use std::time::SystemTime;
    /// # use locktender::{Client, Event};
    /// # let lines = Arc::new(Mutex::new(Vec::new()));
    /// # let kept = Arc::clone(&lines);
    /// let sink = move |event: &Event| kept.lock().unwrap().push(event.line_protocol(&[("app", "billing")], SystemTime::now()));
    /// let client = Client::builder().url("memory://docs-line-protocol").sink(Arc::new(sink)).build()?;
    /// client.lock("orders:42").acquire_blocking()?.release_blocking()?;
    /// assert!(lines.lock().unwrap()[0].starts_with("locktender,app=billing,event=attempt,family=orders,kind=lock "));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn line_protocol(&self, tags: &[(&str, &str)], at: SystemTime) -> String {
        let point = Point {
            kind: self.kind.as_str(),
            family: self.family.as_deref(),
            lock_kind: self.lock_kind.map(LockKind::as_str),
            reason: self.reason.map(LossReason::as_str),
            server: self.server.as_deref(),
            lock: self.lock.as_deref(),
            owner: self.owner.as_deref(),
            rival: self.rival.as_deref(),
            address: self.address.as_deref(),
            old_era: self.old_era.as_deref(),
            new_era: self.new_era.as_deref(),
            message: self.message.as_deref(),
            fence: self.fence,
            rival_fence: self.rival_fence,
            rank: self.rank,
            attempt: self.attempt,
            took: self.took,
            overrun: self.overrun,
            remaining: self.remaining,
        };
        point.line(tags, at)
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
    use super::*;
    use crate::event::EventKind;
    use crate::name::{Keys, Kind};

    #[test]
    fn a_point_has_the_events_fields() {
        let keys = Keys::new(Kind::Job, "prod:", "mail:7", true).unwrap();
        let mut event = Event::of(EventKind::Race, &keys);
        (event.owner, event.fence, event.attempt) = (Some("app=billing".into()), Some(7), Some(2));
        (event.took, event.overrun) = (Some(Duration::from_millis(1_500)), Some(Duration::ZERO));
        (event.rival, event.rival_fence) = (Some("a \"b\"\\\n".to_owned()), Some(8));
        let at = UNIX_EPOCH + Duration::new(1, 5);
        let line = event.line_protocol(&[("app", "billing"), ("host", "")], at);
        let fields = "lock=\"mail:7\",owner=\"app=billing\",rival=\"a \\\"b\\\"\\\\\u{fffd}\",message=\"race\",fence=7i,rival_fence=8i,\
                      attempt=2i,took=1.5,overrun=0";
        assert_eq!(line, format!("locktender,app=billing,event=race,family=mail,kind=job {fields} 1000000005"));
    }

    #[test]
    fn an_event_of_a_server_has_a_field_too() {
        let mut event = Event::new(EventKind::ServerRecovered);
        event.server = Some("redis://a b,c=d\\".to_owned());
        let line = event.line_protocol(&[("a=b", "x\ny")], UNIX_EPOCH);
        assert_eq!(
            line,
            "locktender,a\\=b=x\u{fffd}y,event=server_recovered,server=redis://a\\ b\\,c\\=d/ message=\"server_recovered\" 0"
        );
    }
}
