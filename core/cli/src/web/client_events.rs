//! Client events: the changes of the spans by an event of a client.

use locktender::EventKind as Kind;

use super::line::ClientEvent;
use super::spans::{Key, Place, Source, Span, Spans};

/// The shortest wait that is shown if no event came at its begin.
const SHORTEST_WAIT: u64 = 20;

/// For how long a hold is shown that is over by all that is known, and whose client says nothing: it may be dead.
const SILENT_HOLD: u64 = 30_000;
/// The same of a wait, which is silent while it stands in the queue.
const SILENT_WAIT: u64 = 600_000;

/// How a span ended of whose client no event came any more.
pub(super) const SILENT: &str = "unheard";

/// Changes the spans as the event says.
pub(super) fn apply(spans: &mut Spans, event: &ClientEvent) {
    let Some(lock) = event.lock.as_deref() else { return };
    match event.kind {
        Kind::Busy | Kind::Queued => waits(spans, event, lock),
        Kind::Acquired => {
            waited(spans, event, lock);
            spans.begin(hold(event, lock, event.at));
            replace(spans, event, lock);
        }
        Kind::Renewed | Kind::Extended => confirmed(spans, event, lock),
        Kind::Expired | Kind::Lost | Kind::Overlapped => ended(spans, event, lock, |span| overrun(span, event)),
        end if end.ends_hold() => ended(spans, event, lock, |span| span.over_from = None),
        // The end of an attempt has an owner.
        Kind::Done | Kind::Dead if event.has_owner => (),
        end if end.ends_acquire() => waited(spans, event, lock),
        _ => (),
    }
}

/// Ends the spans of which no event comes any more.
pub(super) fn sweep(spans: &mut Spans, now: u64) {
    let is_silent = |span: &Span| {
        let (since, patience) = if span.is_hold() { (span.over_from, SILENT_HOLD) } else { (Some(span.last_event), SILENT_WAIT) };
        span.key.source == Source::Client && since.is_some_and(|since| since.max(span.last_event) + patience < now)
    };
    for key in spans.open_keys(is_silent) {
        spans.end(&key, now, SILENT);
    }
}

fn waiting(event: &ClientEvent, lock: &str) -> Key {
    Key { source: Source::Client, lock: lock.to_owned(), place: Place::Waiter(event.row.clone()) }
}

fn holding(lock: &str, fence: Option<u64>) -> Key {
    Key { source: Source::Client, lock: lock.to_owned(), place: Place::Hold(fence.unwrap_or(0)) }
}

fn span(event: &ClientEvent, key: Key, from: u64) -> Span {
    Span { last_event: event.at, ..Span::new(key, &event.row, event.who.as_deref().unwrap_or_default(), from) }
}

fn hold(event: &ClientEvent, lock: &str, from: u64) -> Span {
    Span { fence: event.fence.unwrap_or(0), ..span(event, holding(lock, event.fence), from) }
}

fn waits(spans: &mut Spans, event: &ClientEvent, lock: &str) {
    let key = waiting(event, lock);
    if spans.get(&key).is_some() {
        spans.change(&key, |span| span.last_event = event.at);
    } else {
        spans.begin(span(event, key, event.at.saturating_sub(event.took.unwrap_or(0))));
    }
}

fn waited(spans: &mut Spans, event: &ClientEvent, lock: &str) {
    let key = waiting(event, lock);
    let took = event.took.unwrap_or(0);
    if !spans.end(&key, event.at, event.kind.as_str()) && took >= SHORTEST_WAIT {
        spans.add(span(event, key, event.at.saturating_sub(took)), event.at, event.kind.as_str());
    }
}

/// An earlier hold that has not ended is over, unless its own end comes later.
fn replace(spans: &mut Spans, event: &ClientEvent, lock: &str) {
    let fence = event.fence.unwrap_or(0);
    let earlier =
        |span: &Span| span.key.source == Source::Client && span.key.lock == lock && span.is_hold() && span.fence < fence;
    for key in spans.open_keys(earlier) {
        spans.change(&key, |span| span.over_from = span.over_from.or(Some(event.at)));
    }
}

fn confirmed(spans: &mut Spans, event: &ClientEvent, lock: &str) {
    let key = holding(lock, event.fence);
    if spans.get(&key).is_none() {
        // It began before anybody looked: its fence is about the microsecond of its begin.
        spans.begin(hold(event, lock, began(event.fence.unwrap_or(0), event.at)));
    }
    spans.change(&key, |span| (span.over_from, span.last_event) = (None, event.at));
}

/// About when the hold with this fence began, seen at `now`.
pub(super) fn began(fence: u64, now: u64) -> u64 {
    let at = fence / 1_000;
    // No lock is held for a month: that is no time.
    if at <= now && at + 30 * 86_400_000 > now { at } else { now }
}

fn ended(spans: &mut Spans, event: &ClientEvent, lock: &str, change: impl Fn(&mut Span)) {
    let (key, end) = (holding(lock, event.fence), event.kind.as_str());
    if spans.get(&key).is_some() {
        spans.change(&key, change);
        spans.end(&key, event.at, end);
        return;
    }
    let late = |span: &mut Span| {
        // A release after a loss says nothing new, and what it found says more.
        if event.kind != Kind::Released {
            (span.to, span.end) = (Some(event.at.max(span.from)), end);
            change(span);
        }
    };
    if !spans.change_late(&key, late) {
        let mut whole = hold(event, lock, event.at.saturating_sub(event.took.unwrap_or(0)));
        change(&mut whole);
        spans.add(whole, event.at, end);
    }
}

/// From when on the hold was over before it ended: the end of its validity, or the begin of the next hold.
fn overrun(span: &mut Span, event: &ClientEvent) {
    let end = event.overrun.filter(|late| *late > 0).map(|late| event.at.saturating_sub(late));
    let next = event.next_fence.map(|fence| began(fence, event.at)).filter(|began| (span.from..event.at).contains(began));
    let known = [span.over_from, end, next].into_iter().flatten().min();
    let is_overlapped = event.kind == Kind::Overlapped;
    span.is_overlapped |= is_overlapped;
    span.over_from = known.or_else(|| is_overlapped.then_some(event.at)).map(|over| over.max(span.from));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, at: u64, row: &str, fence: u64) -> ClientEvent {
        ClientEvent {
            at,
            kind,
            lock: Some("roll".to_owned()),
            row: row.to_owned(),
            who: None,
            has_owner: true,
            fence: (fence > 0).then_some(fence),
            next_fence: None,
            took: None,
            overrun: None,
            text: String::new(),
        }
    }

    /// Each span: row, from, to, end, over, overlapped.
    fn drawn(lines: &[ClientEvent]) -> Vec<(String, u64, u64, String, u64, bool)> {
        let mut spans = Spans::default();
        lines.iter().for_each(|event| apply(&mut spans, event));
        let read = |span: &serde_json::Value| {
            let (text, number) =
                (|name: &str| span[name].as_str().unwrap().to_owned(), |name: &str| span[name].as_u64().unwrap_or(0));
            (text("lane"), number("from"), number("to"), text("end"), number("over"), span["overlapped"].as_bool().unwrap())
        };
        spans.all().iter().map(read).collect()
    }

    fn row(row: &str, from: u64, to: u64, end: &str, over: u64, overlapped: bool) -> (String, u64, u64, String, u64, bool) {
        (row.to_owned(), from, to, end.to_owned(), over, overlapped)
    }

    #[test]
    fn one_waits_while_the_other_holds() {
        let lines = [
            event(Kind::Acquired, 1_000, "Diego", 5),
            ClientEvent { took: Some(100), ..event(Kind::Busy, 1_200, "Gorn", 0) },
            event(Kind::Busy, 1_300, "Gorn", 0),
            event(Kind::Released, 2_000, "Diego", 5),
            ClientEvent { took: Some(910), ..event(Kind::Acquired, 2_010, "Gorn", 6) },
        ];
        let expected = [
            row("Diego", 1_000, 2_000, "released", 0, false),
            row("Gorn", 1_100, 2_010, "acquired", 0, false),
            row("Gorn", 2_010, 0, "", 0, false),
        ];
        assert_eq!(drawn(&lines), expected);
    }

    #[test]
    fn a_log_without_the_begin_of_waits_and_holds_shows_them_by_their_times() {
        let lines = [
            ClientEvent { took: Some(600), ..event(Kind::TimedOut, 1_000, "Gorn", 0) },
            ClientEvent { took: Some(700), ..event(Kind::Released, 2_000, "Diego", 5) },
            ClientEvent { took: Some(1), ..event(Kind::NotAcquired, 3_000, "Gorn", 0) },
        ];
        let expected = [row("Gorn", 400, 1_000, "timed_out", 0, false), row("Diego", 1_300, 2_000, "released", 0, false)];
        assert_eq!(drawn(&lines), expected);
    }

    #[test]
    fn a_hold_is_over_when_a_later_one_began_until_its_end_says_otherwise() {
        let taken = [event(Kind::Acquired, 1_000, "Diego", 5), event(Kind::Acquired, 2_000, "Gorn", 6)];
        assert_eq!(drawn(&taken)[0], row("Diego", 1_000, 0, "", 2_000, false));
        // Lines of two processes may come in another order than their events.
        let late = [taken.as_slice(), &[event(Kind::Released, 1_999, "Diego", 5)]].concat();
        assert_eq!(drawn(&late)[0], row("Diego", 1_000, 1_999, "released", 0, false));
        let renewed = [taken.as_slice(), &[event(Kind::Renewed, 2_100, "Diego", 5)]].concat();
        assert_eq!(drawn(&renewed)[0], row("Diego", 1_000, 0, "", 0, false));
    }

    #[test]
    fn a_race_begins_where_its_rival_did_and_is_one_span_with_the_loss_before_it() {
        let lines = [
            event(Kind::Acquired, 1_000, "Diego", 5),
            ClientEvent { overrun: Some(300), ..event(Kind::Lost, 3_000, "Diego", 5) },
            ClientEvent { overrun: Some(500), next_fence: Some(2_500_000), ..event(Kind::Overlapped, 3_200, "Diego", 5) },
        ];
        assert_eq!(drawn(&lines), [row("Diego", 1_000, 3_200, "overlapped", 2_500, true)]);
        let released = [&lines[..2], &[event(Kind::Released, 3_200, "Diego", 5)]].concat();
        assert_eq!(drawn(&released), [row("Diego", 1_000, 3_000, "lost", 2_700, false)]);
        let alone = ClientEvent { took: Some(2_000), next_fence: Some(1), ..event(Kind::Overlapped, 3_000, "Diego", 5) };
        assert_eq!(drawn(&[alone]), [row("Diego", 1_000, 3_000, "overlapped", 3_000, true)]);
    }

    #[test]
    fn what_nobody_reports_ends_in_the_picture() {
        let mut spans = Spans::default();
        apply(&mut spans, &event(Kind::Acquired, 1_000, "Diego", 5));
        apply(&mut spans, &event(Kind::Busy, 1_000, "Gorn", 0));
        sweep(&mut spans, 1_000 + SILENT_WAIT);
        assert_eq!(spans.open_keys(|_| true).len(), 2);
        apply(&mut spans, &event(Kind::Acquired, 2_000, "Milten", 6));
        sweep(&mut spans, 2_001 + SILENT_HOLD);
        assert_eq!(spans.open_keys(Span::is_hold), [holding("roll", Some(6))]);
        sweep(&mut spans, 1_001 + SILENT_WAIT);
        assert_eq!(spans.open_keys(|_| true), [holding("roll", Some(6))]);
    }

    #[test]
    fn a_hold_is_as_old_as_its_fence_says_if_that_is_a_time() {
        let now = 1_795_222_900_000;
        for (fence, from) in [((now - 5) * 1_000, now - 5), ((now + 5) * 1_000, now), (7, now)] {
            let mut spans = Spans::default();
            apply(&mut spans, &event(Kind::Renewed, now, "Diego", fence));
            assert_eq!(spans.all()[0]["from"], from);
        }
    }
}
