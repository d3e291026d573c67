//! Metrics: what clients have counted.

use std::collections::{BTreeMap, HashMap};

use locktender::metrics::{Histogram, MetricValue};
use napi_derive::napi;

/// See `Metrics` in lib/metrics.ts.
#[napi]
pub struct Metrics {
    pub(crate) core: locktender::metrics::Metrics,
}

#[napi]
impl Metrics {
    /// Whether there is a metric of this name.
    #[napi]
    pub fn has(&self, name: String) -> bool {
        self.core.iter().any(|metric| metric.name == name)
    }

    #[napi]
    pub fn value(&self, name: String, labels: HashMap<String, String>) -> f64 {
        let labels: Vec<_> = labels.iter().map(|(label, value)| (&**label, &**value)).collect();
        self.core.value(&name, &labels)
    }

    #[napi]
    pub fn openmetrics(&self) -> String {
        self.core.openmetrics()
    }

    #[napi]
    pub fn list(&self) -> Vec<Metric> {
        self.core.iter().map(Metric::from).collect()
    }
}

/// The bounds of each histogram's buckets, in seconds.
#[napi]
pub fn histogram_bounds() -> Vec<f64> {
    Histogram::bounds().to_vec()
}

/// A metric: its name, its meaning and its values.
#[napi(object, object_from_js = false)]
pub struct Metric {
    pub name: String,
    pub kind: String,
    pub help: String,
    pub samples: Vec<Sample>,
}

impl From<&locktender::metrics::Metric> for Metric {
    fn from(metric: &locktender::metrics::Metric) -> Self {
        let samples = metric.samples.iter().map(Sample::from).collect();
        Self { name: metric.name.to_owned(), kind: metric.kind.as_str().to_owned(), help: metric.help.to_owned(), samples }
    }
}

/// One value of a metric, and what it is about.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct Sample {
    pub labels: BTreeMap<String, String>,
    pub value: f64,
    pub buckets: Option<Vec<Vec<f64>>>,
}

impl From<&locktender::metrics::Sample> for Sample {
    fn from(sample: &locktender::metrics::Sample) -> Self {
        let labels = sample.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let (value, buckets) = match &sample.value {
            MetricValue::Number(number) => (*number, None),
            MetricValue::Histogram(times) => {
                let buckets = times.cumulative().map(|(bound, count)| vec![bound, count as f64]);
                (times.sum, Some(buckets.collect()))
            }
            _ => (0.0, None),
        };
        Self { labels, value, buckets }
    }
}
