//! Scripts: for every kind of lock one script per operation, and the scripts about the server.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::name::Kind;
use crate::op::{Op, Part, Verb};

/// A script, and the hashes by which a server that has seen it knows it.
///
/// Servers from version 7 on get the text with a header line. Then a replica refuses the script before it runs, and a full server
/// runs scripts that need no memory. Earlier servers can't read the line.
pub struct Script {
    text: &'static str,
    with_header: &'static str,
    /// The hashes of the two texts, made when they are first needed. Not by a `LazyLock`: if another thread makes a hash during a
    /// fork, the child would wait without end.
    shas: [ArcSwapOption<String>; 2],
}

impl Script {
    /// The text, which is sent to a server that doesn't know the hash.
    #[must_use]
    pub const fn text(&self, with_header: bool) -> &'static str {
        if with_header { self.with_header } else { self.text }
    }

    /// The hash of the text.
    pub fn sha(&self, with_header: bool) -> Arc<String> {
        let known = &self.shas[usize::from(with_header)];
        known.load_full().unwrap_or_else(|| {
            let sha = Arc::new(redis::Script::new(self.text(with_header)).get_hash().to_owned());
            known.store(Some(Arc::clone(&sha)));
            sha
        })
    }

    /// The script that compares and deletes.
    #[must_use]
    pub const fn compare() -> &'static Self {
        &COMPARE
    }

    /// The script of an operation; what only looks at the server has none.
    #[must_use]
    pub fn of(op: &Op) -> Option<&'static Self> {
        Some(match op {
            Op::Lock(op) => script_of(op.keys.kind(), &op.verb),
            Op::Part(op) => script_of_part(op.whole.keys.kind(), &op.part),
            Op::Greet { .. } => &GREET,
            Op::Trust { .. } => &TRUST,
            Op::Probe { .. } => &PROBE,
            Op::Examine
            | Op::Scan { .. }
            | Op::Peek { .. }
            | Op::Log(_)
            | Op::History { .. }
            | Op::Publish { .. }
            | Op::AwaitReplicas { .. }
            | Op::Marker { .. } => return None,
        })
    }
}

/// The script of a verb on a lock of this kind. Kinds may share a script.
fn script_of(kind: Kind, verb: &Verb) -> &'static Script {
    match (kind, verb) {
        (Kind::Job, Verb::Acquire { job: Some(_), .. }) => &JOB_BEGIN,
        (Kind::Job, Verb::EndAttempt { .. }) => &JOB_END,
        (Kind::Job, Verb::Reset) => &JOB_RESET,
        (Kind::Job, Verb::JobStatus) => &JOB_STATUS,
        (Kind::Quorum, Verb::Acquire { .. }) => &QUORUM_ACQUIRE,
        (Kind::Quorum, Verb::Confirm { .. }) => &QUORUM_CONFIRM,
        (Kind::Quorum, Verb::Extend { .. }) => &QUORUM_EXTEND,
        (Kind::Quorum, Verb::Heal { .. }) => &QUORUM_HEAL,
        (Kind::Quorum, Verb::Release { .. } | Verb::Leave) => &QUORUM_RELEASE,
        (Kind::Quorum, _) => &QUORUM_INSPECT,
        (Kind::Job, Verb::Extend { .. }) => &JOB_EXTEND,
        (Kind::Several, Verb::Acquire { .. }) => &SEVERAL_ACQUIRE,
        (Kind::Several, Verb::Release { .. } | Verb::Leave) => &SEVERAL_RELEASE,
        (Kind::Read | Kind::Semaphore(_), Verb::Acquire { .. }) => &SHARED_ACQUIRE,
        (Kind::Read | Kind::Semaphore(_), Verb::Confirm { .. }) => &SHARED_CONFIRM,
        (Kind::Read | Kind::Semaphore(_), Verb::Extend { .. } | Verb::Heal { .. }) => &SHARED_EXTEND,
        (Kind::Read | Kind::Semaphore(_), Verb::Release { .. } | Verb::Leave) => &SHARED_RELEASE,
        (_, Verb::Acquire { .. }) => &ACQUIRE,
        (_, Verb::Confirm { .. }) => &CONFIRM,
        (_, Verb::Extend { .. }) => &EXTEND,
        (_, Verb::Heal { .. }) => &HEAL,
        (_, Verb::Release { .. } | Verb::Leave) => &RELEASE,
        // Only a job has a record.
        (_, Verb::Inspect | Verb::EndAttempt { .. } | Verb::Reset | Verb::JobStatus) => &INSPECT,
    }
}

/// The script of a part of an operation.
fn script_of_part(kind: Kind, part: &Part) -> &'static Script {
    match part {
        Part::Release if kind.is_shared() => &SHARED_RELEASE_ALONE,
        Part::Take => &TAKE,
        Part::Tick => &TICK,
        Part::Extend => &EXTEND,
        Part::Release => &RELEASE_ALONE,
        Part::Look => &LOOK,
        Part::CountAttempt { .. } => &COUNT_ATTEMPT,
        Part::EndAttempt => &NOTE_END,
        Part::Status => &RECORD,
        Part::Reset { .. } => &FORGET,
    }
}

/// A script out of the files of `core/src/scripts`, one behind the other. Before them stands its header. Files in braces are the
/// body of the Lua function `acquire`; those in brackets are the body of a function of the name that stands before them, which is given the keys and
/// arguments of one lock. Each file is a chunk of its own.
macro_rules! script {
    ($header:literal: $($piece:tt)+) => {
        Script {
            text: concat!($(piece!($piece)),+),
            with_header: concat!($header, $(piece!($piece)),+),
            shas: [const { ArcSwapOption::const_empty() }; 2],
        }
    };
}

macro_rules! piece {
    ($file:literal) => { include_str!(concat!("../../../scripts/", $file)) };
    ({ $($file:literal)+ }) => { concat!("local function acquire()\n", $(piece!($file)),+, "end\n") };
    ([ $name:literal: $($file:literal)+ ]) => {
        concat!("local function ", $name, "(KEYS, ARGV, looks_only)\n", $(piece!($file)),+, "end\n")
    };
}

static ACQUIRE: Script = script!(
    "#!lua\n": "exclusive/acquire.lua" "value.lua" "queue.lua" "exclusive/acquire_args.lua" "time.lua" "read_marker.lua" "marker.lua" "clock.lua"
    "shared/gate.lua" "exclusive/looked.lua" "exclusive/acquire_free.lua" "exclusive/acquire_taken.lua"
);
static CONFIRM: Script = script!(
    "#!lua flags=allow-oom\n": "exclusive/confirm.lua" "value.lua" "time.lua" "exclusive/held.lua" "last_fence.lua" "raise.lua" "exclusive/raised.lua"
    "exclusive/refused.lua" "exclusive/confirmed.lua"
);
static EXTEND: Script = script!(
    "#!lua flags=allow-oom\n": "exclusive/extend.lua" "value.lua" "time.lua" "exclusive/held.lua" "exclusive/refused.lua"
    "exclusive/extended.lua"
);
static HEAL: Script = script!("#!lua flags=allow-oom\n": "exclusive/heal.lua" "value.lua" "time.lua" "exclusive/held.lua" "last_fence.lua" "raise.lua" "exclusive/healed.lua");
static RELEASE: Script = script!(
    "#!lua flags=allow-oom\n": "exclusive/release.lua" "value.lua" "exclusive/release_short.lua" "queue.lua" "time.lua"
    "shared/gate.lua" "shared/marks.lua" "shared/admit.lua" "last_fence.lua" "exclusive/release_long.lua"
);
/// The release of a lock that nobody waits for, where the server has no command for it.
static COMPARE: Script = script!("": "exclusive/compare.lua");
static INSPECT: Script = script!("": "exclusive/inspect.lua" "value.lua" "time.lua" "shared/gate.lua" "exclusive/seen.lua" "shared/inside.lua" "inspected.lua");

static QUORUM_ACQUIRE: Script = script!(
    "#!lua\n": "quorum/acquire.lua" "quorum/noted.lua" "queue.lua" "quorum/acquire_args.lua" "time.lua" "read_marker.lua" "marker.lua"
    "quorum/acquire_free.lua" "quorum/acquire_vote.lua"
);
static QUORUM_CONFIRM: Script = script!(
    "#!lua flags=allow-oom\n": "quorum/confirm.lua" "quorum/looked.lua" "quorum/read.lua" "quorum/confirmed.lua" "quorum/outlives.lua"
);
static QUORUM_EXTEND: Script = script!(
    "#!lua flags=allow-oom\n": "quorum/extend.lua" "quorum/looked.lua" "quorum/extend_short.lua" "quorum/read.lua" "quorum/extended.lua"
    "quorum/outlives.lua"
);
static QUORUM_HEAL: Script = script!(
    "#!lua flags=allow-oom\n": "quorum/heal.lua" "quorum/looked.lua" "quorum/read.lua" "quorum/healed.lua" "quorum/outlives.lua"
);
static QUORUM_RELEASE: Script =
    script!("#!lua flags=allow-oom\n": "quorum/release.lua" "quorum/noted.lua" "queue.lua" "quorum/release_long.lua");
static QUORUM_INSPECT: Script = script!("": "quorum/inspect.lua" "quorum/seen.lua" "inspected.lua");

static SHARED_ACQUIRE: Script = script!(
    "#!lua\n": "shared/acquire.lua" "value.lua" "queue.lua" "shared/acquire_args.lua" "time.lua" "shared/gate.lua" "shared/marks.lua"
    "shared/admit.lua" "exclusive/looked.lua" "shared/adopted.lua" "read_marker.lua" "marker.lua" "clock.lua" "shared/acquire_free.lua"
    "shared/acquire_taken.lua"
);
static SHARED_CONFIRM: Script = script!(
    "#!lua flags=allow-oom\n": "shared/confirm.lua" "value.lua" "time.lua" "exclusive/held.lua" "shared/gate.lua" "shared/marks.lua"
    "last_fence.lua" "raise.lua" "shared/confirmed.lua"
);
static SHARED_EXTEND: Script = script!(
    "#!lua flags=allow-oom\n": "shared/extend.lua" "value.lua" "time.lua" "exclusive/held.lua" "shared/gate.lua" "shared/marks.lua"
    "shared/extended.lua"
);
static SHARED_RELEASE: Script = script!(
    "#!lua flags=allow-oom\n": "shared/release.lua" "value.lua" "queue.lua" "time.lua" "exclusive/held.lua" "last_fence.lua"
    "shared/gate.lua" "shared/marks.lua" "shared/admit.lua" "shared/released.lua"
);

static SHARED_RELEASE_ALONE: Script = script!(
    "#!lua flags=allow-oom\n": "shared/release.lua" "value.lua" "shared/alone.lua" "time.lua" "exclusive/held.lua" "shared/gate.lua"
    "shared/marks.lua" "shared/released.lua"
);

static SEVERAL_ACQUIRE: Script = script!(
    "#!lua\n": "several/acquire.lua"
    [ "acquire":
        "value.lua" "queue.lua" "exclusive/acquire_args.lua" "time.lua" "read_marker.lua" "marker.lua" "clock.lua" "shared/gate.lua"
        "exclusive/looked.lua" "exclusive/acquire_free.lua" "several/looks_only.lua" "exclusive/acquire_taken.lua"
    ]
    [ "release":
        "value.lua" "exclusive/release_short.lua" "queue.lua" "time.lua" "shared/gate.lua" "shared/marks.lua" "shared/admit.lua"
        "last_fence.lua" "exclusive/release_long.lua"
    ]
    "several/keys.lua" "several/acquired.lua"
);
static SEVERAL_RELEASE: Script = script!(
    "#!lua flags=allow-oom\n": "several/release.lua"
    [ "release":
        "value.lua" "exclusive/release_short.lua" "queue.lua" "time.lua" "shared/gate.lua" "shared/marks.lua" "shared/admit.lua"
        "last_fence.lua" "exclusive/release_long.lua"
    ]
    "several/keys.lua" "several/released.lua"
);

static JOB_BEGIN: Script = script!(
    "#!lua\n": "job/begin.lua" "value.lua" "queue.lua" "job/notify.lua" "job/not_begun.lua" "job/over_notified.lua" {
        "exclusive/acquire_args.lua" "time.lua" "read_marker.lua" "marker.lua" "job/over.lua" "clock.lua" "shared/gate.lua"
        "exclusive/looked.lua" "exclusive/acquire_free.lua" "job/due.lua" "exclusive/acquire_taken.lua"
    }
    "job/begun.lua"
);
static JOB_EXTEND: Script = script!(
    "#!lua flags=allow-oom\n": "value.lua" "job/extend.lua" "time.lua" "exclusive/held.lua" "exclusive/refused.lua"
    "exclusive/extended.lua"
);
static JOB_END: Script = script!(
    "#!lua flags=allow-oom\n": "value.lua" "job/end_done.lua" "queue.lua" "job/notify.lua" "job/end.lua" "job/found.lua" "job/noted.lua"
    "shared/gate.lua" "shared/marks.lua" "shared/admit.lua" "job/ended.lua"
);
static JOB_RESET: Script = script!("#!lua flags=allow-oom\n": "value.lua" "queue.lua" "job/reset.lua" "job/found.lua" "shared/gate.lua" "job/forgotten.lua");
static JOB_STATUS: Script = script!("": "value.lua" "job/status.lua" "shared/gate.lua" "exclusive/seen.lua" "job/shown.lua");

static TAKE: Script = script!("#!lua\n": "value.lua" "part/take.lua");
static TICK: Script = script!("#!lua\n": "part/tick.lua" "time.lua" "clock.lua" "part/ticked.lua");
static RELEASE_ALONE: Script = script!("#!lua flags=allow-oom\n": "value.lua" "part/holder.lua" "part/release.lua");
static LOOK: Script =
    script!("": "part/look.lua" "value.lua" "time.lua" "shared/gate.lua" "exclusive/seen.lua" "part/looked.lua");
static COUNT_ATTEMPT: Script = script!(
    "#!lua\n": "value.lua" "part/record.lua" "part/begin.lua" "job/not_begun.lua" "part/begun_alone.lua" {
        "job/over.lua" "part/taken.lua" "job/due.lua" "part/counted.lua"
    }
    "job/begun.lua"
);
static NOTE_END: Script = script!("#!lua flags=allow-oom\n": "part/record.lua" "job/end.lua" "job/noted.lua" "part/noted.lua");
static RECORD: Script = script!("": "part/record.lua" "job/status.lua" "part/status.lua");
static FORGET: Script = script!("#!lua flags=allow-oom\n": "part/record.lua" "job/reset.lua" "part/forgotten.lua");

// It is sent before the version is known.
static GREET: Script = script!("": "read_marker.lua" "greet.lua");
static TRUST: Script = script!("#!lua\n": "read_marker.lua" "trust.lua");
static PROBE: Script = script!("": "probe.lua");
