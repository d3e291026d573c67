//! Options of a lock, which a caller sets before it acquires. The client's options fill in the others.

use std::sync::Arc;
use std::time::Duration;

use super::Lock;
use crate::api::setters::setters;
use crate::options::{LockOverrides, Wait};

setters! { Lock, set:
    /// The time to live: how long the key lives on the servers without a renewal, and so how long a dead holder blocks the others.
    ///
    /// Default 10 s; from 10 ms to 24 h, on a quorum at most the client's [`max_ttl`](crate::ClientBuilder::max_ttl). Work may take
    /// longer: a hold is renewed in the background.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-ttl")?;
    /// let hold = client.lock("nightly").ttl(Duration::from_secs(3)).acquire_blocking()?;
    /// assert!(hold.remaining() <= Duration::from_secs(3));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ttl(ttl: Duration) |settings| settings.ttl = Some(ttl);

    /// How long an acquire waits while the lock is busy: a `Duration`, or [`Wait::Forever`].
    ///
    /// Default [`Wait::Forever`]; at most 366 days. Zero is one attempt, which fails with `ACQUIRE_TIMEOUT` if the lock is busy.
    /// [`Lock::try_acquire`] never waits for a busy lock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::{Client, Code, Wait};
    /// # let client = Client::open("memory://docs-wait")?;
    /// let hold = client.lock("nightly").wait(Wait::Forever).acquire_blocking()?;
    /// let second = client.lock("nightly").wait(Duration::from_millis(20)).acquire_blocking();
    /// assert_eq!(second.unwrap_err().code(), Code::AcquireTimeout);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    wait(wait: impl Into<Wait>) |settings| settings.wait = Some(wait.into());

    /// Whether the hold is renewed in the background: first when a third of its ttl has passed.
    ///
    /// Default true. Without renewal the hold is lost after one ttl, unless [`Hold::extend`](crate::Hold::extend) is called in
    /// time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-renew")?;
    /// let lock = client.lock("nightly").ttl(Duration::from_millis(20)).renew(false);
    /// let loss = lock.acquire_blocking()?.lost_blocking(Duration::from_secs(9))?.expect("nothing renews it");
    /// assert_eq!(loss.reason.as_str(), "expired");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    renew(renew: bool) |settings| settings.renew = Some(renew);

    /// The longest a hold lasts, counted from the grant. Neither a renewal nor an extension goes beyond it.
    ///
    /// Default: no bound; from 10 ms to 366 days. Then the hold is lost, with the reason
    /// [`MaxHold`](crate::LossReason::MaxHold). `None` removes a bound that the client has set.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-max-hold")?;
    /// let hold = client.lock("nightly").max_hold(Duration::from_millis(20)).acquire_blocking()?;
    /// let loss = hold.lost_blocking(Duration::from_secs(9))?.expect("it is lost after 20 ms");
    /// assert_eq!(loss.reason.as_str(), "max_hold");
    /// let endless = client.lock("other").max_hold(None).acquire_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    max_hold(span: impl Into<Option<Duration>>) |settings| settings.max_hold = Some(span.into());

    /// Whether callers get the lock strictly in the order in which they came, among all that set this option, in every process.
    ///
    /// Default false: a newcomer may be faster than a waiter, though no waiter starves. With more than one server every operation fails
    /// with `INVALID_ARGUMENT`, because independent servers can't agree on which waiter is first.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-fair")?;
    /// let tickets = client.lock("tickets").fair(true);
    /// let hold = tickets.acquire_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    fair(fair: bool) |settings| settings.fair = Some(fair);

    /// How long the lock stays taken at least, counted from the grant, whatever becomes of the hold.
    ///
    /// A release before that keeps the key, with a value of its own, for the rest; [`Release::kept`](crate::Release::kept) says so. So
    /// a short job that clocks start at slightly different times runs once. Default none; at most 24 h, on a quorum at most the
    /// client's [`max_ttl`](crate::ClientBuilder::max_ttl). A job has none.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-min-hold")?;
    /// let nightly = client.lock("nightly").min_hold(Duration::from_secs(30));
    /// let release = nightly.acquire_blocking()?.release().blocking()?;
    /// assert!(release.kept > Duration::from_secs(20));
    /// assert!(nightly.try_acquire_blocking()?.is_none());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    min_hold(min_hold: Duration) |settings| settings.min_hold = Some(min_hold);

    /// How long the key outlives the hold: a loss keeps others out for this long. A release frees it at once.
    ///
    /// It gives work that was notified of the loss, or hangs, a time to end. It is no guarantee, and for resources that can't compare
    /// [fences](crate::Hold::fence). A worker that dies blocks others for the ttl and the grace. Default none; at most 24 h, on a
    /// quorum with the ttl at most the client's [`max_ttl`](crate::ClientBuilder::max_ttl).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-grace")?;
    /// let lock = client.lock("nightly").ttl(Duration::from_millis(50)).renew(false).grace(Duration::from_secs(30));
    /// let hold = lock.acquire_blocking()?;
    /// assert!(hold.lost_blocking(Duration::from_secs(9))?.is_some());
    /// assert!(lock.try_acquire_blocking()?.is_none());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    grace(grace: Duration) |settings| settings.grace = Some(grace);

    /// The category under which [metrics](crate::Client::metrics) and events count the lock.
    ///
    /// Default: the name up to its first colon, so that `orders:42` is of the category `orders`. From 1 to 128 bytes of UTF-8.
    /// Choose few: a client counts 100 categories, and all further ones together as `other`.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-category")?;
    /// let hold = client.lock("user-4711").category("users").acquire_blocking()?;
    /// assert_eq!(client.metrics().value("locktender_held", &[("category", "users")]), 1.0);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    category(category: impl Into<Arc<str>>) |settings| settings.category = Some(Some(category.into()));

    /// Several options at once; an option that is `None` keeps its value.
    #[doc(hidden)]
    settings(settings: LockOverrides) |current| *current = settings.or(current);
}

impl Lock {
    /// For a lock of [`Client::adoption`](crate::Client::adoption): whether to acquire it like any other if the hold that was handed
    /// over is gone.
    ///
    /// Default false: a ticket that was used before, or came too late, is `LOCK_LOST`. With true the acquire waits for the lock,
    /// and the work of the old hold may be half done. Any other lock ignores this option.
    ///
    /// ```
    /// # use locktender::{Client, Code};
    /// # let client = Client::open("memory://docs-or-acquire")?;
    /// let ticket = client.lock("report").acquire_blocking()?.hand_over()?;
    /// client.adopt_blocking(&ticket)?.release_blocking()?;
    /// assert_eq!(client.adopt_blocking(&ticket).unwrap_err().code(), Code::LockLost); // a ticket is for one use
    /// let hold = client.adoption(&ticket)?.or_acquire(true).acquire_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn or_acquire(self, or_acquire: bool) -> Self {
        self.change(|spec| spec.adopt.iter_mut().for_each(|adopt| adopt.or_acquire = or_acquire))
    }

    /// The caller's task, as a number: the same for one task, and different for others. It lets a task that waits for itself fail.
    ///
    /// Default: none. An acquire that would wait for a lock which the same task holds in [`Lock::with`] fails at once, with
    /// `DEADLOCK`. If the task holds it otherwise the acquire waits, because another task may release it, and after 5 s there is
    /// a warning event. With several numbers the task counts as inside of all of them, and the last one is its own.
    ///
    /// ```
    /// # use locktender::{Client, Code, Error};
    /// # let client = Client::open("memory://docs-caller")?;
    /// let lock = client.lock("orders:42").caller(7);
    /// let again = lock.with_blocking(|_| Ok::<_, Error>(lock.acquire_blocking().unwrap_err()))?;
    /// assert_eq!(again.code(), Code::Deadlock); // at once
    /// # Ok::<(), Error>(())
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn caller(self, task: u64) -> Self {
        self.change(|spec| spec.contexts.push(task))
    }
}
