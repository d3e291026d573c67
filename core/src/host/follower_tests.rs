use super::*;
use crate::name::{Keys, Kind};

const WEB: u64 = 3;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn event(kind: EventKind, number: u64, lock: &str) -> LockEvent {
    let keys = Keys::new(Kind::Exclusive, "p:", lock, true).unwrap();
    LockEvent { trace: number, took: Some(Duration::from_millis(1_500)), ..LockEvent::of(kind, &keys) }
}

/// An acquire that the core begins, or doesn't.
fn begin(follower: &mut Follower, number: u64, has_begun: bool) {
    follower.begin(number, Some("orders:42"), at(10));
    if has_begun {
        assert_eq!(trace_next(0), number);
    }
    follower.started(number);
}

fn notes(follower: &mut Follower, number: u64, kinds: &[EventKind]) {
    let waited = kinds.contains(&EventKind::Notified).then_some(Duration::from_millis(1));
    for kind in kinds {
        let notified_ago = waited.filter(|_| *kind == EventKind::Acquired);
        follower.event(WEB, "web", &LockEvent { notified_ago, ..event(*kind, number, "orders:42") }, at(20));
    }
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::Text(value.to_owned())
}

fn named<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Attributes {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn value<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a AttributeValue> {
    attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Each record: what was measured, the span, its end, its error's type, and a mark if it is the last one.
fn shown(follower: &mut Follower) -> Vec<String> {
    let records = std::mem::take(&mut follower.records);
    let show = |record: Record| {
        let time = record.time.map_or("", |(name, ..)| name);
        let span = record.span.map(|span| {
            let tags = ["locktender.end", "error.type"].map(|name| match value(&span.attributes, name) {
                Some(AttributeValue::Text(text)) => format!(" {text}"),
                _ => String::new(),
            });
            format!("{}{}", span.name, tags.concat())
        });
        format!("{time}: {}{}", span.unwrap_or_default(), if record.is_last { "." } else { "" })
    };
    records.into_iter().map(show).collect()
}

#[test]
fn an_acquire_and_its_hold_end_as_their_events_and_the_answer_say() {
    use EventKind::*;
    let (result, error, left) = ((None, false), (Some("CLOSED"), false), (None, true));
    let table: [(&[EventKind], _, &[EventKind], &[&str]); 13] = [
        (&[Round, Acquired], result, &[Released], &["wait: acquire acquired", "hold: hold released."]),
        (&[Round, Acquired, Lost], result, &[Released], &["wait: acquire acquired", "hold: hold lost LOCK_LOST."]),
        (&[Acquired], result, &[Overlapped, Released], &["wait: acquire acquired", "hold: hold overlapped overlapped."]),
        (&[Acquired], left, &[Released], &["wait: acquire acquired", "hold: hold released."]),
        (&[Acquired], result, &[Done, Dropped], &["wait: acquire acquired", "hold: hold dropped."]),
        (&[NotAcquired], result, &[], &["wait: acquire not_acquired."]),
        (&[Round, AcquireFailed], error, &[], &["wait: acquire acquire_failed CLOSED."]),
        (&[Round], left, &[Cancelled], &["wait: acquire cancelled."]),
        (&[Round], left, &[], &[]),
        (&[Acquired], result, &[], &["wait: acquire acquired"]),
        (&[Skipped], result, &[Released], &["wait: acquire skipped."]),
        // Several locks, each with events of its own.
        (
            &[Queued, Notified, Acquired, Acquired],
            result,
            &[Renewed, Renewed, Released, Lost],
            &["handover: ", "wait: acquire acquired", "renewal: ", "renewal: ", "hold: hold released."],
        ),
        (
            &[Queued, Notified, Acquired],
            result,
            &[Renewed, Extended, HandedOver],
            &["handover: ", "wait: acquire acquired", "renewal: ", "renewal: ", "hold: hold handed_over."],
        ),
    ];
    for (before, (code, left), after, expected) in table {
        let mut follower = Follower::default();
        begin(&mut follower, 7, true);
        notes(&mut follower, 7, before);
        follower.answer(7, code.map(|code| (code.to_owned(), "why".to_owned())), left, at(21));
        notes(&mut follower, 7, after);
        let is_over = expected.last().is_some_and(|last| last.ends_with('.'));
        assert_eq!(
            (shown(&mut follower), follower.followed.is_empty()),
            (expected.iter().map(|&each| each.into()).collect(), is_over)
        );
    }
}

#[test]
fn an_acquire_that_has_not_begun_ends_with_its_answer() {
    for (code, left, end) in [(Some("INVALID_ARGUMENT"), false, "acquire_failed"), (None, true, "cancelled")] {
        let mut follower = Follower::default();
        begin(&mut follower, 7, false);
        follower.answer(7, code.map(|code| (code.to_owned(), "why".to_owned())), left, at(12));
        let [record] = <[Record; 1]>::try_from(std::mem::take(&mut follower.records)).unwrap();
        let span = record.span.unwrap();
        assert_eq!((record.client, record.time, record.is_last), (None, None, true));
        assert_eq!(value(&span.attributes, "locktender.end"), Some(&text(end)));
        assert_eq!(value(&span.attributes, "locktender.lock_name"), Some(&text("orders:42")));
        assert_eq!(value(&span.attributes, "locktender.wait"), Some(&AttributeValue::Time(Duration::from_secs(2))));
        assert_eq!((span.error.as_deref(), trace_next(0)), (code.map(|_| "why"), 0));
    }
}

#[test]
fn a_span_says_what_the_events_say() {
    let mut follower = Follower::default();
    begin(&mut follower, 7, true);
    let owner = Some("owner=1".into());
    let granted = LockEvent { owner, fence: Some(5), attempt: Some(2), ..event(EventKind::Acquired, 7, "orders:42") };
    let reason = Some(LossReason::Taken);
    let lost =
        LockEvent { reason, next_owner: Some("next".to_owned()), next_fence: Some(6), ..event(EventKind::Lost, 7, "orders:42") };
    follower.event(WEB, "web\n", &event(EventKind::Round, 7, "orders:42"), at(10));
    follower.event(WEB, "web\n", &granted, at(12));
    follower.answer(7, None, false, at(13));
    follower.event(WEB, "web\n", &lost, at(14));
    let [acquire, hold] = <[Record; 2]>::try_from(std::mem::take(&mut follower.records)).unwrap();
    let labels = named([
        ("locktender.app", text("web\u{fffd}")),
        ("locktender.kind", text("lock")),
        ("locktender.category", text("orders")),
    ]);
    let wait = Duration::from_millis(1_500);
    assert_eq!((acquire.client, &acquire.time), (Some(WEB), &Some(("wait", wait, labels.clone()))));
    let lock = named([("locktender.lock_name", text("orders:42")), ("locktender.key", text("p:orders:42"))]);
    let owned = |end| {
        let own = named([("locktender.end", text(end)), ("locktender.owner", text("owner=1"))]);
        let numbers = [("locktender.fence", AttributeValue::Whole(5)), ("locktender.job.attempt", AttributeValue::Whole(2))];
        [lock.clone(), labels.clone(), own, named(numbers)].concat()
    };
    let attempts = named([("locktender.rounds", AttributeValue::Whole(1)), ("locktender.wait", AttributeValue::Time(wait))]);
    let (begun, granted, over) = (Duration::from_secs(10), Duration::from_secs(12), Duration::from_secs(14));
    let attributes = [owned("acquired"), attempts].concat();
    assert_eq!(acquire.span, Some(Span { name: "acquire", begun, ended: granted, attributes, error: None, event: None }));
    let why = ("locktender.reason", text("taken"));
    let found =
        named([("locktender.next_owner", text("next")), ("locktender.next_fence", AttributeValue::Whole(6)), why.clone()]);
    let attributes = [owned("lost"), named([("error.type", text("LOCK_LOST")), why])].concat();
    let (error, event) = (Some("taken".to_owned()), Some(("lost", found)));
    assert_eq!(hold.span, Some(Span { name: "hold", begun: granted, ended: over, attributes, error, event }));
}

#[test]
fn families_that_are_too_many_are_one() {
    let mut follower = Follower::default();
    for number in 1..=MAX_LABELS as u64 + 1 {
        begin(&mut follower, number, true);
        follower.event(WEB, "web", &event(EventKind::Extended, number, &format!("category-{number}:1")), at(11));
    }
    let categories: Vec<_> =
        follower.records.iter().map(|record| record.time.as_ref().unwrap().2.last().unwrap().1.clone()).collect();
    assert_eq!(categories[MAX_LABELS - 1..], [text(&format!("category-{MAX_LABELS}")), text(OTHER)]);
}

#[test]
fn while_too_many_records_wait_only_renewals_are_dropped() {
    let mut follower = Follower::default();
    begin(&mut follower, 7, true);
    notes(&mut follower, 7, &[EventKind::Acquired]);
    follower.answer(7, None, false, at(21));
    notes(&mut follower, 7, &[EventKind::Renewed; MOST + 5]);
    assert!(follower.is_full() && follower.records.len() == MOST);
    notes(&mut follower, 7, &[EventKind::Extended, EventKind::Released]);
    assert_eq!(shown(&mut follower)[MOST..], ["renewal: ", "hold: hold released."]);
    // Nobody follows it any more.
    notes(&mut follower, 7, &[EventKind::Released]);
    follower.answer(7, None, false, at(22));
    assert!(follower.records.is_empty());
}
