use std::time::Duration;

use super::meter::{Meters, ServerMeter};
use super::reading::{Present, Reading};
use super::*;
use crate::event::EventKind;
use crate::name::{Label, LockKind};

fn read(category: &str, held: u32) -> Metrics {
    let meters = Meters::new("", []);
    let meter = meters.of(&Label::new(LockKind::Lock, category));
    for _ in 0..held {
        meter.acquire_begun();
        meter.acquire_ended(EventKind::Acquired, Duration::from_millis(2));
        meter.granted(7);
    }
    let present = Present {
        longest_hold: Duration::from_secs(held.into()),
        least_validity: Some(Duration::from_secs(9)),
        ..Present::default()
    };
    let mut reading = Reading::new("billing");
    reading.meter(&meter, present);
    let server = ServerMeter::new("", "");
    server.note(EventKind::ServerFailed);
    reading.server("redis://a", &server);
    reading.client(3, 0);
    reading.done()
}

#[test]
fn held_is_what_was_acquired_and_has_not_ended() {
    let meters = Meters::new("", []);
    let meter = meters.of(&Label::new(LockKind::Lock, "orders"));
    (0..4).for_each(|_| meter.acquire_begun());
    for end in [EventKind::Acquired, EventKind::Acquired, EventKind::TimedOut] {
        meter.acquire_ended(end, Duration::ZERO);
    }
    meter.hold_ended(EventKind::Lost, Duration::ZERO);
    let mut reading = Reading::new("");
    reading.meter(&meter, Present::default());
    let metrics = reading.done();
    assert_eq!((metrics.value("locktender_held", &[]), metrics.value("locktender_waiting", &[])), (1.0, 1.0));
    assert_eq!(metrics.value("locktender_holds_total", &[("end", "lost")]), 1.0);
    assert_eq!(metrics.value("locktender_wait_seconds", &[]), 3.0);
}

#[test]
fn the_text_of_hostile_labels_stays_one_line_for_each_sample() {
    let text = read("a\"} 1\nlocktender_held{x=\"\\ \u{1b}<b>", 1).openmetrics();
    let held = text.lines().find(|line| line.starts_with("locktender_held{")).unwrap();
    let category = "a\\\"} 1\u{fffd}locktender_held{x=\\\"\\\\ \u{fffd}<b>";
    assert_eq!(held, format!("locktender_held{{app=\"billing\",category=\"{category}\",kind=\"lock\"}} 1"));
    assert!(text.ends_with("# EOF\n"));
    let expected = [
        "# TYPE locktender_acquires counter",
        "# UNIT locktender_wait_seconds seconds",
        "locktender_server_up{app=\"billing\",server=\"redis://a\"} 0",
        "locktender_warnings_total{app=\"billing\"} 3",
    ];
    expected.iter().for_each(|line| assert!(text.lines().any(|found| found == *line), "{line} in {text}"));
}

#[test]
fn the_metrics_of_several_clients_become_those_of_one() {
    let merged = Metrics::merged([read("orders", 2), read("orders", 5), read("mail", 1)]);
    let orders = [("category", "orders")];
    let values =
        ["locktender_held", "locktender_longest_hold_seconds", "locktender_least_validity_seconds", "locktender_wait_seconds"];
    assert_eq!(values.map(|name| merged.value(name, &orders)), [7.0, 5.0, 9.0, 7.0]);
    assert_eq!(merged.value("locktender_held", &[]), 8.0);
    assert_eq!(merged.value("locktender_server_up", &[]), 0.0);
    let names: Vec<_> = merged.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), names.iter().collect::<std::collections::HashSet<_>>().len());
}
