//! Setters: methods that change one option, and give what they were called on.

/// Makes setters of `$owner` from lines as `name(value: type) |it| change of it;`, by a method that takes the change.
macro_rules! setters {
    ($(#[$about:meta])* $owner:ident, $by:ident: $($(#[$doc:meta])* $name:ident($value:ident: $kind:ty) |$it:ident| $change:expr;)*) => {
        $(#[$about])*
        impl $owner {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $value: $kind) -> Self {
                    self.$by(|$it| $change)
                }
            )*
        }
    };
}

/// What all that have a lock of their own say of it alike.
macro_rules! setters_of_its_lock {
    ($owner:ident) => {
        impl $owner {
            fn with_lock(self, set: impl FnOnce($crate::Lock) -> $crate::Lock) -> Self {
                Self { lock: set(self.lock), ..self }
            }

            /// [`Lock::caller_in`](crate::Lock::caller_in).
            #[doc(hidden)]
            #[must_use]
            pub fn caller_in(self, task: u64, runs: impl Fn(u64) -> bool) -> Self {
                self.with_lock(|lock| lock.caller_in(task, runs))
            }
        }

        $crate::api::setters::setters! { $owner, with_lock:
            /// Whether the hold is renewed in the background: [`Lock::renew`](crate::Lock::renew).
            renew(renew: bool) |lock| lock.renew(renew);

            /// The longest a hold lasts before it is lost: [`Lock::max_hold`](crate::Lock::max_hold).
            max_hold(span: impl Into<Option<std::time::Duration>>) |lock| lock.max_hold(span);

            /// Whether those that wait are served strictly in the order in which they came: [`Lock::fair`](crate::Lock::fair).
            fair(fair: bool) |lock| lock.fair(fair);

            /// How long the key outlives a hold that was lost: [`Lock::grace`](crate::Lock::grace).
            grace(grace: std::time::Duration) |lock| lock.grace(grace);

            /// The category under which metrics and events count it: [`Lock::category`](crate::Lock::category).
            category(category: impl Into<std::sync::Arc<str>>) |lock| lock.category(category);

            /// The caller's task, as a number: [`Lock::caller`](crate::Lock::caller).
            #[doc(hidden)]
            caller(task: u64) |lock| lock.caller(task);

            /// Several options of the lock at once; an option that is `None` keeps its value.
            #[doc(hidden)]
            settings(settings: $crate::options::LockOverrides) |lock| lock.settings(settings);
        }
    };
}

pub(crate) use {setters, setters_of_its_lock};
