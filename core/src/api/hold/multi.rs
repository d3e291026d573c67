//! The hold of several locks, for Rust programs.

use std::fmt;
use std::time::Duration;

use super::Hold;
use crate::error::{Error, Loss};
use crate::io::call::Call;
use crate::protocol::Release;

/// A hold of several locks: all of them are ours until they are released, or the first of them is lost. The others stay taken then until the
/// hold is released or dropped, but are no longer renewed: the work may still run.
///
/// It is renewed, extended and dropped as a [`Hold`].
pub struct MultiHold(Hold);

impl MultiHold {
    pub(in crate::api) fn new(hold: Hold) -> Self {
        Self(hold)
    }

    /// The hold for a binding, whose handles are those of one lock.
    #[doc(hidden)]
    #[must_use]
    pub fn hold(&self) -> &Hold {
        &self.0
    }

    /// The names of the locks, in the order in which they were given.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-names")?;
    /// assert_eq!(client.multi_lock(["a", "b"]).acquire_blocking()?.names(), ["a", "b"]);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.0.names()
    }

    /// The owner value: the value of each key on the server begins with it.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-owner")?;
    /// let hold = client.multi_lock(["a", "b"]).acquire_blocking()?;
    /// assert_eq!(client.lock("b").inspect_blocking()?.expect("it is held").owner, hold.owner());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn owner(&self) -> &str {
        self.0.owner()
    }

    /// Each name with its fencing token: larger than that of every earlier hold of this name ([`Hold::fence`]).
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-fences")?;
    /// let before = client.lock("b").with_blocking(|hold| Ok::<_, locktender::Error>(hold.fence()))?;
    /// let hold = client.multi_lock(["a", "b"]).acquire_blocking()?;
    /// let (name, fence) = hold.fences()[1];
    /// assert!(name == "b" && fence > before);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn fences(&self) -> Vec<(&str, u64)> {
        self.0.fences()
    }

    /// Whether all locks are held now ([`Hold::is_valid`]). No I/O.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-is-valid")?;
    /// assert!(client.multi_lock(["a", "b"]).acquire_blocking()?.is_valid());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// How long all locks are guaranteed to be held if nothing renews them ([`Hold::remaining`]). No I/O.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-remaining")?;
    /// assert!(client.multi_lock(["a", "b"]).acquire_blocking()?.remaining().as_secs() >= 9);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Fails unless all locks are held now ([`Hold::check`]). No I/O.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-check")?;
    /// client.multi_lock(["a", "b"]).acquire_blocking()?.check()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Hold::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.0.check()
    }

    /// Extends the hold of each lock now, so that at least `ttl` remains ([`Hold::extend`]).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-multi-hold-extend")?;
    /// let hold = client.multi_lock(["a", "b"]).acquire_blocking()?;
    /// hold.extend(Duration::from_secs(60)).blocking()?;
    /// assert!(hold.remaining() > Duration::from_secs(58));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// As [`Hold::extend`].
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn extend(&self, ttl: Duration) -> Call<()> {
        self.0.extend(ttl)
    }

    /// Renews the hold of each lock now ([`Hold::renew_now`]).
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-renew-now")?;
    /// client.multi_lock(["a", "b"]).acquire_blocking()?.renew_now().blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// As [`Hold::extend`].
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn renew_now(&self) -> Call<()> {
        self.0.renew_now()
    }

    /// Extends the hold of each lock now by `more` ([`Hold::extend_by`]).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-multi-hold-extend-by")?;
    /// let hold = client.multi_lock(["a", "b"]).acquire_blocking()?;
    /// hold.extend_by(Duration::from_secs(60)).blocking()?;
    /// assert!(hold.remaining() > Duration::from_secs(65));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// As [`Hold::extend`].
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn extend_by(&self, more: Duration) -> Call<()> {
        self.0.extend_by(more)
    }

    /// Releases all locks, from the last to the first. Of several outcomes it returns the worst ([`Hold::release`]).
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-hold-release")?;
    /// let hold = client.multi_lock(["a", "b"]).acquire_blocking()?;
    /// assert_eq!(hold.release().blocking()?.outcome, locktender::Outcome::Released);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// As [`Hold::release`].
    ///
    /// # Errors
    /// As [`Hold::release`].
    pub fn release(&self) -> Call<Release> {
        self.0.release()
    }

    /// Waits for the loss of the first lock, for a `select!` together with the work ([`Hold::lost`]).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-multi-hold-lost").unwrap();
    /// let hold = client.multi_lock(["a", "b"]).acquire().await?;
    /// client.lock("b").force_release(None).await?;
    /// hold.extend(std::time::Duration::from_secs(20)).await.unwrap_err();
    /// assert_eq!(hold.lost().await?.reason.as_str(), "missing");
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call changes nothing.
    ///
    /// # Errors
    /// `FORKED` in a forked child.
    pub fn lost(&self) -> Call<Loss> {
        self.0.lost()
    }

    /// Registers `lost`, which is called once if any of the locks is lost, and at once if one is lost already ([`Hold::on_lost`]).
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// # let client = locktender::Client::open("memory://docs-multi-hold-on-lost")?;
    /// let hold = client.multi_lock(["a", "b"]).max_hold(Duration::from_millis(20)).acquire_blocking()?;
    /// let (sender, stop) = mpsc::channel();
    /// hold.on_lost(move |loss| sender.send(loss).unwrap());
    /// assert_eq!(stop.recv().unwrap().reason.as_str(), "max_hold");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn on_lost(&self, lost: impl FnOnce(Loss) + Send + 'static) {
        self.0.on_lost(lost);
    }
}

impl fmt::Debug for MultiHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiHold")
            .field("names", &self.names())
            .field("owner", &self.owner())
            .field("fences", &self.fences())
            .field("valid", &self.is_valid())
            .finish()
    }
}
