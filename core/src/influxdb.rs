//! Events as points of InfluxDB's line protocol, passed on in batches.

pub use crate::event::{Points, PointsBuilder};
