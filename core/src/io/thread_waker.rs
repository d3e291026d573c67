//! Thread waker: the end of the I/O thread's sleep.
//!
//! On Linux it is a timer of the kernel, which any thread can bring forward without waking the sleeper. Most operations set an
//! alarm that nobody needs by the time it is due. A thread that were woken for each would take the processor from the very
//! operation. The kernel's timer counts suspend, too.

use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Tick;

/// The longest sleep by the runtime's timer: its clock stands still while the machine is suspended, ours doesn't.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// When an alarm rings that is due `at`: with all others of the same millisecond, so that what they send leaves together.
pub(crate) fn rounded(at: Tick) -> Tick {
    at.as_micros().checked_next_multiple_of(1_000).map_or(Tick::NEVER, Tick::from_micros)
}

/// What ends the sleep. Only one task sleeps.
pub(crate) enum ThreadWaker {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Kernel(kernel::Timer),
    /// The sleeper is woken, and sleeps less.
    Runtime(Notify),
}

impl ThreadWaker {
    /// Called in the context of the runtime whose task sleeps.
    pub(crate) fn new() -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Ok(timer) = kernel::Timer::new() {
            return Self::Kernel(timer);
        }
        Self::Runtime(Notify::new())
    }

    /// Sets it to ring at `at`, or earlier if it can't sleep for so long; gives when.
    pub(crate) fn set(&self, at: Tick, now: Tick) -> Tick {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Kernel(timer) => {
                timer.set(at);
                at
            }
            Self::Runtime(_) if at == Tick::NEVER => at,
            Self::Runtime(_) => at.min(now.after(LONGEST_SLEEP)),
        }
    }

    /// Has it ring at `at`, before the time it was set to.
    pub(crate) fn bring_forward(&self, at: Tick) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Kernel(timer) => timer.set(at),
            Self::Runtime(earlier) => earlier.notify_one(),
        }
    }

    /// Sleeps until it rings, or for no reason. `until` is what it was set to.
    pub(crate) async fn rings(&self, until: Tick) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Kernel(timer) => timer.rings().await,
            // The runtime's timer rounds up: that is late by less than a millisecond.
            Self::Runtime(earlier) => tokio::select! {
                biased;
                () = earlier.notified() => (),
                () = tokio::time::sleep(until.since(Tick::now())), if until != Tick::NEVER => (),
            },
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
    use rustix::time::{timerfd_create, timerfd_settime};
    use tokio::io::unix::AsyncFd;

    use crate::clock::Tick;
    use crate::process::Process;

    /// A timer on the boot clock.
    pub(crate) struct Timer {
        descriptor: AsyncFd<OwnedFd>,
        of: Process,
    }

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let descriptor = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            // Deprecated for what isn't the owner of its descriptor; what replaces it is unsafe.
            #[allow(deprecated)]
            let descriptor = AsyncFd::new(descriptor)?;
            Ok(Self { descriptor, of: Process::current() })
        }

        pub(super) fn set(&self, at: Tick) {
            // A forked child shares the timer with its parent, whose it is.
            if !self.of.is_current() {
                return;
            }
            // Zero would stop it, as is meant for never.
            let boot = at.by_the_machine().as_micros();
            let micros = if at == Tick::NEVER { 0 } else { i64::try_from(boot).unwrap_or(i64::MAX).max(1) };
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let at = Timespec { tv_sec: micros / 1_000_000, tv_nsec: micros % 1_000_000 * 1_000 };
            let spec = Itimerspec { it_interval: zero, it_value: at };
            // It fails for nothing but wrong arguments.
            let _ = timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &spec);
        }

        pub(super) async fn rings(&self) {
            // It fails with the runtime alone.
            let Ok(mut ready) = self.descriptor.readable().await else { return std::future::pending().await };
            // Set again since it rang it has nothing to read: then the sleep ends for no reason.
            let _ = rustix::io::read(&self.descriptor, &mut [0_u8; 8]);
            ready.clear_ready();
        }
    }
}
