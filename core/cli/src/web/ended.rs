//! Ended: the page is ended by a signal, on Windows by Ctrl-C.

use std::io;

#[cfg(unix)]
use nix::sys::signal::Signal;
#[cfg(unix)]
use tokio::sync::mpsc;

/// Ends this process as the signal does; else gives the exit code.
#[cfg(unix)]
pub(super) use crate::end::Ending as By;
#[cfg(windows)]
use crate::exit;
#[cfg(unix)]
use crate::signals::{ENDS, receive, take};

/// The first of the signals that end this process, unless it was started to ignore them.
#[cfg(unix)]
pub(super) fn ended() -> io::Result<impl Future<Output = By>> {
    let (sender, mut received) = mpsc::unbounded_channel();
    let got = move |signal| {
        let _ = sender.send(signal);
    };
    receive(ENDS.into_iter().filter(|signal| take(*signal)), got)?;
    Ok(async move { received.recv().await.unwrap_or(Signal::SIGTERM).into() })
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
