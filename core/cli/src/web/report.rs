//! Report: the page as a file. It replaces an older one only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::page;

/// Where the report goes.
#[derive(Debug)]
pub(super) struct Report {
    path: PathBuf,
    /// Beside it, so that it can be renamed.
    temporary: PathBuf,
}

impl Report {
    /// Finds out whether the report can be written, so that an hour of looking does not end with a name that is wrong. It changes nothing.
    pub(super) fn check(path: &Path, events: Option<&Path>) -> io::Result<Self> {
        let mut path = path.to_owned();
        if let Ok(known) = fs::metadata(&path) {
            if !known.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            let events = events.map(|events| if events == Path::new("-") { Path::new("/dev/stdin") } else { events });
            if events.is_some_and(|events| is_same(events, &path)) {
                return Err(io::Error::other("it is the file of the events"));
            }
            // The file behind a link is replaced, and one that is write-protected is not.
            path = fs::canonicalize(&path)?;
            OpenOptions::new().write(true).open(&path)?;
        }
        path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let report = Self { temporary: path.with_file_name(format!(".locktender-{}", page::random())), path };
        report.create()?;
        fs::remove_file(&report.temporary)?;
        Ok(report)
    }

    /// Only its owner may read it: it has the names of locks, processes and servers.
    fn create(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        options.mode(0o600);
        options.write(true).create_new(true).open(&self.temporary)
    }

    pub(super) fn write(&self, data: &str) -> io::Result<()> {
        let write = |mut file: File| {
            file.write_all(page::report(data).text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&self.temporary, &self.path)
        };
        write(self.create()?).inspect_err(|_| {
            let _ = fs::remove_file(&self.temporary);
        })
    }
}

/// Whether both are names of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    let file = |path| fs::metadata(path).ok().map(|known| (known.dev(), known.ino()));
    #[cfg(not(unix))]
    let file = |path| fs::canonicalize(path).ok();
    file(one).is_some_and(|known| file(other) == Some(known))
}
