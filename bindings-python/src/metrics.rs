//! Metrics: what clients have counted, for programs and for monitoring.

use locktender::metrics::{Histogram, MetricValue};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arguments::{text, texts};
use crate::clients;
use crate::errors::raised;
use crate::values::value;

/// The metrics of all clients of this process, as those of one client: see :meth:`Client.metrics`. The totals of those that are gone stay.
///
///     from locktender import metrics
///
///     print(metrics().openmetrics())
#[pyfunction]
pub(crate) fn metrics() -> Metrics {
    Metrics { core: clients::metrics() }
}

/// What clients have counted, read at one moment. Iterating gives each :class:`Metric`.
///
///     metrics = client.metrics()
///     print(metrics.value("locktender_held", category="orders"), metrics.openmetrics())
#[pyclass(module = "locktender", frozen)]
pub(crate) struct Metrics {
    pub(crate) core: locktender::metrics::Metrics,
}

#[pymethods]
impl Metrics {
    /// The sum of the samples of the metric ``name`` that have all of these labels; of a histogram, the number of its times. 0 if
    /// there is none.
    #[pyo3(signature = (name, /, **labels))]
    fn value(&self, py: Python<'_>, name: &Bound<'_, PyAny>, labels: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
        let name = text("name", name)?;
        if !self.core.iter().any(|metric| metric.name == name) {
            raised(py, Err(locktender::Error::invalid("name", &name, "there is no metric of this name".to_owned())))?;
        }
        let labels = texts("label", labels)?;
        let labels: Vec<_> = labels.iter().map(|(label, value)| (&**label, &**value)).collect();
        Ok(self.core.value(&name, &labels))
    }

    /// The metrics as a text in the OpenMetrics format, which Prometheus and others read. Its media type is
    /// ``application/openmetrics-text; version=1.0.0; charset=utf-8``.
    fn openmetrics(&self) -> String {
        self.core.openmetrics()
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let metrics = self.core.iter().map(|metric| Metric::new(py, metric)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, metrics)?.try_iter()?.into_any().unbind())
    }

    fn __len__(&self) -> usize {
        self.core.iter().len()
    }

    fn __repr__(&self) -> String {
        let (held, waiting) = (self.core.value("locktender_held", &[]), self.core.value("locktender_waiting", &[]));
        format!("<Metrics: {held} held, {waiting} waiting>")
    }
}

value! {
    /// A metric: its name, its meaning and its values.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct Metric {
        /// The name. That of a counter ends with ``_total``, that of a time with ``_seconds``.
        name: &'static str,
        /// ``counter``, ``gauge`` or ``histogram``.
        kind: &'static str,
        /// Its meaning, as one sentence.
        help: &'static str,
        /// One :class:`Sample` for each combination of labels.
        samples: Py<PyList>,
    }
}

impl Metric {
    fn new(py: Python<'_>, metric: &locktender::metrics::Metric) -> PyResult<Self> {
        let samples = metric.samples.iter().map(|sample| Sample::new(py, sample)).collect::<PyResult<Vec<_>>>()?;
        let samples = PyList::new(py, samples)?.unbind();
        Ok(Self { name: metric.name, kind: metric.kind.as_str(), help: metric.help, samples })
    }
}

/// The bounds of each histogram's buckets, in seconds.
#[pyfunction(name = "_histogram_bounds")]
pub(crate) fn histogram_bounds() -> Vec<f64> {
    Histogram::bounds().to_vec()
}

value! {
    /// One value of a metric, and what it is about.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct Sample {
        /// The labels with their values.
        labels: Py<PyDict>,
        /// The number; of a histogram, the sum of its times in seconds.
        value: f64,
        /// Of a histogram: the upper bound of each bucket in seconds, and how many times were not longer. The last bound is infinite.
        /// ``None`` for a counter and a gauge.
        buckets: Option<Vec<(f64, u64)>>,
    }
}

impl Sample {
    fn new(py: Python<'_>, sample: &locktender::metrics::Sample) -> PyResult<Self> {
        let labels = PyDict::new(py);
        sample.labels.iter().try_for_each(|(name, value)| labels.set_item(name, value))?;
        let (value, buckets) = match &sample.value {
            MetricValue::Number(number) => (*number, None),
            MetricValue::Histogram(histogram) => (histogram.sum, Some(histogram.cumulative().collect())),
            _ => (0.0, None),
        };
        Ok(Self { labels: labels.unbind(), value, buckets })
    }
}
