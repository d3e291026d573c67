//! Bugs to plant: each leaves out one rule of the protocol, where it is decided, and the tests show that they would notice.
//!
//! Compiled only for this crate's own tests, and with the feature `mutants`, which nothing but the simulation's tests enables.
//! Without it `mutant!` is `false`.

#[cfg(any(test, feature = "mutants"))]
pub use list::Mutant;
#[cfg(feature = "mutants")]
pub use planted::{MARKER, plant};

/// Whether a bug is planted here.
#[cfg(any(test, feature = "mutants"))]
macro_rules! mutant {
    ($name:ident) => {
        crate::mutant::is_planted(crate::mutant::Mutant::$name)
    };
}

/// No bug is planted.
#[cfg(not(any(test, feature = "mutants")))]
macro_rules! mutant {
    ($name:ident) => {
        false
    };
}

pub(crate) use mutant;

#[cfg(any(test, feature = "mutants"))]
pub(crate) use planted::is_planted;

#[cfg(test)]
pub(crate) use planted::{assert_each_noticed, assert_noticed};

/// Whether a bug has this mark in the list, the only one there is.
#[cfg(any(test, feature = "mutants"))]
macro_rules! is_marked {
    () => {
        false
    };
    (in_tables) => {
        true
    };
}

#[cfg(any(test, feature = "mutants"))]
macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident $($in_tables:ident)?,)*) => {
        /// A bug, named after what is done wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[$doc])* $name,)*
        }

        impl Mutant {
            /// Every bug.
            #[cfg(feature = "mutants")]
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Whether a table with the bug planted notices it, where it would take the simulation too long.
            #[must_use]
            pub fn is_in_tables(self) -> bool {
                match self {
                    $(Self::$name => is_marked!($($in_tables)?),)*
                }
            }
        }
    };
}

#[cfg(any(test, feature = "mutants"))]
mod list;

#[cfg(any(test, feature = "mutants"))]
mod planted {
    use std::cell::Cell;

    use super::Mutant;

    /// Is in every program that bugs can be planted in.
    pub const MARKER: &str = "locktender: bugs can be planted here";

    thread_local! {
        static PLANTED: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Runs `work` with a bug planted for this thread.
    pub fn plant<T>(mutant: Mutant, work: impl FnOnce() -> T) -> T {
        struct Uproot;
        impl Drop for Uproot {
            fn drop(&mut self) {
                PLANTED.set(None);
            }
        }
        let _uproot = Uproot;
        PLANTED.set(Some(mutant));
        work()
    }

    pub fn is_planted(mutant: Mutant) -> bool {
        std::hint::black_box(MARKER);
        PLANTED.get() == Some(mutant)
    }

    /// Asserts that a table passes, and fails with a bug planted.
    #[cfg(test)]
    pub fn assert_noticed(mutant: Mutant, table: fn()) {
        assert_each_noticed([mutant], table);
    }

    /// Asserts that a table passes, and fails with each of these bugs planted.
    #[cfg(test)]
    pub fn assert_each_noticed(mutants: impl IntoIterator<Item = Mutant>, table: fn()) {
        table();
        for mutant in mutants {
            assert!(mutant.is_in_tables(), "{mutant:?} is left to the simulation");
            assert!(std::panic::catch_unwind(|| plant(mutant, table)).is_err(), "{mutant:?} is not noticed");
        }
    }
}
