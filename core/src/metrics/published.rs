//! Published: each number goes to the facade of the crate `metrics`, too, if the feature of this name is on.

#[cfg(feature = "metrics")]
pub(crate) use self::facade::Published;
#[cfg(not(feature = "metrics"))]
pub(crate) use self::nowhere::Published;

#[cfg(feature = "metrics")]
mod facade {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use ::metrics::{Key, Label, Level, Metadata, Recorder, with_recorder};

    use crate::event::{callback, trace};
    use crate::metrics::table::Row;

    /// Whether a panic of the recorder was reported. It is reported once, also if every number panics.
    static REPORTED: AtomicBool = AtomicBool::new(false);

    const METADATA: Metadata<'static> = Metadata::new("locktender", Level::INFO, Some("locktender"));

    /// One number, as a recorder knows it.
    #[derive(Debug)]
    pub(crate) struct Published(Key);

    impl Published {
        pub(crate) fn new(row: &Row, labels: &[(&'static str, &str)]) -> Self {
            let labels: Vec<_> = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
            Self(Key::from_parts(row.name, labels))
        }

        /// A counter has grown.
        pub(crate) fn grew(&self, by: u64) {
            self.record(|key, recorder| recorder.register_counter(key, &METADATA).increment(by));
        }

        /// A gauge has changed.
        pub(crate) fn changed(&self, by: f64) {
            self.record(|key, recorder| recorder.register_gauge(key, &METADATA).increment(by));
        }

        /// A gauge has this value.
        pub(crate) fn is(&self, value: f64) {
            self.record(|key, recorder| recorder.register_gauge(key, &METADATA).set(value));
        }

        /// A histogram got a time.
        pub(crate) fn took(&self, time: Duration) {
            self.record(|key, recorder| recorder.register_histogram(key, &METADATA).record(time.as_secs_f64()));
        }

        /// The recorder is the application's code. It may have been installed since the last time.
        fn record(&self, record: impl FnOnce(&Key, &dyn Recorder)) {
            let recorded = callback::call(|| with_recorder(|recorder| record(&self.0, recorder)));
            if let Err(panic) = recorded
                && !REPORTED.swap(true, Ordering::Relaxed)
            {
                let _ = callback::call(|| trace(&panic.warning("the recorder of `metrics`")));
            }
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod nowhere {
    use std::time::Duration;

    use crate::metrics::table::Row;

    /// One number, which nobody else wants.
    #[derive(Debug)]
    pub(crate) struct Published;

    impl Published {
        pub(crate) const fn new(_: &Row, _: &[(&'static str, &str)]) -> Self {
            Self
        }

        pub(crate) const fn grew(&self, _: u64) {}

        pub(crate) const fn changed(&self, _: f64) {}

        pub(crate) const fn is(&self, _: f64) {}

        pub(crate) const fn took(&self, _: Duration) {}
    }
}

#[cfg(all(test, feature = "metrics"))]
#[path = "published_tests.rs"]
mod tests;
