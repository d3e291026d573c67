//! Drivers: whether a tokio runtime has timers and I/O.

use std::time::Duration;

use crate::event::callback::caught;

/// Whether a runtime has timers and I/O. One that was built without them panics where it needs them, and can't be asked otherwise. So it
/// is tried once, where nothing is lost.
pub(crate) fn has_drivers(runtime: &tokio::runtime::Handle) -> bool {
    // There a panic would end the process: the program that chose this runtime has answered the question.
    if cfg!(panic = "abort") {
        return true;
    }
    let tried = caught(|| {
        let _entered = runtime.enter();
        drop(tokio::time::sleep(Duration::ZERO));
        let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        tokio::net::UdpSocket::from_std(socket).map(drop)
    });
    matches!(tried, Ok(Ok(())))
}
