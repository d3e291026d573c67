//! Signatures of what takes options, as `help()` shows them: Python reads a signature at the beginning of a docstring.

/// The signature that begins with `$first`, and has a lock's options at its end: what isn't given (`...`) is the client's.
macro_rules! with_lock_options {
    ($first:expr) => {
        concat!(
            $first,
            ", ttl=..., wait=..., renew=..., max_hold=..., fair=..., min_hold=..., grace=..., category=..., on_lost=...)\n--\n"
        )
    };
}

/// The same with the options of several locks.
macro_rules! with_multi_lock_options {
    ($first:literal) => {
        concat!($first, ", ttl=..., wait=..., renew=..., max_hold=..., grace=..., category=..., on_lost=...)\n--\n")
    };
}

/// The same with a job's options, those of its lock among them.
macro_rules! with_job_options {
    ($first:literal) => {
        with_lock_options!(concat!($first, ", max_attempts=3, retry_delay=0, retention=86400"))
    };
}

/// The same with the options of a job that runs once per scheduled time.
macro_rules! with_cron_job_options {
    ($first:literal) => {
        with_lock_options!(concat!(
            $first,
            ", at=None, every=60, max_lateness=86400, on_overlap='skip', max_attempts=1, retry_delay=0"
        ))
    };
}

/// The same with a client's options, those of its locks among them.
macro_rules! with_client_options {
    ($first:literal) => {
        concat!(
            $first,
            ", pickle_name=None, prefix=None, app=None, connect_timeout=None, response_timeout=None, unavailable_after=None, max_ttl=None, ",
            "failover=None, min_replicas=None, replicas_timeout=None, credentials=None, ",
            "tls_ca=None, tls_cert=None, tls_key=None, tls_name=None, address_map=None, on_event=None, log_holds=None, history=None, ",
            "ttl=None, wait=None, renew=None, max_hold=None, fair=None, min_hold=None, grace=None, category=None, on_lost=None)\n--\n"
        )
    };
}
