//! Private server: a server on a unix socket, which ends with this process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What is looked for on PATH.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];

/// The server ends when its standard input does: also if this process is killed.
const WITH_INPUT: &str =
    r#"command -v "$0" >/dev/null || exit 127; "$0" "$@" >/dev/null 2>&1 </dev/null & cat >/dev/null; kill $!; wait"#;

/// How long a server may take to start.
const STARTS: Duration = Duration::from_secs(5);

pub(crate) struct PrivateServer {
    shell: Child,
    directory: PathBuf,
}

impl PrivateServer {
    /// Starts the first server that is on PATH; `None` if none is, or none starts.
    pub(crate) fn start() -> Option<Self> {
        PROGRAMS.iter().find_map(|program| Self::started(program).ok().flatten())
    }

    fn started(program: &str) -> io::Result<Option<Self>> {
        let directory = std::env::temp_dir().join(format!("locktender-demo-{:016x}", fastrand::u64(..)));
        DirBuilder::new().mode(0o700).create(&directory)?;
        let mut command = Command::new("sh");
        command.args(["-c", WITH_INPUT, program, "--port", "0", "--save", "", "--unixsocket"]);
        command.arg(socket(&directory)).arg("--dir").arg(&directory);
        // Ctrl-C ends the fight first.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let shell = command.spawn().inspect_err(|_| drop(fs::remove_dir(&directory)))?;
        let mut server = Self { shell, directory };
        Ok(server.answers().then_some(server))
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", socket(&self.directory).display())
    }

    fn answers(&mut self) -> bool {
        let until = Instant::now() + STARTS;
        while Instant::now() < until && matches!(self.shell.try_wait(), Ok(None)) {
            if UnixStream::connect(socket(&self.directory)).is_ok() {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("server.sock")
}
