//! The options of a lock: one list, of which all that there is once for each option is made.

use std::sync::Arc;
use std::time::Duration;

use super::value::{Value, from_value, overrides};
use crate::error::Error;

/// The wait of an acquire for a busy lock: a time, or no end.
///
/// ```
/// # use std::time::Duration;
/// use locktender::Wait;
///
/// assert_eq!(Wait::from(Duration::from_secs(5)), Wait::For(Duration::from_secs(5)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At most this long, up to 366 days; zero is one attempt.
    For(Duration),
    /// Until the lock is free.
    Forever,
}

impl From<Duration> for Wait {
    fn from(span: Duration) -> Self {
        Self::For(span)
    }
}

from_value! {
    Wait: Value::Time(span) => Self::For(span), Value::Endless => Self::Forever;
}

macro_rules! lock_options {
    ($($(#[$doc:meta])* $option:ident($kind:ident): $type:ty = $default:expr;)*) => {
        with_defaults! {
            /// The options of a lock, each with a value. [`LockOptions::default`] has the defaults.
            ///
            /// ```
            /// use locktender::{LockOptions, Wait};
            ///
            /// let defaults = LockOptions::default();
            /// assert_eq!((defaults.ttl.as_secs(), defaults.wait, defaults.renew), (10, Wait::Forever, true));
            /// assert_eq!((defaults.max_hold, defaults.fair), (None, false));
            /// assert!(defaults.min_hold.is_zero() && defaults.grace.is_zero());
            /// ```
            #[doc(hidden)]
            pub struct LockOptions {
                $($(#[$doc])* $option: $type = $default;)*
            }
        }

        overrides! {
            /// The options a user gave for one lock. What is `None` comes from the client's defaults; `Some(None)` takes such a default
            /// back.
            pub struct LockOverrides {
                $(#[doc = concat!("See [`LockOptions::", stringify!($option), "`].")] $option($kind): $type;)*
            }
        }

        impl LockOverrides {
            /// These settings over `base`, checked.
            ///
            /// # Errors
            /// `INVALID_ARGUMENT` naming the option and what was given.
            #[doc(hidden)]
            pub fn over(&self, base: &LockOptions) -> Result<LockOptions, Error> {
                let merged = LockOptions { $($option: self.$option.clone().unwrap_or_else(|| base.$option.clone()),)* };
                merged.check()?;
                Ok(merged)
            }
        }
    };
}

lock_options! {
    /// The time to live: how long the key lives without a renewal. Default 10 s; from 10 ms to 24 h, on a quorum at most
    /// [`max_ttl`](crate::ClientBuilder::max_ttl).
    ttl(Time): Duration = Duration::from_secs(10);
    /// How long an acquire waits while the lock is busy. Default [`Wait::Forever`]; at most 366 days. `try_acquire` ignores it.
    wait(EndlessTime): Wait = Wait::Forever;
    /// Whether the hold is renewed in the background, first when a third of the ttl has passed. Default true.
    renew(Switch): bool = true;
    /// The longest a hold lasts, counted from the grant, whatever renews or extends it. Default none; from 10 ms to 366 days.
    max_hold(EndlessTime): Option<Duration> = None;
    /// Whether callers get the lock strictly in the order in which they came, among all that set this option, in every process.
    /// Default false: a newcomer may be faster than a waiter, though no waiter starves. Not on a quorum, whose servers can't agree on
    /// which waiter is first.
    fair(Switch): bool = false;
    /// How long the lock stays taken at least, counted from the grant, also after an earlier release. Default none; at most
    /// 24 h, on a quorum at most [`max_ttl`](crate::ClientBuilder::max_ttl).
    min_hold(Time): Duration = Duration::ZERO;
    /// How long the key outlives the hold: a loss keeps others out for this long. Default none; at most 24 h, on a quorum
    /// with the ttl at most [`max_ttl`](crate::ClientBuilder::max_ttl).
    grace(Time): Duration = Duration::ZERO;
    /// The category under which [metrics](crate::Client::metrics) and events count the lock. Default: the name up to its first
    /// colon; at most 128 bytes of UTF-8.
    category(Text): Option<Arc<str>> = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::options::MAX_TTL;

    #[test]
    fn settings_lie_over_the_defaults() {
        let base = LockOptions::default();
        let settings = LockOverrides { ttl: Some(Duration::from_secs(3)), ..LockOverrides::default() };
        let merged = settings.over(&base).unwrap();
        assert_eq!((merged.ttl, merged.wait, merged.renew), (Duration::from_secs(3), Wait::Forever, true));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        for settings in [
            LockOverrides { ttl: Some(Duration::from_millis(9)), ..LockOverrides::default() },
            LockOverrides { ttl: Some(MAX_TTL + Duration::from_millis(1)), ..LockOverrides::default() },
            LockOverrides { max_hold: Some(Some(Duration::ZERO)), ..LockOverrides::default() },
            LockOverrides { wait: Some(Wait::For(Duration::MAX)), ..LockOverrides::default() },
        ] {
            let error = settings.over(&LockOptions::default()).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{settings:?}");
        }
    }
}
