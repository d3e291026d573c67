//! Feed: the lines of the events' file. One that ends in the file may grow, and one that ends in a pipe has ended.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::history::Shared;
use super::line::now;

/// A longer line is no event.
const LONGEST: usize = 64 * 1024;

/// How often a file is looked at that may have grown.
const LOOK: Duration = Duration::from_millis(200);

/// Reads the events of the file, or of standard input, in a thread. It never waits for readers of the page: who writes must not.
pub(super) fn read(path: &Path, history: Shared) -> io::Result<()> {
    let is_stdin = path == Path::new("-");
    let kind = if is_stdin { None } else { Some(fs::metadata(path)?.file_type()) };
    if kind.is_some_and(|kind| kind.is_dir()) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let may_grow = kind.is_some_and(|kind| kind.is_file());
    let grown = may_grow.then(|| File::open(path)).transpose()?;
    let path = path.to_owned();
    let work = move || {
        let take = |line: Option<&[u8]>| match line {
            Some(line) => history.lock().line(line, now()),
            None => history.lock().skip(),
        };
        let wait = || {
            if may_grow {
                thread::sleep(LOOK);
            }
            may_grow
        };
        let read = |from: Box<dyn Read>| lines(BufReader::new(from), take, wait);
        match grown {
            Some(file) => read(Box::new(Tail(file))),
            None if is_stdin => read(Box::new(io::stdin())),
            // A named pipe without a writer is waited for here, where nothing else waits.
            None => File::open(path).map_or_else(drop, |pipe| read(Box::new(pipe))),
        }
        history.lock().feed_ended(now());
    };
    thread::Builder::new().name("locktender-events".to_owned()).spawn(work)?;
    Ok(())
}

/// A file that may grow. It is read from its start again when it was cut, as by the copytruncate of logrotate.
struct Tail(File);

impl Read for Tail {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        if read > 0 || self.0.metadata()?.len() >= self.0.stream_position()? {
            return Ok(read);
        }
        self.0.rewind()?;
        // The line that was cut ends here.
        into[..1].copy_from_slice(b"\n");
        Ok(1)
    }
}

/// Takes each line, or `None` for one that is too long. `wait` waits for more, unless there can't be more.
fn lines(mut from: impl BufRead, mut take: impl FnMut(Option<&[u8]>), mut wait: impl FnMut() -> bool) {
    let mut line = Vec::new();
    let mut is_too_long = false;
    let mut end = |line: &mut Vec<u8>, is_too_long: &mut bool| {
        if *is_too_long {
            take(None);
        } else if !line.trim_ascii().is_empty() {
            take(Some(line));
        }
        line.clear();
        *is_too_long = false;
    };
    loop {
        let piece = match from.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => &[],
        };
        if piece.is_empty() {
            if wait() {
                continue;
            }
            return end(&mut line, &mut is_too_long);
        }
        let until = piece.iter().position(|byte| *byte == b'\n');
        let part = &piece[..until.unwrap_or(piece.len())];
        if line.len() + part.len() > LONGEST {
            is_too_long = true;
        } else {
            line.extend_from_slice(part);
        }
        let read = part.len() + usize::from(until.is_some());
        from.consume(read);
        if until.is_some() {
            end(&mut line, &mut is_too_long);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &[u8], at_once: usize) -> Vec<Option<String>> {
        let mut taken = Vec::new();
        let take = |line: Option<&[u8]>| taken.push(line.map(|line| String::from_utf8_lossy(line).into_owned()));
        lines(BufReader::with_capacity(at_once, text), take, || false);
        taken
    }

    #[test]
    fn lines_come_whole_and_too_long_ones_not_at_all() {
        let long = "x".repeat(LONGEST + 1);
        let text = format!("one\n\n \r\n{long}\ntwo\r\n{}\nthree", &long[1..]);
        for at_once in [1, 7, 4_096] {
            let found = taken(text.as_bytes(), at_once);
            let expected = [Some("one"), None, Some("two\r"), Some(&long[1..]), Some("three")];
            assert_eq!(found, expected.map(|line| line.map(str::to_owned)), "{at_once}");
        }
    }

    /// Nothing at first, and more behind it: a file that grows.
    struct Growing(Vec<&'static [u8]>);

    impl io::Read for Growing {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.pop().unwrap_or_default();
            into[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn a_file_that_was_cut_is_read_from_its_start() {
        let path = std::env::temp_dir().join(format!("locktender-feed-{}", std::process::id()));
        fs::write(&path, "one\ntwo, and ha").unwrap();
        let mut tail = Tail(File::open(&path).unwrap());
        let mut read = || {
            let mut text = String::new();
            tail.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!((read(), read()), ("one\ntwo, and ha".to_owned(), String::new()));
        fs::write(&path, "three\n").unwrap();
        assert_eq!((read(), read()), ("\nthree\n".to_owned(), String::new()));
        fs::write(&path, "").unwrap();
        assert_eq!((read(), read()), ("\n".to_owned(), String::new()));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_line_that_is_half_written_is_waited_for() {
        let (mut taken, mut waits) = (Vec::new(), 0);
        let wait = || {
            waits += 1;
            waits < 2
        };
        lines(BufReader::new(Growing(vec![b" and half\n", b"", b"half"])), |line| taken.push(line.map(<[u8]>::to_vec)), wait);
        assert_eq!((taken, waits), (vec![Some(b"half and half".to_vec())], 2));
    }
}
