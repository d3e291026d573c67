//! Clock: a server's wall clock that a test can set. `tests/clock.c` explains how.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use std::{env, fs, process};

use crate::checkout::checkout;

/// The time by which a server's clock is ahead.
pub(crate) struct ServerClock {
    path: PathBuf,
    file: File,
    ahead_us: AtomicI64,
}

impl ServerClock {
    /// A correct clock, for the server of that name.
    pub(crate) fn new(server: &str) -> Self {
        // Not in the server's directory, which goes when it restarts empty.
        let path = env::temp_dir().join(format!("{server}.clock"));
        let file = File::options().write(true).create(true).truncate(true).open(&path).unwrap();
        let clock = Self { path, file, ahead_us: AtomicI64::new(0) };
        clock.set(0);
        clock
    }

    /// Sets the clock forward by a time.
    pub(crate) fn jump(&self, forward: Duration) {
        let forward = i64::try_from(forward.as_micros()).unwrap();
        self.set(self.ahead_us.fetch_add(forward, Ordering::SeqCst) + forward);
    }

    /// The time that the clock shows, in microseconds since the epoch.
    pub(crate) fn now_us(&self) -> u64 {
        let now = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
        u64::try_from(now + self.ahead_us.load(Ordering::SeqCst)).unwrap()
    }

    fn set(&self, ahead_us: i64) {
        // One write of eight bytes: the server sees the old number or the new one.
        self.file.write_all_at(&ahead_us.to_ne_bytes(), 0).unwrap();
    }

    /// The words before a command that runs it by this clock.
    pub(crate) fn environment(&self) -> [String; 2] {
        [format!("LD_PRELOAD={}", LIBRARY.display()), format!("LOCKTENDER_CLOCK={}", self.path.display())]
    }
}

impl Drop for ServerClock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Runs one test of this test program again, by a clock that is ahead by a time, and with an environment variable. Gives what it
/// prints.
pub fn run_ahead(forward: Duration, test: &str, (variable, value): (&str, &str)) -> String {
    let clock = ServerClock::new(&format!("locktender-ahead-{}", process::id()));
    clock.jump(forward);
    let mut command = Command::new("env");
    command.args(clock.environment()).arg(format!("{variable}={value}")).arg(env::current_exe().unwrap());
    let output = command.args(["--exact", test, "--nocapture"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The compiled library: made once per checkout and change.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = checkout().join("tests/clock.c");
    let library = checkout().join("target/clock.so");
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if changed(&library) < changed(&source) {
        // Another test process may be at it: each makes its own, and the last one stays.
        let own = library.with_extension(process::id().to_string());
        let mut compiler = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
        let done = compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&own).arg(&source).status();
        assert!(done.is_ok_and(|status| status.success()), "cc can't compile {}", source.display());
        fs::rename(&own, &library).unwrap();
    }
    library
});
