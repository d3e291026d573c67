//! Told: what an event of a client means for the spans.

use locktender::EventKind as Kind;

use super::line::Told;
use super::spans::{Key, Place, Source, Span, Spans};

/// The shortest wait that is shown if nothing told of its begin.
const SHORTEST_WAIT: u64 = 20;

/// For how long a hold is shown that is over by all that is known, and whose client says nothing: it may be dead.
const UNHEARD_HOLD: u64 = 30_000;
/// The same of a wait, which is silent while it stands in the queue.
const UNHEARD_WAIT: u64 = 600_000;

/// How a span ended whose client told nothing any more.
pub(super) const UNHEARD: &str = "unheard";

/// Changes the spans as the event says.
pub(super) fn tell(spans: &mut Spans, told: &Told) {
    let Some(lock) = told.lock.as_deref() else { return };
    match told.kind {
        Kind::Busy | Kind::Queued => waits(spans, told, lock),
        Kind::Acquired => {
            waited(spans, told, lock);
            spans.begin(hold(told, lock, told.at));
            replace(spans, told, lock);
        }
        Kind::Renewed | Kind::Extended => confirmed(spans, told, lock),
        Kind::Expired | Kind::Lost | Kind::Overlapped => ended(spans, told, lock, |span| overrun(span, told)),
        end if end.ends_hold() => ended(spans, told, lock, |span| span.over_from = None),
        // The end of an attempt has an owner.
        Kind::Done | Kind::Dead if told.has_owner => (),
        end if end.ends_acquire() => waited(spans, told, lock),
        _ => (),
    }
}

/// Ends what nobody tells of any more.
pub(super) fn sweep(spans: &mut Spans, now: u64) {
    let is_unheard = |span: &Span| {
        let (since, patience) = if span.is_hold() { (span.over_from, UNHEARD_HOLD) } else { (Some(span.heard), UNHEARD_WAIT) };
        span.key.source == Source::Client && since.is_some_and(|since| since.max(span.heard) + patience < now)
    };
    for key in spans.open_keys(is_unheard) {
        spans.end(&key, now, UNHEARD);
    }
}

fn waiting(told: &Told, lock: &str) -> Key {
    Key { source: Source::Client, lock: lock.to_owned(), place: Place::Waiter(told.lane.clone()) }
}

fn holding(lock: &str, fence: Option<u64>) -> Key {
    Key { source: Source::Client, lock: lock.to_owned(), place: Place::Hold(fence.unwrap_or(0)) }
}

fn span(told: &Told, key: Key, from: u64) -> Span {
    Span { heard: told.at, ..Span::new(key, &told.lane, told.who.as_deref().unwrap_or_default(), from) }
}

fn hold(told: &Told, lock: &str, from: u64) -> Span {
    Span { fence: told.fence.unwrap_or(0), ..span(told, holding(lock, told.fence), from) }
}

fn waits(spans: &mut Spans, told: &Told, lock: &str) {
    let key = waiting(told, lock);
    if spans.get(&key).is_some() {
        spans.change(&key, |span| span.heard = told.at);
    } else {
        spans.begin(span(told, key, told.at.saturating_sub(told.took.unwrap_or(0))));
    }
}

fn waited(spans: &mut Spans, told: &Told, lock: &str) {
    let key = waiting(told, lock);
    let took = told.took.unwrap_or(0);
    if !spans.end(&key, told.at, told.kind.as_str()) && took >= SHORTEST_WAIT {
        spans.add(span(told, key, told.at.saturating_sub(took)), told.at, told.kind.as_str());
    }
}

/// An earlier hold that has not ended is over, unless its own end is only told later.
fn replace(spans: &mut Spans, told: &Told, lock: &str) {
    let fence = told.fence.unwrap_or(0);
    let earlier =
        |span: &Span| span.key.source == Source::Client && span.key.lock == lock && span.is_hold() && span.fence < fence;
    for key in spans.open_keys(earlier) {
        spans.change(&key, |span| span.over_from = span.over_from.or(Some(told.at)));
    }
}

fn confirmed(spans: &mut Spans, told: &Told, lock: &str) {
    let key = holding(lock, told.fence);
    if spans.get(&key).is_none() {
        // It began before anybody looked: its fence is about the microsecond of its begin.
        spans.begin(hold(told, lock, began(told.fence.unwrap_or(0), told.at)));
    }
    spans.change(&key, |span| (span.over_from, span.heard) = (None, told.at));
}

/// About when the hold with this fence began, seen at `now`.
pub(super) fn began(fence: u64, now: u64) -> u64 {
    let at = fence / 1_000;
    // No lock is held for a month: that is no time.
    if at <= now && at + 30 * 86_400_000 > now { at } else { now }
}

fn ended(spans: &mut Spans, told: &Told, lock: &str, change: impl Fn(&mut Span)) {
    let (key, end) = (holding(lock, told.fence), told.kind.as_str());
    if spans.get(&key).is_some() {
        spans.change(&key, change);
        spans.end(&key, told.at, end);
        return;
    }
    let late = |span: &mut Span| {
        // A release after a loss says nothing new, and what it found says more.
        if told.kind != Kind::Released {
            (span.to, span.end) = (Some(told.at.max(span.from)), end);
            change(span);
        }
    };
    if !spans.change_late(&key, late) {
        let mut whole = hold(told, lock, told.at.saturating_sub(told.took.unwrap_or(0)));
        change(&mut whole);
        spans.add(whole, told.at, end);
    }
}

/// From when on the hold was over before it ended: the end of its validity, or the begin of the next hold.
fn overrun(span: &mut Span, told: &Told) {
    let end = told.overrun.filter(|late| *late > 0).map(|late| told.at.saturating_sub(late));
    let next = told.next_fence.map(|fence| began(fence, told.at)).filter(|began| (span.from..told.at).contains(began));
    let known = [span.over_from, end, next].into_iter().flatten().min();
    let is_overlapped = told.kind == Kind::Overlapped;
    span.is_overlapped |= is_overlapped;
    span.over_from = known.or_else(|| is_overlapped.then_some(told.at)).map(|over| over.max(span.from));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: Kind, at: u64, lane: &str, fence: u64) -> Told {
        Told {
            at,
            kind,
            lock: Some("roll".to_owned()),
            lane: lane.to_owned(),
            who: None,
            has_owner: true,
            fence: (fence > 0).then_some(fence),
            next_fence: None,
            took: None,
            overrun: None,
            text: String::new(),
        }
    }

    /// Each span: lane, from, to, end, over, overlapped.
    fn drawn(lines: &[Told]) -> Vec<(String, u64, u64, String, u64, bool)> {
        let mut spans = Spans::default();
        lines.iter().for_each(|told| tell(&mut spans, told));
        let read = |span: &serde_json::Value| {
            let (text, number) =
                (|name: &str| span[name].as_str().unwrap().to_owned(), |name: &str| span[name].as_u64().unwrap_or(0));
            (text("lane"), number("from"), number("to"), text("end"), number("over"), span["overlapped"].as_bool().unwrap())
        };
        spans.all().iter().map(read).collect()
    }

    fn row(lane: &str, from: u64, to: u64, end: &str, over: u64, overlapped: bool) -> (String, u64, u64, String, u64, bool) {
        (lane.to_owned(), from, to, end.to_owned(), over, overlapped)
    }

    #[test]
    fn one_waits_while_the_other_holds() {
        let lines = [
            told(Kind::Acquired, 1_000, "Diego", 5),
            Told { took: Some(100), ..told(Kind::Busy, 1_200, "Gorn", 0) },
            told(Kind::Busy, 1_300, "Gorn", 0),
            told(Kind::Released, 2_000, "Diego", 5),
            Told { took: Some(910), ..told(Kind::Acquired, 2_010, "Gorn", 6) },
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
            Told { took: Some(600), ..told(Kind::TimedOut, 1_000, "Gorn", 0) },
            Told { took: Some(700), ..told(Kind::Released, 2_000, "Diego", 5) },
            Told { took: Some(1), ..told(Kind::NotAcquired, 3_000, "Gorn", 0) },
        ];
        let expected = [row("Gorn", 400, 1_000, "timed_out", 0, false), row("Diego", 1_300, 2_000, "released", 0, false)];
        assert_eq!(drawn(&lines), expected);
    }

    #[test]
    fn a_hold_is_over_when_a_later_one_began_until_its_end_says_otherwise() {
        let taken = [told(Kind::Acquired, 1_000, "Diego", 5), told(Kind::Acquired, 2_000, "Gorn", 6)];
        assert_eq!(drawn(&taken)[0], row("Diego", 1_000, 0, "", 2_000, false));
        // Lines of two processes may come in another order than what they tell.
        let late = [taken.as_slice(), &[told(Kind::Released, 1_999, "Diego", 5)]].concat();
        assert_eq!(drawn(&late)[0], row("Diego", 1_000, 1_999, "released", 0, false));
        let renewed = [taken.as_slice(), &[told(Kind::Renewed, 2_100, "Diego", 5)]].concat();
        assert_eq!(drawn(&renewed)[0], row("Diego", 1_000, 0, "", 0, false));
    }

    #[test]
    fn a_race_begins_where_its_rival_did_and_is_one_span_with_the_loss_before_it() {
        let lines = [
            told(Kind::Acquired, 1_000, "Diego", 5),
            Told { overrun: Some(300), ..told(Kind::Lost, 3_000, "Diego", 5) },
            Told { overrun: Some(500), next_fence: Some(2_500_000), ..told(Kind::Overlapped, 3_200, "Diego", 5) },
        ];
        assert_eq!(drawn(&lines), [row("Diego", 1_000, 3_200, "overlapped", 2_500, true)]);
        let released = [&lines[..2], &[told(Kind::Released, 3_200, "Diego", 5)]].concat();
        assert_eq!(drawn(&released), [row("Diego", 1_000, 3_000, "lost", 2_700, false)]);
        let alone = Told { took: Some(2_000), next_fence: Some(1), ..told(Kind::Overlapped, 3_000, "Diego", 5) };
        assert_eq!(drawn(&[alone]), [row("Diego", 1_000, 3_000, "overlapped", 3_000, true)]);
    }

    #[test]
    fn what_nobody_tells_of_ends_in_the_picture() {
        let mut spans = Spans::default();
        tell(&mut spans, &told(Kind::Acquired, 1_000, "Diego", 5));
        tell(&mut spans, &told(Kind::Busy, 1_000, "Gorn", 0));
        sweep(&mut spans, 1_000 + UNHEARD_WAIT);
        assert_eq!(spans.open_keys(|_| true).len(), 2);
        tell(&mut spans, &told(Kind::Acquired, 2_000, "Milten", 6));
        sweep(&mut spans, 2_001 + UNHEARD_HOLD);
        assert_eq!(spans.open_keys(Span::is_hold), [holding("roll", Some(6))]);
        sweep(&mut spans, 1_001 + UNHEARD_WAIT);
        assert_eq!(spans.open_keys(|_| true), [holding("roll", Some(6))]);
    }

    #[test]
    fn a_hold_is_as_old_as_its_fence_says_if_that_is_a_time() {
        let now = 1_795_222_900_000;
        for (fence, from) in [((now - 5) * 1_000, now - 5), ((now + 5) * 1_000, now), (7, now)] {
            let mut spans = Spans::default();
            tell(&mut spans, &told(Kind::Renewed, now, "Diego", fence));
            assert_eq!(spans.all()[0]["from"], from);
        }
    }
}
