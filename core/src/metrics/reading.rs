//! Reading: the metrics of a client at one moment, made of its meters and of what it holds and waits for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::table::{self, Row, TABLE};
use super::{MetricValue, Metrics, Sample};
use crate::error::LossReason;
use crate::event::{ACQUIRE_ENDS, EventKind, HOLD_ENDS};
use crate::metrics::histogram::{Histogram, Times};
use crate::metrics::meter::{Counter, JOB_ENDS, LOSSES, Meter, OVERLAPS, ServerMeter, is_job, plain};
use crate::name::Label;

/// What a client holds and waits for now, of one label.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Present {
    pub(crate) longest_hold: Duration,
    pub(crate) longest_wait: Duration,
    pub(crate) least_validity: Option<Duration>,
    pub(crate) max_hold_ratio: Option<f64>,
}

/// Collects the samples of a client whose application is called `app`.
pub(crate) struct Reading {
    app: String,
    samples: Vec<Vec<Sample>>,
}

type Labels = Vec<(&'static str, String)>;

impl Reading {
    pub(crate) fn new(app: &str) -> Self {
        Self { app: plain(app), samples: TABLE.iter().map(|_| Vec::new()).collect() }
    }

    fn add(&mut self, row: &Row, labels: Labels, value: MetricValue) {
        if let Some(at) = TABLE.iter().position(|known| known.name == row.name) {
            let app = ("app", self.app.clone());
            let labels = std::iter::once(app).chain(labels).collect();
            self.samples[at].push(Sample { labels, value });
        }
    }

    /// Adds the numbers of the client's locks with one label.
    pub(crate) fn meter(&mut self, meter: &Meter, present: Present) {
        let label = &meter.label;
        let labels = |more: Option<(&'static str, &str)>| {
            let own = [("category", label.category.to_string()), ("kind", label.kind.as_str().to_owned())];
            own.into_iter().chain(more.map(|(name, value)| (name, value.to_owned()))).collect::<Labels>()
        };
        // Ends first: who has begun meanwhile counts as under way, and nothing has ended that hasn't begun.
        let holds = meter.holds.read();
        let acquires = meter.acquires.read();
        let begun = meter.begun();
        let held = acquires[0].saturating_sub(holds.iter().sum());
        let waiting = begun.saturating_sub(acquires.iter().sum());
        let mut number = |row, value: f64| self.add(row, labels(None), MetricValue::Number(value));
        number(&table::HELD, held as f64);
        number(&table::WAITING, waiting as f64);
        number(&table::LONGEST_HOLD, present.longest_hold.as_secs_f64());
        number(&table::LONGEST_WAIT, present.longest_wait.as_secs_f64());
        let now = [
            (&table::LEAST_VALIDITY, present.least_validity.map(|least| least.as_secs_f64())),
            (&table::MAX_HOLD_RATIO, present.max_hold_ratio),
            (&table::LAST_FENCE, Some(meter.last_fence() as f64).filter(|fence| *fence > 0.0)),
        ];
        now.into_iter().for_each(|(row, value)| value.into_iter().for_each(|value| number(row, value)));
        let counters: [(&Row, &Counter); 5] = [
            (&table::ROUNDS, &meter.rounds),
            (&table::BUSY, &meter.busy),
            (&table::RENEWALS, &meter.renewals),
            (&table::LATE_RENEWALS, &meter.late_renewals),
            (&table::EXTENSIONS, &meter.extensions),
        ];
        counters.into_iter().for_each(|(row, counter)| number(row, counter.read() as f64));
        let mut tally = |row, name, values: &mut dyn Iterator<Item = (&'static str, u64)>| {
            values.for_each(|(value, count)| self.add(row, labels(Some((name, value))), MetricValue::Number(count as f64)));
        };
        let is_job = is_job(label.kind);
        let of_a_job = |kind: EventKind| matches!(kind, EventKind::Done | EventKind::Dead | EventKind::Skipped);
        let ends = ACQUIRE_ENDS.into_iter().zip(acquires).filter(|(end, _)| is_job || !of_a_job(*end));
        tally(&table::ACQUIRES, "end", &mut ends.map(|(end, count)| (end.as_str(), count)));
        tally(&table::HOLDS, "end", &mut named(HOLD_ENDS, holds));
        tally(&table::LOSSES, "reason", &mut LOSSES.map(LossReason::as_str).into_iter().zip(meter.losses.read()));
        tally(&table::EXCEEDED, "overlap", &mut OVERLAPS.into_iter().zip(meter.overlaps.read()));
        if is_job {
            tally(&table::JOB_ATTEMPTS, "end", &mut named(JOB_ENDS, meter.jobs.read()));
        }
        let times: [(&Row, &Times); 4] = [
            (&table::WAIT, &meter.waits),
            (&table::HOLD, &meter.hold_times),
            (&table::RENEWAL, &meter.round_trips),
            (&table::HANDOVER, &meter.handovers),
        ];
        let seen = |(row, times): (&'static Row, &Times)| Some((row, times.read())).filter(|(_, read)| read.count() > 0);
        let seen: Vec<(&Row, Histogram)> = times.into_iter().filter_map(seen).collect();
        seen.into_iter().for_each(|(row, read)| self.add(row, labels(None), MetricValue::Histogram(read)));
    }

    /// Adds the numbers of the client's locks, each label with what is held and waited for now.
    pub(crate) fn meters(&mut self, meters: &[Arc<Meter>], mut present: HashMap<Label, Present>) {
        meters.iter().for_each(|meter| self.meter(meter, present.remove(&meter.label).unwrap_or_default()));
    }

    /// Adds the numbers of one server.
    pub(crate) fn server(&mut self, address: &str, meter: &ServerMeter) {
        let numbers = [
            (&table::SERVER_UP, f64::from(u8::from(meter.is_up()))),
            (&table::SERVER_FAILURES, meter.failures.read() as f64),
            (&table::FAILOVERS, meter.failovers.read() as f64),
        ];
        for (row, number) in numbers {
            self.add(row, vec![("server", plain(address))], MetricValue::Number(number));
        }
    }

    /// Adds the numbers of the client itself.
    pub(crate) fn client(&mut self, warnings: u64, dropped: u64) {
        self.add(&table::WARNINGS, Labels::new(), MetricValue::Number(warnings as f64));
        self.add(&table::EVENTS_DROPPED, Labels::new(), MetricValue::Number(dropped as f64));
    }

    /// The metrics; one without a sample is there, too.
    pub(crate) fn done(self) -> Metrics {
        let mut metrics = Metrics::default();
        metrics.0.iter_mut().zip(self.samples).for_each(|(metric, samples)| metric.samples = samples);
        metrics
    }
}

/// Each end by its name.
fn named<const N: usize>(ends: [EventKind; N], counts: [u64; N]) -> impl Iterator<Item = (&'static str, u64)> {
    ends.into_iter().map(EventKind::as_str).zip(counts)
}
