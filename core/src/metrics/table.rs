//! The table of metrics: names and meanings, once for all languages and pages.

use crate::wording::words;

words! {
    /// What the numbers of a metric are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum MetricKind;
    /// The kind's name, the same in every language: `counter`, `gauge` or `histogram`.
    fn as_str;
    /// A number that only grows while the process lives.
    Counter = "counter",
    /// A number that grows and falls.
    Gauge = "gauge",
    /// How many times were how long.
    Histogram = "histogram",
}

/// How the samples of several clients become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    Sum,
    Most,
    Least,
}

/// A row: the name, the kind and the meaning.
pub(crate) struct Row {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) help: &'static str,
    together: Together,
}

macro_rules! table {
    ($($row:ident $name:literal $kind:ident $together:ident $help:literal;)*) => {
        $(pub(super) const $row: Row =
            Row { name: $name, kind: MetricKind::$kind, help: $help, together: Together::$together };)*

        /// All rows, in the order in which they are shown.
        pub(super) const TABLE: &[&Row] = &[$(&$row),*];
    };
}

table! {
    HELD "locktender_held" Gauge Sum "Holds now.";
    WAITING "locktender_waiting" Gauge Sum "Acquires under way now.";
    LONGEST_HOLD "locktender_longest_hold_seconds" Gauge Most "Age of the oldest hold now, 0 if nothing is held.";
    LONGEST_WAIT "locktender_longest_wait_seconds" Gauge Most "Age of the oldest acquire under way now, 0 if there is none.";
    LEAST_VALIDITY "locktender_least_validity_seconds" Gauge Least "Least remaining validity of the holds now.";
    MAX_HOLD_RATIO "locktender_max_hold_ratio" Gauge Most "Largest part of its max_hold that a hold has used now, from 0 to 1.";
    LAST_FENCE "locktender_last_fence" Gauge Most "Fence of the last grant; of an election, the term.";
    ROUNDS "locktender_acquire_rounds_total" Counter Sum "Rounds in which an acquire asked the servers.";
    BUSY "locktender_busy_total" Counter Sum "Times that an acquire found the lock held by another.";
    ACQUIRES "locktender_acquires_total" Counter Sum "Acquires that ended, by their end.";
    HOLDS "locktender_holds_total" Counter Sum "Holds that ended, by their end.";
    LOSSES "locktender_losses_total" Counter Sum "Holds that were lost, by the reason.";
    EXCEEDED "locktender_validity_exceeded_total" Counter Sum
        "Releases after the key was gone: overlap is proved if another hold came between, excluded if none did, else unknown.";
    RENEWALS "locktender_renewals_total" Counter Sum "Renewals that were confirmed.";
    LATE_RENEWALS "locktender_late_renewals_total" Counter Sum "Renewals that were confirmed with less than a third of the ttl left.";
    EXTENSIONS "locktender_extensions_total" Counter Sum "Extensions that a holder asked for and that were confirmed.";
    JOB_ATTEMPTS "locktender_job_attempts_total" Counter Sum "Attempts of jobs that ended, by their end.";
    WAIT "locktender_wait_seconds" Histogram Sum "Times that acquires took, whatever their end.";
    HOLD "locktender_hold_seconds" Histogram Sum "Times that holds lasted, whatever their end.";
    RENEWAL "locktender_renewal_seconds" Histogram Sum "Round trips of renewals and extensions.";
    HANDOVER "locktender_handover_seconds" Histogram Sum "Times from the notification of a waiter to its grant.";
    SERVER_UP "locktender_server_up" Gauge Least "1, or 0 while the server doesn't answer.";
    SERVER_FAILURES "locktender_server_failures_total" Counter Sum "Times that the server stopped answering.";
    FAILOVERS "locktender_failovers_total" Counter Sum "Times that another node answered for the server, or its node was restarted.";
    WARNINGS "locktender_warnings_total" Counter Sum "Events of kind warning.";
    EVENTS_DROPPED "locktender_events_dropped_total" Counter Sum "Events that a listener never got, because it was too slow.";
}

/// How samples of the metric `name` become one.
pub(super) fn together(name: &str) -> Together {
    TABLE.iter().find(|row| row.name == name).map_or(Together::Sum, |row| row.together)
}
