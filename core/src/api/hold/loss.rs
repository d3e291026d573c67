//! Loss: how a holder learns that its hold was lost.

use super::Hold;
use super::several::watch_each;
use crate::error::Loss;
use crate::io::call::{Call, Responder};
use crate::io::canceller::Canceller;

impl Hold {
    /// Waits for the loss of the lock, for a `select!` together with the work. Never ends if the lock is released or handed over before;
    /// [`Hold::ended`] does.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-lost").unwrap();
    /// let hold = client.lock("report").ttl(Duration::from_millis(20)).renew(false).acquire().await?;
    /// assert_eq!(hold.lost().await?.reason.as_str(), "expired"); // nothing renews it
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
        let report = |responder: Responder<Loss>, lost| match lost {
            Some((_, loss)) => responder.respond(Ok(loss)),
            None => responder.never(),
        };
        self.watching(report)
    }

    /// Waits for the end of the hold: gives the loss, or `None` once the lock was released or handed over.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-ended").unwrap();
    /// let hold = client.lock("report").acquire().await?;
    /// hold.release().await?;
    /// assert_eq!(hold.ended().await?, None);
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call changes nothing.
    ///
    /// # Errors
    /// `FORKED` in a forked child.
    #[doc(hidden)]
    pub fn ended(&self) -> Call<Option<Loss>> {
        self.watching(|responder, lost| responder.respond(Ok(lost.map(|(_, loss)| loss))))
    }

    /// As [`Hold::ended`], with the name of the lock: a hold of several is lost with the first of them.
    #[doc(hidden)]
    pub fn ended_of(&self) -> Call<Option<(String, Loss)>> {
        self.watching(|responder, lost| responder.respond(Ok(lost)))
    }

    fn watching<T: Send + 'static>(&self, report: fn(Responder<T>, Option<(String, Loss)>)) -> Call<T> {
        if let Err(error) = self.own() {
            return Call::refused(error);
        }
        let actors = self.actors();
        Call::new(move |responder| {
            let forget = watch_each(&actors, move |lost| report(responder, lost));
            Some(Canceller::by(move |_| forget()))
        })
    }

    /// Registers `lost`, which is called once if the lock is lost, and at once if it is lost already.
    ///
    /// It is called on any thread, and must not block. A panic in it ends there, with an event of kind `warning`.
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// # let client = locktender::Client::open("memory://docs-on-lost")?;
    /// let hold = client.lock("report").max_hold(Duration::from_millis(20)).acquire_blocking()?;
    /// let (sender, stop) = mpsc::channel();
    /// hold.on_lost(move |loss| sender.send(loss).unwrap());
    /// assert_eq!(stop.recv().unwrap().reason.as_str(), "max_hold");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn on_lost(&self, lost: impl FnOnce(Loss) + Send + 'static) {
        self.on_lost_of(|_, loss| lost(loss));
    }

    /// As [`Hold::on_lost`], with the name of the lock: a hold of several is lost with the first of them.
    #[doc(hidden)]
    pub fn on_lost_of(&self, lost: impl FnOnce(&str, Loss) + Send + 'static) {
        if !self.is_inherited() {
            _ = watch_each(&self.actors(), |first| {
                if let Some((name, loss)) = first {
                    lost(&name, loss);
                }
            });
        }
    }
}
