//! Record: what is to be recorded of an acquire that is followed.

use std::collections::BTreeMap;
use std::time::Duration;

use locktender::host::{self, AttributeValue};
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::error::measured_ms;

#[napi]
pub type Attributes = BTreeMap<String, Either<String, f64>>;

/// A span that has ended: its name, begin and end in milliseconds since 1970, attributes, the error, and the event at its end.
#[napi]
pub type Span = (&'static str, f64, f64, Attributes, Option<String>, Option<(&'static str, Attributes)>);

/// What is to be recorded of an acquire that is followed.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct Recorded {
    pub number: f64,
    /// The number of its client, if it had an event.
    pub client: Option<f64>,
    /// A value of a histogram: its name, the seconds, and labels.
    pub time: Option<(&'static str, f64, Attributes)>,
    pub span: Option<Span>,
    /// Whether no record of this acquire comes any more.
    pub is_last: bool,
}

impl From<host::Record> for Recorded {
    fn from(record: host::Record) -> Self {
        let span = |span: host::Span| {
            let event = span.event.map(|(name, found)| (name, attributes(found)));
            let (begun, ended) = (measured_ms(span.begun), measured_ms(span.ended));
            (span.name, begun, ended, attributes(span.attributes), span.error, event)
        };
        Self {
            number: record.number as f64,
            client: record.client.map(|client| client as f64),
            time: record.time.map(|(name, took, labels)| (name, in_seconds(took), attributes(labels))),
            span: record.span.map(span),
            is_last: record.is_last,
        }
    }
}

fn in_seconds(time: Duration) -> f64 {
    measured_ms(time) / 1e3
}

fn attributes(attributes: host::Attributes) -> Attributes {
    let value = |value| match value {
        AttributeValue::Text(text) => Either::A(text),
        AttributeValue::Whole(number) => Either::B(number as f64),
        AttributeValue::Time(time) => Either::B(in_seconds(time)),
    };
    attributes.into_iter().map(|(name, found)| (name, value(found))).collect()
}
