//! Server snapshot: the changes of the spans by a look at the servers.

use std::collections::{HashMap, HashSet};

use locktender::host::cli::is_claim;
use locktender::{Grant, LockInfo};

use super::client_events::began;
use super::held::began_by_holder;
use super::line::{process, row, since_1970, who};
use super::spans::{Key, Place, Source, Span, Spans};
use crate::shown;

/// How far back the page begins, in milliseconds: as far as its picture reaches.
const PAST: u64 = 3_600_000;

/// Adds the holds that had ended before the first look, the latest first, as their holders noted them by the server's clock.
pub(super) fn past<'a>(spans: &mut Spans, grants: impl DoubleEndedIterator<Item = &'a Grant>, now: u64) {
    for grant in grants.rev() {
        let Some(ended) = grant.ended.map(since_1970).filter(|ended| *ended > now.saturating_sub(PAST)) else { continue };
        let key = Key { source: Source::Server, lock: grant.name.clone(), place: Place::Holder };
        // It has ended since that look.
        if spans.get(&key).is_some_and(|span| span.owner == grant.owner) {
            continue;
        }
        let who = shown::who(grant.fields.as_ref(), &grant.owner);
        let row = grant.fields.as_ref().map_or_else(|| who.clone(), row);
        let to = ended.min(now);
        let span = Span { fence: grant.fence, ..Span::new(key, &row, &who, began(grant.fence, to)) };
        spans.add(span, to, grant.state.as_str());
    }
}

/// Changes the spans as the list of `now` says; the list before it is of `before`. Nobody knows when a hold ended that is missing after a
/// longer `gap`, as in an outage: the picture ends it where it was last seen.
pub(super) fn see(spans: &mut Spans, locks: &[LockInfo], before: Option<u64>, now: u64, gap: u64) {
    let end = before.filter(|before| before + gap < now).unwrap_or(now);
    let mut continues = HashSet::new();
    let mut fences = HashMap::new();
    for lock in locks {
        let name = &lock.name;
        if !is_claim(&lock.owner) {
            continues.insert(holder(spans, lock, before, now, end));
            fences.insert(name.clone(), lock.fence.unwrap_or_default());
        }
        for waiter in &lock.queue {
            let process = process(waiter);
            let who = who(&process);
            let key = Key { source: Source::Server, lock: name.clone(), place: Place::Waiter(who.clone()) };
            if spans.get(&key).is_none() {
                spans.begin(Span::new(key.clone(), &row(&process), &who, now));
            }
            continues.insert(key);
        }
    }
    for key in spans.open_keys(|span| span.key.source == Source::Server) {
        if !continues.contains(&key) {
            spans.end(&key, end, "");
        }
    }
    compare(spans, &fences, now);
}

fn holder(spans: &mut Spans, lock: &LockInfo, before: Option<u64>, now: u64, end: u64) -> Key {
    let key = Key { source: Source::Server, lock: lock.name.clone(), place: Place::Holder };
    let fence = lock.fence.unwrap_or_default();
    if spans.get(&key).is_none_or(|span| span.owner != lock.owner) {
        // Between two looks, by the server's clock, which may differ from ours; by the holder's, while the lock's key doesn't show the fence.
        let at = lock.fence.map(|fence| began(fence, now)).or_else(|| began_by_holder(lock));
        let from = at.unwrap_or(now).clamp(before.unwrap_or(0).min(now), now);
        let who = shown::holder(lock);
        let row = lock.fields.as_ref().map_or_else(|| who.clone(), row);
        spans.end(&key, end.min(from), "");
        spans.begin(Span { owner: lock.owner.clone(), fence, ..Span::new(key.clone(), &row, &who, from) });
    } else if spans.get(&key).is_some_and(|span| span.fence < fence) {
        spans.change(&key, |span| span.fence = fence);
    }
    key
}

/// A hold of a client that the servers have shown, and show no longer, is over.
fn compare(spans: &mut Spans, fences: &HashMap<String, u64>, now: u64) {
    for key in spans.open_keys(|span| span.key.source == Source::Client && span.is_hold()) {
        let shown = fences.get(&key.lock);
        spans.change(&key, |span| {
            if shown == Some(&span.fence) {
                (span.is_confirmed, span.over_from) = (true, None);
            } else if span.is_confirmed {
                span.over_from = span.over_from.or(Some(now));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use locktender::{HoldState, Remaining};

    use super::*;
    use crate::samples::{grant, lock_info};

    const NOW: u64 = 1_795_222_900_000;

    fn lock(app: &str, fence: u64, queue: &[&str]) -> LockInfo {
        lock_info("roll", &format!("app={app} host=h pid=1 id={fence}"), fence, Remaining::Forever, queue)
    }

    fn drawn(spans: &Spans) -> Vec<String> {
        let line = |span: &serde_json::Value| {
            let time = |name: &str| span[name].as_u64().map_or("…".to_owned(), |at| (at as i64 - NOW as i64).to_string());
            format!("{} {} {}-{}", span["lane"].as_str().unwrap(), span["what"].as_str().unwrap(), time("from"), time("to"))
        };
        spans.all().iter().map(line).collect()
    }

    #[test]
    fn holders_and_waiters_come_and_go() {
        let mut spans = Spans::default();
        see(&mut spans, &[lock("Diego", (NOW + 40) * 1_000, &["7 app=Gorn host=h pid=2"])], None, NOW + 100, 1_000);
        see(&mut spans, &[lock("Diego", (NOW + 40) * 1_000, &["7 app=Gorn host=h pid=2"])], Some(NOW + 100), NOW + 200, 1_000);
        see(&mut spans, &[lock("Gorn", (NOW + 250) * 1_000, &[])], Some(NOW + 200), NOW + 300, 1_000);
        see(&mut spans, &[], Some(NOW + 300), NOW + 400, 1_000);
        assert_eq!(drawn(&spans), ["Diego holds 40-250", "Gorn waits 100-300", "Gorn holds 250-400"]);
    }

    #[test]
    fn a_lock_that_is_kept_for_a_waiter_has_no_holder() {
        let mut spans = Spans::default();
        see(&mut spans, &[lock("Diego", 7, &["7 app=Gorn host=h pid=2"])], None, NOW, 1_000);
        let claim = lock_info("roll", "claim b:7 app=Gorn host=h pid=2", 7, Remaining::Forever, &["7 app=Gorn host=h pid=2"]);
        see(&mut spans, &[claim], Some(NOW), NOW + 100, 1_000);
        assert_eq!(drawn(&spans), ["Diego holds 0-100", "Gorn waits 0-…"]);
    }

    #[test]
    fn a_hold_that_is_missing_after_an_outage_ends_where_it_was_last_seen() {
        let mut spans = Spans::default();
        see(&mut spans, &[lock("Diego", 7, &["7 app=Gorn host=h pid=2"])], None, NOW, 1_000);
        see(&mut spans, &[lock("Gorn", (NOW + 4_000) * 1_000, &[])], Some(NOW), NOW + 5_000, 1_000);
        assert_eq!(drawn(&spans), ["Diego holds 0-0", "Gorn waits 0-0", "Gorn holds 4000-…"]);
    }

    #[test]
    fn a_hold_begins_between_two_looks_also_if_the_clock_of_its_fence_differs() {
        for (fence_at, from) in [(NOW - 9_000, 100), (NOW + 150, 150), (NOW + 9_000, 200)] {
            let mut spans = Spans::default();
            see(&mut spans, &[lock("Diego", fence_at * 1_000, &[])], Some(NOW + 100), NOW + 200, 1_000);
            assert_eq!(drawn(&spans), [format!("Diego holds {from}-…")]);
        }
    }

    #[test]
    fn holds_that_had_ended_within_an_hour_before_the_first_look_are_shown() {
        let mut spans = Spans::default();
        let continues = lock("Diego", (NOW - 900) * 1_000, &[]);
        see(&mut spans, std::slice::from_ref(&continues), None, NOW, 1_000);
        let grant =
            |app: &str, from: u64, to, state| grant("roll", &lock(app, from * 1_000, &[]).owner, from * 1_000, (from, to), state);
        let grants = [
            // The look has shown it.
            grant("Diego", NOW - 900, Some(NOW), HoldState::Released),
            // Clocks that were ahead: of this machine, and of the end.
            grant("Milten", NOW - 950, Some(NOW + PAST), HoldState::Lost),
            grant("Lester", NOW + 500, Some(NOW - 960), HoldState::Released),
            grant("Gorn", NOW - 3_000, Some(NOW - 1_000), HoldState::Released),
            grant("Gorn", NOW - 4_000, None, HoldState::Holds),
            grant("Gorn", NOW - 2 * PAST, Some(NOW - PAST), HoldState::Released),
        ];
        past(&mut spans, grants.iter(), NOW + 10);
        let expected = ["Diego holds -900-…", "Gorn holds -3000--1000", "Lester holds -960--960", "Milten holds -950-10"];
        assert_eq!(drawn(&spans), expected);
        assert_eq!((&spans.all()[3]["end"], &spans.all()[1]["who"]), (&"lost".into(), &"Gorn@h:1".into()));
    }

    #[test]
    fn a_hold_of_an_event_is_over_when_the_servers_show_it_no_longer() {
        let mut spans = Spans::default();
        let key = Key { source: Source::Client, lock: "roll".into(), place: Place::Hold(5) };
        spans.begin(Span { fence: 5, ..Span::new(key.clone(), "Diego", "", NOW) });
        let over = |spans: &Spans| spans.get(&key).unwrap().over_from;
        // A lock of another server, or of other keys, is no matter of this list.
        see(&mut spans, &[], None, NOW + 1, 1_000);
        assert_eq!(over(&spans), None);
        for (shown, expected) in [(5, None), (6, Some(NOW + 3)), (5, None)] {
            see(&mut spans, &[lock("x", shown, &[])], None, NOW + 3, 1_000);
            assert_eq!(over(&spans), expected);
        }
        see(&mut spans, &[], None, NOW + 4, 1_000);
        assert_eq!(over(&spans), Some(NOW + 4));
    }
}
