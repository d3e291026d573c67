//! Ended: the page is ended by a signal, on Windows by Ctrl-C.

use std::io;
#[cfg(unix)]
use std::thread;

#[cfg(unix)]
use nix::sys::signal::Signal;
#[cfg(unix)]
use signal_hook::iterator::Signals;
#[cfg(unix)]
use tokio::sync::oneshot;

#[cfg(unix)]
use crate::end::Ending;
#[cfg(windows)]
use crate::exit;
#[cfg(unix)]
use crate::signals::{ENDS, take};

/// By which signal.
#[cfg(unix)]
pub(super) struct By(Signal);

#[cfg(unix)]
impl By {
    /// Ends this process as the signal does; else gives the exit code.
    pub(super) fn carry_out(self) -> u8 {
        Ending::from(self.0).carry_out()
    }
}

/// The first of the signals that end this process, unless it was started to ignore them.
#[cfg(unix)]
pub(super) fn ended() -> io::Result<impl Future<Output = By>> {
    let (sender, receiver) = oneshot::channel();
    let caught = ENDS.into_iter().filter(|signal| take(*signal));
    let mut signals = Signals::new(caught.map(|signal| signal as i32))?;
    thread::Builder::new().name("locktender-signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().find_map(|number| Signal::try_from(number).ok()) {
            let _ = sender.send(signal);
        }
    })?;
    Ok(async move { By(receiver.await.unwrap_or(Signal::SIGTERM)) })
}

/// By Ctrl-C.
#[cfg(windows)]
pub(super) struct By;

#[cfg(windows)]
impl By {
    pub(super) fn carry_out(self) -> u8 {
        const CTRL_C: i32 = 2;
        exit::signalled(CTRL_C)
    }
}

#[cfg(windows)]
pub(super) fn ended() -> io::Result<impl Future<Output = By>> {
    let mut typed = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        typed.recv().await;
        By
    })
}
