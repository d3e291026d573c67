use super::*;
use crate::error::LossReason;
use crate::metrics::Metrics;
use crate::metrics::meter::Meters;
use crate::metrics::reading::Reading;
use crate::name::{Keys, Kind};

const TTL: Duration = Duration::from_secs(9);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn keys() -> Keys {
    Keys::new(Kind::Job, "", "orders:42", true).unwrap()
}

/// An event without a hold.
fn event(kind: EventKind, took: Duration) -> LockEvent {
    LockEvent { took: Some(took), ..LockEvent::of(kind, &keys()) }
}

/// An event of this client's own hold.
fn own(kind: EventKind, took: Duration) -> LockEvent {
    LockEvent { owner: Some("me".into()), fence: Some(7), ..event(kind, took) }
}

/// The metrics behind these events of one acquisition, which is still there or was `dropped`.
fn behind(events: &[LockEvent], dropped: bool) -> Metrics {
    let meter = Meters::new("", []).of(keys().label());
    let measured = Measured::begin(Arc::clone(&meter), Tick::from_micros(1));
    events.iter().for_each(|event| measured.note(event, TTL));
    let measured = Some(measured).filter(|_| !dropped);
    let mut reading = Reading::new("");
    reading.meter(&meter, Present::default());
    drop(measured);
    reading.done()
}

/// Each `name`, or `name label=value`, has its value.
fn expect(metrics: &Metrics, wanted: &[(&str, f64)]) {
    for (key, value) in wanted {
        let (name, label) = key.split_once(' ').unwrap_or((key, ""));
        let labels: Vec<_> = label.split_once('=').into_iter().collect();
        assert_eq!(metrics.value(&format!("locktender_{name}"), &labels), *value, "{key}");
    }
}

#[test]
fn an_acquire_ends_once_and_a_hold_ends_once() {
    let lost = LockEvent { reason: Some(LossReason::Missing), ..own(EventKind::Lost, ms(50)) };
    let life = [event(EventKind::Round, ms(0)), own(EventKind::Acquired, ms(20)), lost, own(EventKind::Overlapped, ms(70))];
    for (count, held, ended) in [(1, 0.0, 0.0), (2, 1.0, 0.0), (3, 0.0, 1.0), (4, 0.0, 1.0)] {
        expect(&behind(&life[..count], false), &[("held", held), ("holds_total", ended), ("hold_seconds", ended)]);
    }
    let all = behind(&life, false);
    expect(
        &all,
        &[("holds_total end=lost", 1.0), ("losses_total reason=missing", 1.0), ("validity_exceeded_total overlap=proved", 1.0)],
    );
    expect(&all, &[("wait_seconds", 1.0), ("acquire_rounds_total", 1.0), ("last_fence", 7.0), ("waiting", 0.0)]);
}

#[test]
fn whatever_is_dropped_has_an_end() {
    expect(&behind(&[], false), &[("waiting", 1.0)]);
    expect(&behind(&[], true), &[("waiting", 0.0), ("acquires_total end=cancelled", 1.0)]);
    let held = [own(EventKind::Acquired, ms(20))];
    expect(&behind(&held, true), &[("held", 0.0), ("holds_total end=dropped", 1.0), ("acquires_total", 1.0)]);
}

#[test]
fn a_renewal_is_late_with_less_than_a_third_of_the_ttl_left() {
    let renewed = |left| LockEvent { remaining: Some(left), ..own(EventKind::Renewed, ms(5)) };
    let extended = LockEvent { remaining: Some(ms(1)), ..own(EventKind::Extended, ms(5)) };
    let events = [own(EventKind::Acquired, ms(1)), renewed(ms(6_000)), renewed(ms(3_000)), renewed(ms(2_999)), extended];
    let counted = [("renewals_total", 3.0), ("late_renewals_total", 1.0), ("extensions_total", 1.0), ("renewal_seconds", 4.0)];
    expect(&behind(&events, false), &counted);
}

#[test]
fn a_hand_over_to_a_notified_waiter_has_its_time() {
    let acquired = LockEvent { notified_ago: Some(ms(3)), ..own(EventKind::Acquired, ms(500)) };
    let notified = behind(&[acquired], false);
    expect(&notified, &[("handover_seconds", 1.0), ("held", 1.0)]);
}

#[test]
fn an_attempt_that_ends_is_no_acquire_that_ends() {
    for (kind, end) in [(EventKind::Done, "done"), (EventKind::Retry, "retry"), (EventKind::Dead, "dead")] {
        let ended = behind(&[own(EventKind::Acquired, ms(1)), own(EventKind::Released, ms(2)), own(kind, ms(2))], false);
        expect(&ended, &[(&format!("job_attempts_total end={end}"), 1.0), ("acquires_total", 1.0), ("holds_total", 1.0)]);
    }
    for (kind, end) in [(EventKind::Done, "done"), (EventKind::Dead, "dead"), (EventKind::Skipped, "skipped")] {
        let over = behind(&[event(kind, ms(1))], false);
        expect(&over, &[(&format!("acquires_total end={end}"), 1.0), ("job_attempts_total", 0.0), ("waiting", 0.0)]);
    }
}

#[test]
fn what_is_under_way_is_seen_before_it_ends() {
    let meter = Meters::new("", []).of(keys().label());
    let measured = Measured::begin(meter, Tick::from_micros(1_000_000));
    let (now, mut present) = (Tick::from_micros(5_000_000), Present::default());
    measured.add_to(&mut present, Tick::default(), None, now);
    assert_eq!((present.longest_wait, present.longest_hold), (Duration::from_secs(4), Duration::ZERO));
    measured.note(&own(EventKind::Acquired, Duration::from_secs(1)), TTL);
    let mut present = Present::default();
    measured.add_to(&mut present, now.after(ms(700)), Some(Duration::from_secs(6)), now);
    assert_eq!((present.longest_wait, present.longest_hold), (Duration::ZERO, Duration::from_secs(3)));
    assert_eq!((present.least_validity, present.max_hold_ratio), (Some(ms(700)), Some(0.5)));
}
