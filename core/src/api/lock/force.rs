//! Force: an operator ends a hold that is another's.

use std::sync::Arc;

use super::Lock;
use crate::error::Error;
use crate::event::{EventKind, LockEvent};
use crate::io::call::Call;
use crate::machine::SHOWN_BYTES;
use crate::name::{Keys, Kind};
use crate::op::holder::{Gate, gate_of};
use crate::op::{LockOp, Op, Verb};
use crate::owner::OwnerFields;
use crate::protocol::{LockInfo, force_released};
use crate::session::Session;
use crate::session::ask_all::AskAll;
use crate::wait::is_foreign;

impl Lock {
    /// Ends the hold of the lock, whatever process has it: for an operator, when a holder hangs and still renews. Gives what was ended, or
    /// `None` if there was nothing to end.
    ///
    /// With `owner` only the hold with this owner value is ended: the one that a person has seen and decided about. A hold that began
    /// later stays. Without it all holds are ended, if several hold the lock. A value that no locktender wrote may belong to another program, which uses the key for something else: it is ended only
    /// if `owner` is that value, and otherwise it is a `KEY_CONFLICT`.
    ///
    /// **The holder continues until it notices**: its next renewal is refused, at most a third of its ttl later, and its hold is then
    /// lost with the reason [`Missing`](crate::LossReason::Missing), or [`Taken`](crate::LossReason::Taken). Until then two programs may work at the same time. Only a resource
    /// that compares fences is safe from that. The next waiter is notified at once. There is an event of kind `force_released`, with
    /// the owner value in `holder`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-force-release").unwrap();
    /// let hold = client.lock("nightly").acquire().await?;
    /// let ended = client.lock("nightly").force_release(None).await?.expect("it was held");
    /// assert_eq!(ended.owner, hold.owner());
    /// assert!(client.lock("nightly").try_acquire().await?.is_some());
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Once it has begun it continues.
    ///
    /// # Errors
    /// `UNAVAILABLE` (the hold may have ended nevertheless), `DENIED`, `KEY_CONFLICT`, `INVALID_ARGUMENT`, `CLOSED`.
    pub fn force_release(&self, owner: Option<&str>) -> Call<Option<LockInfo>> {
        let (lock, owner) = (self.clone(), owner.map(str::to_owned));
        Call::new(move |responder| {
            let ((session, keys), responder) = responder.unless_failed(lock.keys())?;
            let handle = session.runtime().handle().clone();
            handle.spawn(async move { responder.respond(lock.force_released(&session, keys, owner).await) });
            None
        })
    }

    /// [`Lock::force_release`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-force-release-blocking")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// assert!(client.lock("nightly").force_release_blocking(Some("another"))?.is_none());
    /// assert!(client.lock("nightly").force_release_blocking(Some(hold.owner()))?.is_some());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lock::force_release`].
    pub fn force_release_blocking(&self, owner: Option<&str>) -> Result<Option<LockInfo>, Error> {
        self.force_release(owner).blocking()
    }

    async fn force_released(
        self,
        session: &Arc<Session>,
        keys: Arc<Keys>,
        owner: Option<String>,
    ) -> Result<Option<LockInfo>, Error> {
        let Some(mut seen) = self.inspect().await? else { return Ok(None) };
        let (several, unnamed) = (several_of(&seen), seen.owner.clone());
        if let Some(owner) = &owner {
            // No hold has an empty owner value.
            let is_none = if several.is_some() { owner.is_empty() } else { *owner != seen.owner };
            if is_none {
                return Ok(None);
            }
            (seen.owner, seen.fields) = (owner.clone(), OwnerFields::parse(owner));
            (seen.holder_count, seen.holders) = (1, vec![owner.clone()]);
        }
        if owner.is_none() && may_be_no_lock(&seen.owner) {
            return Err(Error::foreign_value(self.name(), &seen.owner));
        }
        if seen.owner.len() >= SHOWN_BYTES {
            return Err(Error::key_conflict(self.name(), &format!("string of {SHOWN_BYTES} bytes or more")));
        }
        let name = self.name().to_owned();
        let verb = Verb::Release { leave: None, kept_ms: 0 };
        let op = match several {
            // Without an owner all of them are ended, and so is a gate of which nobody is known.
            Some(kind) => {
                let by = owner.filter(|owner| gate_of(owner).is_none() || *owner != unnamed).unwrap_or_default();
                LockOp { keys: Arc::new(keys.of_kind(kind)), by: by.into(), verb }
            }
            None => LockOp { keys: Arc::clone(&keys), by: seen.owner.as_str().into(), verb },
        };
        let op = Op::Lock(op);
        let asked = Arc::clone(session);
        let is_ended: Call<bool> =
            Call::started(move |responder| AskAll::about_lock(&asked, name, op, force_released, responder));
        if !is_ended.await? {
            return Ok(None);
        }
        let (holder, holder_fence) = (Some(seen.owner.clone()), seen.fence);
        session.emit(&LockEvent { holder, holder_fence, ..LockEvent::of(EventKind::ForceReleased, &keys) });
        Ok(Some(seen))
    }
}

/// The kind of lock that several hold at once, if they do. Nobody may be known of them.
fn several_of(seen: &LockInfo) -> Option<Kind> {
    let is_permit = |gate| matches!(gate, Gate::Permits(_));
    let is_permit = match gate_of(&seen.owner) {
        Some(gate) => is_permit(gate),
        None if seen.is_shared => seen.available.is_some(),
        None => return None,
    };
    Some(if is_permit { Kind::Semaphore(1) } else { Kind::Read })
}

/// The beginnings of values that several holders have, or that later versions write.
const RESERVED: [&str; 2] = ["read ", "permits "];

/// Whether no locktender wrote this value of a key.
pub fn may_be_no_lock(value: &str) -> bool {
    is_foreign(value) && !RESERVED.iter().any(|beginning| value.starts_with(beginning))
}
