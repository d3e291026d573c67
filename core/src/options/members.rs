//! Members and events: what there is here instead of a method, an attribute or an event that there is not.

use super::unknown::nearest;
use crate::event::EventKind;
use crate::wording::{Part, Text, plain};

/// The words of other libraries, which docs/migrating.md has, too, and our own before 0.1.0: without `_` and case, with the answer.
const WORDS: &[(&[&str], &str)] = &[
    (&["locked", "isfreed"], "here it is {inspect}() of a lock, which gives nothing if nobody holds it"),
    (&["owned", "isacquired"], "here it is {is_valid}() of the hold, which asks no server"),
    (&["token", "getownerid"], "here it is {owner} of the hold"),
    (&["reacquire"], "here it is {extend}() of the hold"),
    (&["extendby"], "here it is {extend}() of the hold, with {by}"),
    (&["unlock"], "here it is {release}() of the hold"),
    (&["fromurl"], "a client is made of the URL itself: {client_of_url}"),
    (&["ping"], "here it is {check_servers}(), which says of each server whether it answers, and what it guarantees"),
    (&["quit"], "here it is {close}()"),
    (&["using"], "here it is {around}"),
    (&["elect"], "here it is {election}()"),
    (&["downgrade"], "here it is {downgrade}() of the hold"),
    (
        &["writelock", "writer", "rwlock", "readwritelock"],
        "readers have {read_lock}(), and the writer is {lock}() of the same name",
    ),
    (&["readerlock", "sharedlock"], "here it is {read_lock}(); the writer is {lock}() of the same name"),
    (&["once"], "here it is {cron_job}()"),
    (&["report"], "here it is {check_servers}()"),
    (&["skip"], "here it is {skip_if_busy}"),
    (&["done"], "here it is {complete}()"),
    (&["rival"], "here it is {holder}, of who holds the lock, and {next_owner}, of who had it next"),
    (&["rivalfence"], "here it is {holder_fence} or {next_fence}"),
    (&["firetime"], "here it is {scheduled_time}"),
    (&["oldera", "newera"], "here they are {old_replication_id} and {new_replication_id}"),
    (&["noexpiry"], "here it is {remaining}, which is infinite if there is no expiry"),
    (&["family"], "here it is {category}"),
    (&["giveback"], "here it is {release}(), which says whether the attempt counts"),
];

/// What several locks that are acquired together lack, and what their hold lacks: without `_` and case, with the answer.
const OF_SEVERAL: &[(&[&str], &str)] = &[
    (&["name"], "several locks have {names}"),
    (&["fence"], "a hold of several locks has {fences}: one for each name"),
    (&["handover"], "several locks at once can't be handed over: give them back, and the other process takes them"),
    (&["downgrade"], "only the hold of one lock can become a reader's"),
    (
        &["inspect", "inspectasync", "forcerelease", "forcereleaseasync"],
        "each lock of {names} has it: {inspect}() and {force_release}() are methods of {lock}(name)",
    ),
];

/// The names that classes had before 0.1.0, and what they are called now.
const CLASSES: &[(&str, &str)] = &[
    ("AsyncHeld", "AsyncHold"),
    ("Event", "LockEvent"),
    ("Held", "Hold"),
    ("Ran", "TryOutcome"),
    ("ServerError", "ServerFailure"),
];

/// The names that events had before 0.1.0, and what they are called now.
const EVENTS: &[(&str, EventKind)] = &[
    ("attempt", EventKind::Round),
    ("failed", EventKind::AcquireFailed),
    ("race", EventKind::Overlapped),
    ("woken", EventKind::Acquired),
];

/// The answer for a member `name` that there is not, if it is one of these words.
///
/// ```
/// use locktender::host::{Language, instead_of_member};
///
/// let said = instead_of_member("locked").expect("redis-py has it");
/// assert!(said.in_words_of(Language::Python).contains("inspect()"));
/// assert!(instead_of_member("lokced").is_none());
/// ```
#[must_use]
pub fn instead_of_member(name: &str) -> Option<Text> {
    if let Some((_, ours)) = CLASSES.iter().find(|(old, _)| *old == name) {
        return Some(Text::new("here it is {}", [Part::Words((*ours).to_owned())]));
    }
    let asked = plain(name);
    let (_, advice) = WORDS.iter().find(|(words, _)| words.contains(&asked.as_str()))?;
    Some(Text::new(advice, []))
}

/// The same for several locks that are acquired together, and for their hold.
#[must_use]
pub fn instead_of_member_of_several(name: &str) -> Option<Text> {
    let asked = plain(name);
    let own = OF_SEVERAL.iter().find(|(words, _)| words.contains(&asked.as_str()));
    own.map(|(_, advice)| Text::new(advice, [])).or_else(|| instead_of_member(name))
}

/// The answer for the name of an event that there is not, or nothing if there is such an event. `event` is the name of all of them.
///
/// ```
/// use locktender::host::{Language, instead_of_event};
///
/// let said = instead_of_event("aquired").expect("it is a typing error");
/// assert_eq!(said.in_words_of(Language::Node), "there is no event of this name; did you mean acquired?");
/// assert!(instead_of_event("acquired").is_none());
/// ```
#[must_use]
pub fn instead_of_event(name: &str) -> Option<Text> {
    let names: Vec<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).chain(["event"]).collect();
    if names.contains(&name) {
        return None;
    }
    let renamed = EVENTS.iter().find(|(old, _)| *old == name).map(|(_, kind)| kind.as_str());
    Some(match renamed.or_else(|| nearest(&plain(name), &names)) {
        Some(ours) => Text::new("there is no event of this name; did you mean {}?", [Part::Words(ours.into())]),
        None => Text::new("there is no event of this name; there are {}", [Part::Words(names.join(", "))]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording::Language;

    #[test]
    fn a_word_of_another_library_is_answered_in_the_words_of_the_language() {
        for (name, python, node) in [
            ("locked", "inspect() of a lock", "inspect() of a lock"),
            ("is_acquired", "is_valid()", "isValid()"),
            ("from_url", "Client(url)", "new Client(url)"),
            ("using", "with client.lock(name):", "client.withLock(name, options, body)"),
            ("quit", "close()", "close()"),
        ] {
            for (language, ours) in [(Language::Python, python), (Language::Node, node)] {
                let advice = instead_of_member(name).expect(name).in_words_of(language);
                assert!(advice.contains(ours) && !advice.contains('{'), "{name}: {advice}");
            }
        }
        assert_eq!(instead_of_member("acquired"), None);
    }
}
