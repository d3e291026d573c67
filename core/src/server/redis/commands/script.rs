//! Scripts: for every kind of lock one script per operation, and the scripts about the server.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::name::Kind;
use crate::op::Op;

/// A script, and the hash by which a server that has seen it knows it.
pub struct Script {
    pub(crate) text: &'static str,
    /// The hash, made when it is first needed. Not by a `LazyLock`: if another thread makes it during a fork, the child would wait
    /// for ever.
    sha: ArcSwapOption<String>,
}

impl Script {
    /// The text, which is sent to a server that doesn't know the hash.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// The hash of the text.
    pub fn sha(&self) -> Arc<String> {
        self.sha.load_full().unwrap_or_else(|| {
            let sha = Arc::new(redis::Script::new(self.text).get_hash().to_owned());
            self.sha.store(Some(Arc::clone(&sha)));
            sha
        })
    }

    /// The script of an operation; `Examine` has none.
    #[must_use]
    pub fn of(op: &Op) -> Option<&'static Self> {
        Some(match op {
            Op::Acquire { keys, .. } => &Scripts::of(keys.kind()).acquire,
            Op::Confirm { keys, .. } => &Scripts::of(keys.kind()).confirm,
            Op::Extend { keys, .. } => &Scripts::of(keys.kind()).extend,
            Op::Heal { keys, .. } => &Scripts::of(keys.kind()).heal,
            Op::Release { keys, .. } | Op::Leave { keys, .. } => &Scripts::of(keys.kind()).release,
            Op::Inspect { keys } => &Scripts::of(keys.kind()).inspect,
            Op::Greet { .. } => &GREET,
            Op::Trust { .. } => &TRUST,
            Op::Probe { .. } => &PROBE,
            Op::Examine => return None,
        })
    }
}

/// The scripts of one kind of lock.
struct Scripts {
    acquire: Script,
    confirm: Script,
    extend: Script,
    heal: Script,
    release: Script,
    inspect: Script,
}

impl Scripts {
    fn of(kind: Kind) -> &'static Self {
        match kind {
            Kind::Exclusive => &EXCLUSIVE,
        }
    }
}

/// A script out of the files of `core/src/scripts`, one behind the other.
macro_rules! script {
    ($($file:literal)+) => {
        Script {
            text: concat!($(include_str!(concat!("../../../scripts/", $file))),+),
            sha: ArcSwapOption::const_empty(),
        }
    };
}

static EXCLUSIVE: Scripts = Scripts {
    acquire: script!("queue.lua" "exclusive/acquire.lua"),
    confirm: script!("exclusive/confirm.lua"),
    extend: script!("exclusive/extend.lua"),
    heal: script!("exclusive/heal.lua"),
    release: script!("queue.lua" "exclusive/release.lua"),
    inspect: script!("exclusive/inspect.lua"),
};

static GREET: Script = script!("greet.lua");
static TRUST: Script = script!("trust.lua");
static PROBE: Script = script!("probe.lua");
