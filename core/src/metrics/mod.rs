//! Metrics: how often and how long locks were waited for, held and lost, in numbers that a client always counts.
//!
//! A [`Metrics`] is what [`Client::metrics`](crate::Client::metrics) read at one moment. It is a list of [`Metric`]s, each with its name,
//! its meaning and its samples, so that any monitoring system can take them over.

mod gone;
pub(crate) mod histogram;
pub(crate) mod meter;
mod openmetrics;
mod published;
pub(crate) mod reading;
mod table;

pub use self::histogram::Histogram;
pub use self::table::MetricKind;
use self::table::{TABLE, Together, together};

/// The value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetricValue {
    /// A counter or a gauge.
    Number(f64),
    /// A histogram, in seconds.
    Histogram(Histogram),
}

/// One value of a metric, and what it is about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// The labels with their values, in the order of the metric's table. Values have no control characters.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: MetricValue,
}

/// A metric: its name, its meaning and its values.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// The name. That of a counter ends with `_total`; that of a time with `_seconds`.
    pub name: &'static str,
    /// What its numbers are.
    pub kind: MetricKind,
    /// Its meaning, as one sentence.
    pub help: &'static str,
    /// One sample for each combination of labels; no two have the same labels.
    pub samples: Vec<Sample>,
}

/// The metrics of one client or of several, read at one moment.
///
/// ```
/// # let client = locktender::Client::open("memory://docs-metrics")?;
/// let hold = client.lock("orders:42").acquire_blocking()?;
/// let metrics = client.metrics();
/// assert_eq!(metrics.value("locktender_held", &[("category", "orders")]), 1.0);
/// assert!(metrics.openmetrics().contains("# TYPE locktender_held gauge"));
/// # Ok::<(), locktender::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics(Vec<Metric>);

impl Default for Metrics {
    /// All metrics, without a sample.
    fn default() -> Self {
        Self(TABLE.iter().map(|row| Metric { name: row.name, kind: row.kind, help: row.help, samples: Vec::new() }).collect())
    }
}

impl Metrics {
    /// All metrics, each with its samples.
    pub fn iter(&self) -> std::slice::Iter<'_, Metric> {
        self.0.iter()
    }

    /// The sum of the samples of the metric `name` that have all of these `labels`; of a histogram, the number of its times. 0 if there
    /// is no such sample.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.0.iter().filter(|metric| metric.name == name).flat_map(|metric| &metric.samples);
        let has = |sample: &Sample, label: &(&str, &str)| sample.labels.iter().any(|(name, value)| (*name, &**value) == *label);
        let fitting = samples.filter(|sample| labels.iter().all(|label| has(sample, label)));
        let number = |sample: &Sample| match &sample.value {
            MetricValue::Number(number) => *number,
            MetricValue::Histogram(histogram) => histogram.count() as f64,
        };
        fitting.map(number).fold(0.0, |sum, number| sum + number)
    }

    /// The metrics as a text in the [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/) format 1.0, which Prometheus
    /// and others read. Its media type is `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    #[must_use]
    pub fn openmetrics(&self) -> String {
        openmetrics::text(self)
    }

    /// The metrics of several clients as those of one. Samples with the same labels are added up; of the longest hold and wait, the
    /// longest one counts, and of the least validity the least.
    #[doc(hidden)]
    #[must_use]
    pub fn merged(all: impl IntoIterator<Item = Self>) -> Self {
        let mut merged = Self::default();
        for Metric { name, samples, .. } in all.into_iter().flat_map(|metrics| metrics.0) {
            if let Some(metric) = merged.0.iter_mut().find(|metric| metric.name == name) {
                samples.into_iter().for_each(|sample| metric.merge(sample));
            }
        }
        merged
    }
}

impl Metric {
    fn merge(&mut self, sample: Sample) {
        let Some(known) = self.samples.iter_mut().find(|known| known.labels == sample.labels) else {
            return self.samples.push(sample);
        };
        match (&mut known.value, sample.value) {
            (MetricValue::Number(known), MetricValue::Number(more)) => {
                *known = match together(self.name) {
                    Together::Sum => *known + more,
                    Together::Most => known.max(more),
                    Together::Least => known.min(more),
                }
            }
            (MetricValue::Histogram(known), MetricValue::Histogram(more)) => known.add(&more),
            _ => (),
        }
    }
}

impl IntoIterator for Metrics {
    type Item = Metric;
    type IntoIter = std::vec::IntoIter<Metric>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests;
