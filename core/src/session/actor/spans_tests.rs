use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tracing::Dispatch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::Client;
use crate::sync::Mutex;

/// What was seen of a span, in the order in which spans began.
#[derive(Clone, Debug, Default)]
struct Seen {
    id: u64,
    name: String,
    parent: Option<String>,
    fields: HashMap<&'static str, String>,
    events: Vec<String>,
    closed: bool,
}

#[derive(Clone, Default)]
struct Listener {
    spans: Arc<Mutex<Vec<Seen>>>,
    panics: bool,
}

struct Texts<'a>(&'a mut HashMap<&'static str, String>);

impl Visit for Texts<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Runs `work` while `listener` subscribes to what this thread does. While a process has a single subscriber, `tracing` asks only the
/// thread that comes to a place in the code first whether anybody wants its spans: a thread of another test has no subscriber.
fn recorded(listener: Listener, work: impl FnOnce()) {
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Registry::default()));
    let _second = SECOND.clone();
    with_default(Registry::default().with(listener), work);
}

impl Listener {
    fn change(&self, id: &Id, change: impl FnOnce(&mut Seen)) {
        if let Some(seen) = self.spans.lock().iter_mut().rev().find(|seen| seen.id == id.into_u64()) {
            change(seen);
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        assert!(!self.panics, "a test");
        let parent = context.span(id).and_then(|span| Some(span.parent()?.name().to_owned()));
        let mut seen = Seen { id: id.into_u64(), name: attributes.metadata().name().to_owned(), parent, ..Seen::default() };
        attributes.record(&mut Texts(&mut seen.fields));
        self.spans.lock().push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |seen| values.record(&mut Texts(&mut seen.fields)));
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut fields = HashMap::new();
        event.record(&mut Texts(&mut fields));
        if let Some(span) = context.event_span(event) {
            self.change(&span.id(), |seen| seen.events.extend(fields.remove("kind")));
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |seen| seen.closed = true);
    }
}

#[test]
fn an_acquire_and_its_hold_are_spans_within_the_callers() {
    let listener = Listener::default();
    recorded(listener.clone(), || {
        let client = Client::open("memory://spans").unwrap();
        let request = tracing::info_span!("request").entered();
        let held = client.lock("orders:42").acquire_blocking().unwrap();
        assert!(client.lock("orders:42").try_acquire_blocking().unwrap().is_none());
        held.release_blocking().unwrap();
        drop(request);
    });
    let spans = listener.spans.lock().clone();
    let shown = |seen: &Seen| (seen.name.clone(), seen.parent.clone().unwrap_or_default(), seen.fields.get("end").cloned());
    let expected = [
        ("request", "", None),
        ("acquire", "request", Some("acquired")),
        ("hold", "request", Some("released")),
        ("acquire", "request", Some("not_acquired")),
    ];
    let expected = expected.map(|(name, parent, end)| (name.to_owned(), parent.to_owned(), end.map(str::to_owned)));
    assert_eq!(spans.iter().map(shown).collect::<Vec<_>>(), expected);
    assert_eq!((spans[1].events.join(" "), spans[2].events.join(" ")), ("round acquired".to_owned(), "released".to_owned()));
    assert_eq!((spans[1].fields["category"].as_str(), &spans[1].fields["fence"]), ("orders", &spans[2].fields["fence"]));
    assert!(spans.iter().all(|seen| seen.closed), "a span stays open: {spans:?}");
}

#[test]
fn the_holds_of_several_locks_are_spans_within_the_callers() {
    let listener = Listener::default();
    recorded(listener.clone(), || {
        let client = Client::open("memory://spans-several").unwrap();
        let request = tracing::info_span!("request");
        let held = request.in_scope(|| client.multi_lock(["orders:2", "orders:1"]).acquire_blocking()).unwrap();
        let fences: Vec<_> = held.fences().into_iter().map(|(_, fence)| Some(fence.to_string())).collect();
        let spans = listener.spans.lock().clone();
        assert_eq!(spans.iter().map(|seen| seen.closed).collect::<Vec<_>>(), [false, true, false, false]);
        assert_eq!([&spans[3], &spans[2]].map(|seen| seen.fields.get("fence").cloned()).as_slice(), fences);
        held.release().blocking().unwrap();
    });
    let spans = listener.spans.lock().clone();
    let shown = |seen: &Seen| {
        let [lock, end] = ["lock_name", "end"].map(|field| seen.fields.get(field).cloned().unwrap_or_default());
        [seen.name.clone(), seen.parent.clone().unwrap_or_default(), lock, end, seen.events.join(" ")]
    };
    let expected = [
        ["request", "", "", "", ""],
        ["acquire", "request", "orders:2, orders:1", "acquired", "round acquired acquired"],
        ["hold", "request", "orders:1", "released", "released"],
        ["hold", "request", "orders:2", "released", "released"],
    ];
    assert_eq!(spans.iter().map(shown).collect::<Vec<_>>(), expected.map(|span| span.map(str::to_owned)));
    assert!(spans.iter().all(|seen| seen.closed), "a span stays open: {spans:?}");
}

#[test]
fn a_refused_acquire_is_a_span_that_names_its_lock() {
    let listener = Listener::default();
    recorded(listener.clone(), || {
        let client = Client::builder().url("memory://spans-refused").prefix("billing:").build().unwrap();
        let lock = client.lock("orders:42").caller(7);
        let held = lock.acquire_blocking().unwrap();
        held.enter(7, None, 0);
        lock.acquire_blocking().unwrap_err();
        client.lock("orders:42").ttl(Duration::ZERO).category("mails").acquire_blocking().unwrap_err();
        client.lock("").acquire_blocking().unwrap_err();
        client.close_blocking().unwrap();
        client.election("orders:42").campaign_blocking().unwrap_err();
        client.job("orders:42").begin_blocking().unwrap_err();
    });
    let spans = listener.spans.lock().clone();
    let shown = |seen: &Seen| {
        ["lock_name", "key", "lock_kind", "category", "end"].map(|field| seen.fields.get(field).cloned().unwrap_or_default())
    };
    let refused: Vec<_> = spans.iter().filter(|seen| seen.name == "acquire").skip(1).map(shown).collect();
    let expected = [
        ["orders:42", "billing:orders:42", "lock", "orders", "acquire_failed"],
        ["orders:42", "billing:orders:42", "lock", "mails", "acquire_failed"],
        ["", "", "lock", "", "acquire_failed"],
        ["orders:42", "billing:orders:42", "election", "orders", "acquire_failed"],
        ["orders:42", "billing:orders:42", "job", "orders", "acquire_failed"],
    ];
    assert_eq!(refused, expected.map(|fields| fields.map(str::to_owned)));
    assert!(spans.iter().all(|seen| seen.closed), "a span stays open: {spans:?}");
}

#[test]
fn a_subscriber_that_panics_costs_no_hold() {
    let listener = Listener { panics: true, ..Listener::default() };
    recorded(listener, || {
        let client = Client::open("memory://spans-panic").unwrap();
        client.lock("orders:42").acquire_blocking().unwrap().release_blocking().unwrap();
    });
}
