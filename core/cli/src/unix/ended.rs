//! Ended: the page of `watch --web` is ended by a signal.

use std::io;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::end::Ending;
use super::signals::{ENDS, receive, take};

/// The first of the signals that end this process, unless it was started to ignore them: the process ends by it.
pub(crate) fn ended() -> io::Result<impl Future<Output = Ending>> {
    let (sender, mut received) = mpsc::unbounded_channel();
    let got = move |signal| {
        let _ = sender.send(signal);
    };
    receive(ENDS.into_iter().filter(|signal| take(*signal)), got)?;
    Ok(async move { received.recv().await.unwrap_or(Signal::SIGTERM).into() })
}
