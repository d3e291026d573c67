//! Gone: what clients that are gone have counted. A total that fell would look like a restart of the process.

use super::{Metric, MetricKind, MetricValue, Metrics, Sample};

/// How many samples of one metric are kept by their own labels. A program that makes a client for each task may make new labels with each.
const MOST: usize = 500;

/// The labels that may have ever new values.
const OPEN: [&str; 2] = ["category", "server"];

#[doc(hidden)]
impl Metrics {
    /// Adds the totals of a client that is gone: its counters and its times, but no gauge, which speaks of now.
    pub fn keep(&mut self, gone: Self) {
        let totals = gone.0.into_iter().filter(|metric| metric.kind != MetricKind::Gauge);
        for Metric { name, samples, .. } in totals {
            if let Some(metric) = self.0.iter_mut().find(|metric| metric.name == name) {
                samples.into_iter().filter(counts).for_each(|sample| metric.keep(sample));
            }
        }
    }
}

impl Metric {
    fn keep(&mut self, mut sample: Sample) {
        if self.samples.len() >= MOST && !self.samples.iter().any(|known| known.labels == sample.labels) {
            let open = sample.labels.iter_mut().filter(|(name, _)| OPEN.contains(name));
            open.for_each(|(_, value)| "other".clone_into(value));
        }
        self.merge(sample);
    }
}

/// Whether there is anything to keep.
fn counts(sample: &Sample) -> bool {
    match &sample.value {
        MetricValue::Number(number) => *number > 0.0,
        MetricValue::Histogram(histogram) => histogram.count() > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    fn used(category: &str) -> Metrics {
        let client = Client::open("memory://metrics-gone").unwrap();
        client.lock(category).acquire_blocking().unwrap().release_blocking().unwrap();
        client.metrics()
    }

    #[test]
    fn totals_of_clients_that_are_gone_stay_and_gauges_go() {
        let mut kept = Metrics::default();
        kept.keep(used("orders"));
        kept.keep(used("orders"));
        let orders = [("category", "orders"), ("end", "acquired")];
        assert_eq!(kept.value("locktender_acquires_total", &orders), 2.0);
        assert_eq!(kept.value("locktender_hold_seconds", &orders[..1]), 2.0);
        let gauges = kept.iter().filter(|metric| metric.kind == MetricKind::Gauge);
        assert_eq!(gauges.map(|gauge| gauge.samples.len()).sum::<usize>(), 0);
        assert!(kept.iter().flat_map(|metric| &metric.samples).all(counts), "nothing is kept that counts nothing");
    }

    #[test]
    fn ever_new_families_are_kept_as_others() {
        let mut kept = Metrics::default();
        let more = 10;
        for number in 0..MOST + more {
            kept.keep(used(&format!("report-{number}")));
        }
        let all = [("end", "acquired")];
        assert_eq!(kept.value("locktender_acquires_total", &all), (MOST + more) as f64);
        assert_eq!(kept.value("locktender_acquires_total", &[("category", "other"), ("end", "acquired")]), more as f64);
        assert!(kept.iter().all(|metric| metric.samples.len() <= MOST + 1));
    }
}
