//! Bugs to plant: each leaves out one rule of the protocol, where it is decided, and the tests show that they would notice.
//!
//! Compiled only with the feature `mutants`, which nothing but the tests of this repository enables. Without it `mutant!`
//! is `false`.

#[cfg(feature = "mutants")]
pub use planted::{MARKER, Mutant, plant};

/// Whether a bug is planted here.
#[cfg(feature = "mutants")]
macro_rules! mutant {
    ($name:ident) => {
        crate::mutant::is_planted(crate::mutant::Mutant::$name)
    };
}

/// No bug is planted.
#[cfg(not(feature = "mutants"))]
macro_rules! mutant {
    ($name:ident) => {
        false
    };
}

pub(crate) use mutant;

#[cfg(feature = "mutants")]
pub(crate) use planted::is_planted;

#[cfg(feature = "mutants")]
mod planted {
    use std::cell::Cell;

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

    macro_rules! mutants {
        ($($(#[$doc:meta])* $name:ident,)*) => {
            /// A bug, named after what is done wrong.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum Mutant {
                $($(#[$doc])* $name,)*
            }

            impl Mutant {
                /// Every bug.
                pub const ALL: &[Self] = &[$(Self::$name,)*];
            }
        };
    }

    mutants! {
        // One server.
        /// A release deletes whatever is there.
        ReleaseUnowned,
        /// A confirmation doesn't look at the owner.
        ConfirmUnowned,
        /// A confirmation doesn't look for a newer vote.
        ConfirmOlder,
        /// An extension doesn't look for a newer vote.
        ExtendOlder,
        /// An extension sets the expiry also where more remains.
        ExtensionShortens,
        /// A vote may repeat the fence that is there.
        VoteRepeats,
        /// An acquire that finds its own value, or the one it adopts, returns the fence there instead of a vote.
        OldFence,
        /// A server that lost its data votes at once.
        NoQuarantine,

        // The vote.
        /// N / 2 servers decide.
        SmallQuorum,
        /// The largest of q votes is the token, although no majority voted it or confirmed it.
        NoWriteBack,
        /// A vote above the token counts for it.
        VoteAboveCounts,
        /// The rounds of one acquisition share an owner value.
        OwnerReused,
        /// A round that a majority attests is granted although its ttl has passed.
        LateGrant,
        /// A vote that comes after the grant is taken back.
        LateVoteReleased,
        /// A failed round is not undone where its acquire has not been answered, and its late success stays.
        LateSuccessKept,

        // The hold.
        /// Validity is counted from the reply that granted the lock.
        GrantValidFromReply,
        /// Validity is counted from the reply that confirmed an extension.
        ExtensionValidFromReply,
        /// Nothing is taken off a ttl for drifting clocks.
        NoDrift,
        /// An extension counts although the old validity has ended.
        LateExtension,
        /// Answers to an earlier extension count for the one under way.
        EarlierRoundCounts,
        /// A missing key is written again before a majority has confirmed the extension.
        HealWithoutMajority,
        /// A missing key is written again also where an acquire may still come, or the vote was released.
        HealOvertakes,
        /// A heartbeat shrinks what a longer extension has left.
        BeatShortens,
        /// The handle goes on saying it is valid while its release is under way.
        ValidWhileReleasing,
        /// The handle goes on saying it is valid after `max_hold`.
        MaxHoldIgnored,
        /// The pause between two tries of an extension grows with the ttl without bound, and no timer cuts it short.
        ExtendOutlasts,
        /// A server that did not answer an extension counts as one that refused it.
        SilenceRefuses,
    }
}
