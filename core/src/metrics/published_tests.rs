use std::collections::HashMap;
use std::sync::Arc;

use ::metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn};
use ::metrics::{Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder};

use crate::Client;
use crate::metrics::{MetricKind, MetricValue, Metrics};
use crate::sync::Mutex;

type Numbers = Arc<Mutex<HashMap<String, f64>>>;

/// Keeps each number by its name and labels; of a histogram, how many times there were.
#[derive(Default)]
struct Kept {
    numbers: Numbers,
    panics: bool,
}

struct Number(Numbers, String);

impl Number {
    fn change(&self, to: impl FnOnce(f64) -> f64) {
        let mut numbers = self.0.lock();
        let number = numbers.entry(self.1.clone()).or_default();
        *number = to(*number);
    }
}

impl CounterFn for Number {
    fn increment(&self, value: u64) {
        self.change(|number| number + value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|_| value as f64);
    }
}

impl GaugeFn for Number {
    fn increment(&self, value: f64) {
        self.change(|number| number + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|number| number - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Number {
    fn record(&self, _: f64) {
        self.change(|number| number + 1.0);
    }
}

impl Kept {
    fn number(&self, key: &Key) -> Arc<Number> {
        assert!(!self.panics, "this recorder panics");
        let labels: Vec<_> = key.labels().map(|label| (label.key(), label.value())).collect();
        Arc::new(Number(Arc::clone(&self.numbers), format!("{} {labels:?}", key.name())))
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.number(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.number(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.number(key))
    }
}

/// The client's own numbers that a recorder gets: not those which time alone changes, nor those that are 0.
fn expected(metrics: &Metrics) -> HashMap<String, f64> {
    let of_now = ["locktender_longest_hold_seconds", "locktender_longest_wait_seconds", "locktender_least_validity_seconds"];
    let lasting = metrics.iter().filter(|metric| !of_now.contains(&metric.name));
    let each = lasting.flat_map(|metric| metric.samples.iter().map(move |sample| (metric, sample)));
    each.filter_map(|(metric, sample)| {
        let number = match (metric.kind, sample.value) {
            (MetricKind::Histogram, MetricValue::Histogram(times)) => times.count() as f64,
            (_, MetricValue::Number(number)) => number,
            _ => return None,
        };
        let labels: Vec<_> = sample.labels.iter().map(|(name, value)| (*name, &**value)).collect();
        Some((format!("{} {labels:?}", metric.name), number)).filter(|_| number > 0.0)
    })
    .collect()
}

#[test]
fn a_recorder_gets_the_numbers_of_the_client() {
    let kept = Kept::default();
    let numbers = Arc::clone(&kept.numbers);
    with_local_recorder(&kept, || {
        let client = Client::builder().url("memory://published").app("bill\ning").build().unwrap();
        let held = client.lock("orders:42").acquire_blocking().unwrap();
        assert!(client.lock("orders:42").try_acquire_blocking().unwrap().is_none());
        let other = client.lock("orders:43").acquire_blocking().unwrap();
        other.release_blocking().unwrap();
        let seen = |numbers: &HashMap<String, f64>| -> HashMap<String, f64> {
            numbers.iter().filter(|(_, number)| **number > 0.0).map(|(key, number)| (key.clone(), *number)).collect()
        };
        assert_eq!(seen(&numbers.lock()), expected(&client.metrics()));
        held.release_blocking().unwrap();
        assert_eq!(seen(&numbers.lock()), expected(&client.metrics()));
    });
}

#[test]
fn a_recorder_that_panics_costs_no_lock() {
    let kept = Kept { panics: true, ..Kept::default() };
    with_local_recorder(&kept, || {
        let client = Client::open("memory://published-panic").unwrap();
        client.lock("orders:42").acquire_blocking().unwrap().release_blocking().unwrap();
        assert_eq!(client.metrics().value("locktender_holds_total", &[("end", "released")]), 1.0);
    });
}
