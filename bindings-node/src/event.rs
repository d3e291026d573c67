//! Events on their way to JavaScript.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::host::{self, Field, Language};
use locktender::{Level, LockEvent, Sink};
use napi::Env;
use napi::bindgen_prelude::{Either, Null, Object};
use napi_derive::napi;

use crate::error::{measured_ms, ms};
use crate::item::Item;
use crate::queue::Queue;

/// What a field is called in JavaScript.
fn name_of(name: &str, field: Field<'_>) -> String {
    let name = Language::Node.spell(name);
    match field {
        Field::Time(_) | Field::Measured(_) => format!("{name}Ms"),
        Field::Text(_) | Field::Texts(_) | Field::Number(_) => name.into_owned(),
    }
}

/// The event as one line of InfluxDB's line protocol. What else the object has doesn't matter.
#[napi]
pub fn line_protocol(event: Object<'_>, tags: Vec<Vec<String>>) -> napi::Result<String> {
    let tags: Vec<_> = tags.iter().filter_map(|pair| Some((&**pair.first()?, &**pair.get(1)?))).collect();
    let value = |name: &str| event.get::<Option<Either<f64, String>>>(name).map(Option::flatten);
    let empty = host::empty_event();
    let in_line = empty.fields().into_iter().filter(|(_, kind)| !matches!(kind, Field::Texts(_)));
    let found = in_line.map(|(field, kind)| Ok((field, kind, value(&name_of(field, kind))?)));
    let found = found.collect::<napi::Result<Vec<_>>>()?;
    let fields = found.iter().map(|(field, kind, value)| {
        let value = match kind {
            Field::Text(_) => Field::Text(text(value.as_ref())),
            Field::Number(_) => Field::Number(number(value.as_ref()).map(|number| number as u64)),
            _ => Field::Time(time(value.as_ref())),
        };
        (*field, value)
    });
    let (fields, kind, at) = (fields.collect::<Vec<_>>(), value("kind")?, time(value("atMs")?.as_ref()));
    Ok(host::line_protocol(text(kind.as_ref()).unwrap_or_default(), &fields, &tags, UNIX_EPOCH + at.unwrap_or_default()))
}

fn text(value: Option<&Either<f64, String>>) -> Option<&str> {
    if let Some(Either::B(text)) = value { Some(text) } else { None }
}

fn number(value: Option<&Either<f64, String>>) -> Option<f64> {
    if let Some(Either::A(number)) = value { Some(*number) } else { None }
}

fn time(ms: Option<&Either<f64, String>>) -> Option<Duration> {
    number(ms).and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok())
}

/// An event that happened at `at`, as `LockEvent` in lib/events.ts describes it.
pub(crate) fn object<'env>(env: &'env Env, event: &LockEvent, at: SystemTime) -> napi::Result<Object<'env>> {
    let mut object = Object::new(env)?;
    object.set("kind", event.kind.as_str())?;
    for (name, field) in event.fields() {
        let name = name_of(name, field);
        match field {
            Field::Text(text) => object.set(name, or_null(text)),
            Field::Texts(texts) => {
                object.set(name, or_null(texts.map(|texts| texts.iter().map(|text| &**text).collect::<Vec<&str>>())))
            }
            Field::Number(number) => object.set(name, or_null(number.map(|number| number as f64))),
            Field::Time(span) => object.set(name, or_null(span.map(ms))),
            Field::Measured(span) => object.set(name, or_null(span.map(measured_ms))),
        }?;
    }
    object.set("atMs", at.duration_since(UNIX_EPOCH).map_or(0.0, measured_ms))?;
    Ok(object)
}

fn or_null<T>(value: Option<T>) -> Either<T, Null> {
    value.map_or(Either::B(Null), Either::A)
}

/// Puts a client's events into its environment's queue. Events of a normal hold are put there only if there are listeners.
pub(crate) struct Forward {
    pub(crate) queue: Weak<Queue>,
    pub(crate) client: u32,
    pub(crate) app: String,
    pub(crate) has_listener: Arc<AtomicBool>,
    /// How many of its events were dropped, because the program was too far behind.
    pub(crate) dropped: Arc<AtomicU64>,
}

impl Sink for Forward {
    fn event(&self, event: &LockEvent) {
        let Some(queue) = self.queue.upgrade() else { return };
        if event.trace() != 0 {
            let mut follower = queue.follower.lock();
            follower.event(self.client.into(), &self.app, event, SystemTime::now());
            let item = |record| Item::Followed(Box::new(record), Arc::clone(&self.dropped));
            follower.records.drain(..).map(item).for_each(|item| queue.push(item));
        }
        let wanted = event.kind.level() >= Level::Warning || self.has_listener.load(Ordering::Relaxed);
        if wanted && !event.is_refusal() {
            queue.push(Item::Event(self.client, Box::new(event.clone()), SystemTime::now(), Arc::clone(&self.dropped)));
        }
    }
}
