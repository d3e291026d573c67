//! The subscriber of `tracing`, of which there is one in a process.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use locktender::EventKind;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

use crate::place::Place;
use crate::scene::Scene;

static SCENES: LazyLock<Mutex<HashMap<String, Weak<Scene>>>> = LazyLock::new(|| {
    tracing::subscriber::set_global_default(Listener).unwrap();
    Mutex::default()
});

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Calls the scene's code where that is the place.
pub fn subscribe(scene: &Arc<Scene>) {
    SCENES.lock().unwrap().insert(scene.name.clone(), Arc::downgrade(scene));
}

/// How often this was in what was said.
pub fn count_of(text: &str) -> usize {
    MESSAGES.lock().unwrap().iter().filter(|message| message.contains(text)).count()
}

struct Listener;

#[derive(Default)]
struct Fields(HashMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "locktender"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields(fields) = fields;
        MESSAGES.lock().unwrap().extend(fields.get("message").cloned());
        let scene = fields.get("lock_name").and_then(|lock| SCENES.lock().unwrap().get(lock)?.upgrade());
        let kind = fields.get("kind").map(String::as_str);
        if let Some(scene) = scene
            && kind
                == match scene.place {
                    Place::Subscriber => Some(EventKind::Acquired.as_str()),
                    Place::SubscriberOnBeats => Some(EventKind::Renewed.as_str()),
                    _ => return,
                }
        {
            scene.plays();
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
