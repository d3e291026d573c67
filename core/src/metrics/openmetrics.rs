//! The OpenMetrics text format, version 1.0.

use std::fmt::Write as _;

use super::{Metric, MetricKind, MetricValue, Metrics};

pub(super) fn text(metrics: &Metrics) -> String {
    let mut text = String::new();
    for metric in metrics.iter() {
        write_metric(&mut text, metric);
    }
    text.push_str("# EOF\n");
    text
}

fn write_metric(text: &mut String, metric: &Metric) {
    // A counter's family has the name without the suffix of its samples.
    let family = if metric.kind == MetricKind::Counter { metric.name.trim_end_matches("_total") } else { metric.name };
    let _ = writeln!(text, "# TYPE {family} {}", metric.kind.as_str());
    if family.ends_with("_seconds") {
        let _ = writeln!(text, "# UNIT {family} seconds");
    }
    let _ = writeln!(text, "# HELP {family} {}", metric.help);
    for sample in &metric.samples {
        let labels: Vec<_> = sample.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = labels.join(",");
        match &sample.value {
            MetricValue::Number(number) => _ = writeln!(text, "{}{{{labels}}} {number}", metric.name),
            MetricValue::Histogram(histogram) => {
                for (bound, count) in histogram.cumulative() {
                    let bound = if bound.is_finite() { format!("{bound:?}") } else { "+Inf".to_owned() };
                    let _ = writeln!(text, "{family}_bucket{{{labels},le=\"{bound}\"}} {count}");
                }
                let _ = writeln!(text, "{family}_sum{{{labels}}} {}", histogram.sum);
                let _ = writeln!(text, "{family}_count{{{labels}}} {}", histogram.count());
            }
        }
    }
}

/// A label's value in quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
