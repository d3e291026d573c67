//! The scripts, one per operation.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::op::Op;

/// A script and the hash by which a server that has seen it knows it.
pub(crate) struct Script {
    pub(crate) text: &'static str,
    /// Made when it is first needed. Not by a `LazyLock`: a child forked while another thread makes it would wait for ever.
    sha: ArcSwapOption<String>,
}

impl Script {
    pub(crate) fn sha(&self) -> Arc<String> {
        self.sha.load_full().unwrap_or_else(|| {
            let sha = Arc::new(redis::Script::new(self.text).get_hash().to_owned());
            self.sha.store(Some(Arc::clone(&sha)));
            sha
        })
    }

    /// The script of an operation; `Examine` has none.
    pub(crate) fn of(op: &Op) -> Option<&'static Self> {
        Some(match op {
            Op::Acquire { .. } => &ACQUIRE,
            Op::Confirm { .. } => &CONFIRM,
            Op::Extend { .. } => &EXTEND,
            Op::Heal { .. } => &HEAL,
            Op::Release { .. } => &RELEASE,
            Op::Inspect { .. } => &INSPECT,
            Op::Greet { .. } => &GREET,
            Op::Trust { .. } => &TRUST,
            Op::Probe { .. } => &PROBE,
            Op::Examine => return None,
        })
    }
}

macro_rules! scripts {
    ($($name:ident = $($file:literal)+;)*) => {$(
        static $name: Script = Script {
            text: concat!($(include_str!(concat!("../../../scripts/", $file))),+),
            sha: ArcSwapOption::const_empty(),
        };
    )*};
}

scripts! {
    ACQUIRE = "queue.lua" "acquire.lua";
    CONFIRM = "confirm.lua";
    EXTEND = "extend.lua";
    HEAL = "heal.lua";
    RELEASE = "queue.lua" "release.lua";
    INSPECT = "inspect.lua";
    GREET = "greet.lua";
    TRUST = "trust.lua";
    PROBE = "probe.lua";
}
