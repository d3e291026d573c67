//! Thread waker: the end of the I/O thread's sleep.
//!
//! On Linux it is a timer of the kernel, which any thread can bring forward without waking the I/O thread. Most operations set an
//! alarm that is of no use by the time it is due. If each of them woke the I/O thread, that thread would take the processor from
//! the operation. The kernel's timer also counts the time in suspend.

use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Tick;

/// The longest sleep by the runtime's timer: its clock stands still while the machine is suspended, the boot clock doesn't.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// The time at which an alarm that is due `at` rings. All alarms of a millisecond ring together, so that their requests leave
/// together.
pub(crate) fn rounded(at: Tick) -> Tick {
    at.as_micros().checked_next_multiple_of(1_000).map_or(Tick::NEVER, Tick::from_micros)
}

/// The end of a sleep. Only one task sleeps.
pub(crate) enum ThreadWaker {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Kernel(kernel::Timer),
    /// A notice that wakes the task, which then sleeps again for less time.
    Runtime(Notify),
}

impl ThreadWaker {
    /// A waker of the current runtime: the caller is in the context of the runtime whose task sleeps.
    pub(crate) fn new() -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Ok(timer) = kernel::Timer::new() {
            return Self::Kernel(timer);
        }
        Self::Runtime(Notify::new())
    }

    /// Sets the waker to ring at `at`, or earlier if it can't sleep for so long. Gives the time that was set.
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

    /// Makes the waker ring at `at`, before the time to which it was set.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        expect(unused_variables, reason = "the task that sleeps reads the new time itself")
    )]
    pub(crate) fn bring_forward(&self, at: Tick) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Kernel(timer) => timer.set(at),
            Self::Runtime(earlier) => earlier.notify_one(),
        }
    }

    /// Sleeps until the waker rings, and sometimes less. `until` is the time to which it was set.
    pub(crate) async fn rings(&self, until: Tick) {
        match self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Kernel(timer) => timer.rings().await,
            // The runtime's timer rounds up, so it is late by less than a millisecond.
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
            // Deprecated for types that don't own their descriptor. The replacement is unsafe.
            #[allow(deprecated)]
            let descriptor = AsyncFd::new(descriptor)?;
            Ok(Self { descriptor, of: Process::current() })
        }

        pub(super) fn set(&self, at: Tick) {
            // A forked child shares the timer with its parent. The timer is the parent's.
            if !self.of.is_current() {
                return;
            }
            // Zero stops the timer, which is right for `NEVER`.
            let boot = at.by_the_machine().as_micros();
            let micros = if at == Tick::NEVER { 0 } else { i64::try_from(boot).unwrap_or(i64::MAX).max(1) };
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let at = Timespec { tv_sec: micros / 1_000_000, tv_nsec: micros % 1_000_000 * 1_000 };
            let spec = Itimerspec { it_interval: zero, it_value: at };
            // It fails only for wrong arguments.
            let _ = timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &spec);
        }

        pub(super) async fn rings(&self) {
            // It fails only when the runtime ends.
            let Ok(mut ready) = self.descriptor.readable().await else { return std::future::pending().await };
            // A timer that was set again since it rang has nothing to read. Then the sleep ends without a ring.
            let _ = rustix::io::read(&self.descriptor, &mut [0_u8; 8]);
            ready.clear_ready();
        }
    }
}
