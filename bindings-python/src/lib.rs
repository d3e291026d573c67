//! The Python side of locktender: converts arguments, calls the core, converts the result.
//!
//! | what | where |
//! | --- | --- |
//! | the classes | `client`, `lock`, `hold` and `async_hold` (what both have is `hold_inner`), `values`; `job`, `attempt`, `job_values`; `election`, `leadership`, `observer` |
//! | what users give | `credentials`, `arguments`, `options`, `parts`, `name`; `default` is the client behind the module's own `lock()`; `signatures` show it |
//! | what goes wrong | `errors`, `causes` |
//! | waiting: a blocked thread, a greenlet, a coroutine | `waiting`; `green` and `operation` on the completion queue of `bridge`, fed by `turns` and `wake` |
//! | `with lock` | `entries`, by `context` and `frames`; `around` for decorators; `body` of an `async with` |
//! | the background | `metrics`; `events`, `losses` and `traces`, given to Python by `delivery`; `clients`; `exit` and `visit`; `garbage` |
//! | what threads share | `guarded` |
//! | the package's Python | `own`: nothing else of it is called from here |
//! | for users' tests | `scripted`, `clock` |
//!
//! Three rules keep it from hanging: no thread of the core touches a Python object or waits for the interpreter, nothing that a
//! thread of the core may lock is locked in a forked child, and no Python code runs while something is locked or initialized
//! (`guarded`): it could come back, or another thread could, with the interpreter in its hands. What is idiomatic Python
//! (decorators, logging) is Python, beside this crate in `python/locktender`.
#![forbid(unsafe_code)]

#[macro_use]
mod garbage;
#[macro_use]
mod signatures;

mod arguments;
mod around;
mod async_hold;
mod attempt;
mod body;
mod bridge;
mod causes;
mod client;
mod clients;
mod clock;
mod context;
mod credentials;
mod default;
mod delivery;
mod election;
mod entries;
mod errors;
mod events;
mod exit;
mod frames;
mod green;
mod guarded;
mod hold;
mod hold_inner;
mod job;
mod job_values;
mod known;
mod leadership;
mod lock;
mod lock_values;
mod losses;
mod members;
mod metrics;
mod name;
mod not_taken;
mod observer;
mod operation;
mod options;
mod own;
mod parts;
mod running;
mod scripted;
mod seconds;
mod traces;
mod turns;
mod values;
mod visit;
mod waiting;
mod wake;

/// The native module.
// Its tests have never run without the GIL.
#[pyo3::pymodule(gil_used = true)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        around::Around,
        async_hold::{AsyncHold, AsyncMultiHold, TaskHold},
        attempt::{AsyncAttempt, Attempt},
        client::{Client, opening::number_of},
        clock::Clock,
        credentials::{Asked, Credentials, fail_credentials, give_credentials, next_credentials},
        default::{configure, cron_job, election, job, lock, multi_lock, read_lock, semaphore},
        delivery::{Record, next_events},
        election::{Election, Leading},
        exit::{close_all, forked},
        hold::{Hold, MultiHold, ThreadHold},
        hold_inner::BaseHold,
        job::{AroundAttempt, Job},
        job_values::{JobOutcome, JobStatus},
        leadership::{AsyncLeadership, Leadership},
        lock::{BaseLock, Lock, MultiLock},
        lock_values::{Grant, HoldInfo, LockInfo, OwnerFields},
        members::missing,
        metrics::{Metric, Metrics, Sample, histogram_bounds, metrics},
        name::safe_name,
        observer::{Leader, Observation, Observer},
        own::use_names,
        scripted::{ScriptedServer, Seen},
        traces::follow,
        values::{LockEvent, Loss, Release, ServerReport},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::exit::settle_in(module.py())?;
        crate::errors::settle_in(module.py())?;
        // Made now for the same reason: these aren't in the module.
        module.py().get_type::<crate::operation::Operation>();
        module.py().get_type::<crate::body::Body>();
        module.py().get_type::<crate::bridge::Drain>();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let close_all = module.getattr("_close_all")?;
        module.py().import("atexit")?.call_method1("register", (close_all,)).map(drop)
    }
}
