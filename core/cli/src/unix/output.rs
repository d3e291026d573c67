//! Output: what a command writes. It is passed on as it comes. The beginning of the standard output is kept as the result of a job, and the
//! end of the standard error as the reason of a failure.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, PipeReader, PipeWriter, Read, stderr};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::thread;

use locktender::host::cli::{MOST_ERROR, MOST_RESULT};
use locktender::host::sync::Mutex;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::io::ioctl_fionread;

use super::written::{pass_on, standard_output};

/// How much is read at a time.
const PIECE: usize = 16 * 1024;

/// The output of a command that runs, which threads read.
pub(super) struct Output {
    kept: Arc<Mutex<Kept>>,
    /// Closing it notifies the threads that the command has ended.
    continues: Option<PipeWriter>,
}

/// What is kept of an output, and whether all of it could be passed on.
#[derive(Default)]
pub(super) struct Kept {
    /// The beginning of the standard output.
    bytes: Vec<u8>,
    /// The end of the standard error.
    errors: Vec<u8>,
    reading: usize,
    pub(super) unwritten: Option<io::Error>,
}

/// What a command gets as its standard output and its standard error.
pub(super) struct Ends {
    pub(super) output: Stdio,
    pub(super) errors: Stdio,
}

impl Ends {
    /// Those of this process.
    pub(super) fn inherited() -> Self {
        Self { output: Stdio::inherit(), errors: Stdio::inherit() }
    }
}

impl Output {
    /// Reads until the command has ended, and calls `done` then. A terminal stays the command's standard error: many programs write
    /// to it in another way than to a pipe.
    pub(super) fn read(done: impl Fn() + Send + Sync + 'static) -> io::Result<(Self, Ends)> {
        let (ended, continues) = io::pipe()?;
        let (kept, done) = (Arc::<Mutex<Kept>>::default(), Arc::new(done));
        let mut ends = Ends::inherited();
        let read = |which, passed_to: io::Result<File>| {
            let (from, to) = io::pipe()?;
            let (passed_to, kept, done) = (passed_to?, Arc::clone(&kept), Arc::clone(&done));
            let reader = Reader { which, from, ended: ended.try_clone()?, passed_to, kept };
            reader.kept.lock().reading += 1;
            thread::Builder::new().name("locktender-output".to_owned()).spawn(move || {
                let kept = reader.read();
                kept.lock().reading -= 1;
                done();
            })?;
            Ok::<_, io::Error>(to.into())
        };
        if !stderr().is_terminal() {
            ends.errors = read(Which::Errors, stderr().as_fd().try_clone_to_owned().map(File::from))?;
        }
        ends.output = read(Which::Output, standard_output())?;
        Ok((Self { kept, continues: Some(continues) }, ends))
    }

    /// The command has ended. What it wrote is in the pipes, and what others that have them write from now on is not its output.
    pub(super) fn end(&mut self) {
        self.continues = None;
    }

    /// Whether all was read and passed on.
    pub(super) fn is_complete(&self) -> bool {
        self.kept.lock().reading == 0
    }

    /// What was kept.
    pub(super) fn kept(&self) -> Kept {
        mem::take(&mut self.kept.lock())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Output,
    Errors,
}

struct Reader {
    which: Which,
    from: PipeReader,
    ended: PipeReader,
    passed_to: File,
    kept: Arc<Mutex<Kept>>,
}

impl Reader {
    fn read(mut self) -> Arc<Mutex<Kept>> {
        let mut passes = true;
        let mut left = None;
        loop {
            let most = match left {
                None if wait_for(self.from.as_fd(), self.ended.as_fd()) => PIECE,
                None => {
                    left = ioctl_fionread(&self.from).ok().and_then(|left| usize::try_from(left).ok());
                    left.get_or_insert(0);
                    continue;
                }
                Some(left) => PIECE.min(left),
            };
            let piece = self.take(most);
            if piece.is_empty() {
                return self.kept;
            }
            left = left.map(|left| left - piece.len());
            let mut kept = self.kept.lock();
            kept.keep(self.which, &piece);
            drop(kept);
            // The command continues: its result is wanted.
            if passes && let Err(error) = pass_on(&mut self.passed_to, &piece) {
                passes = false;
                if self.which == Which::Output {
                    self.kept.lock().unwritten = Some(error);
                }
            }
        }
    }

    /// Takes at most so much out of the pipe. Nothing is left if that is nothing.
    fn take(&mut self, most: usize) -> Vec<u8> {
        let mut piece = vec![0; most];
        let taken = loop {
            match self.from.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                result => break result.unwrap_or(0),
            }
        };
        piece.truncate(taken);
        piece
    }
}

/// Waits until there is something to read (true), or the command has ended (false).
fn wait_for(from: BorrowedFd<'_>, ended: BorrowedFd<'_>) -> bool {
    loop {
        let mut watched = [from, ended].map(|file| PollFd::new(file, PollFlags::POLLIN));
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) => return !watched[1].any().unwrap_or(true),
            Err(Errno::EINTR) => (),
            Err(_) => return false,
        }
    }
}

/// A result: an output as one JSON string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) json: String,
    pub(super) loss: Option<TextLoss>,
}

/// Why a result is not all of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLoss {
    /// It was too long: this many bytes of the text are kept.
    Cut(usize),
    /// It has bytes that are not UTF-8.
    NotText,
}

impl Kept {
    fn keep(&mut self, which: Which, piece: &[u8]) {
        match which {
            Which::Output => {
                let room = MOST_RESULT.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&piece[..room.min(piece.len())]);
            }
            Which::Errors => {
                self.errors.extend_from_slice(piece);
                self.errors.drain(..self.errors.len().saturating_sub(MOST_ERROR));
            }
        }
    }

    pub(super) fn text(&self) -> Text {
        text(&self.bytes, MOST_RESULT)
    }

    /// The reason of a failure: how the command ended, and what it wrote last.
    pub(super) fn reason(&self, how: &str) -> String {
        reason(how, &self.errors, MOST_ERROR)
    }
}

/// A text of at most `most` bytes, with whole lines if that is possible.
fn reason(how: &str, errors: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(errors);
    let text = text.trim();
    let room = most.saturating_sub(how.len() + ": ".len());
    let begin = (text.len().saturating_sub(room)..text.len()).find(|at| text.is_char_boundary(*at));
    let Some(begin) = begin else { return how.to_owned() };
    let line = if begin == 0 { None } else { text[begin..].split_once('\n').map(|(_, lines)| lines) };
    format!("{how}: {}", line.unwrap_or(&text[begin..]).trim_start())
}

/// The output as a JSON string of at most `most` bytes.
fn text(bytes: &[u8], most: usize) -> Text {
    let text = String::from_utf8_lossy(bytes);
    let json = quoted(&text);
    if json.len() <= most {
        let loss = (text.as_bytes() != bytes).then_some(TextLoss::NotText);
        return Text { json, loss };
    }
    let mut left = most.saturating_sub(2);
    let end = text.char_indices().find_map(|(at, letter)| {
        let length = quoted(letter.encode_utf8(&mut [0; 4])).len() - 2;
        let rest = left.checked_sub(length);
        left = rest.unwrap_or(0);
        rest.is_none().then_some(at)
    });
    let end = end.unwrap_or(text.len());
    Text { json: quoted(&text[..end]), loss: Some(TextLoss::Cut(end)) }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_result_is_a_json_string_of_whole_letters() {
        use TextLoss::{Cut, NotText};
        for (output, most, json, loss) in [
            (&b"made\n"[..], 8, r#""made\n""#, None),
            (b"", 8, r#""""#, None),
            (b"0123456", 8, r#""012345""#, Some(Cut(6))),
            ("12345é".as_bytes(), 8, r#""12345""#, Some(Cut(5))),
            // What is escaped needs more, and an escape is not cut in two.
            (b"1234\n6", 8, r#""1234\n""#, Some(Cut(5))),
            (b"12345\n", 8, r#""12345""#, Some(Cut(5))),
            (b"\0\0", 8, r#""\u0000""#, Some(Cut(1))),
            (b"a\xffb", 8, "\"a\u{fffd}b\"", Some(NotText)),
            // The beginning of a letter, of which the rest was not kept.
            (b"01234\xc3", 8, r#""01234""#, Some(Cut(5))),
        ] {
            assert_eq!(text(output, most), Text { json: json.to_owned(), loss }, "{output:?}");
        }
    }

    #[test]
    fn a_reason_has_the_last_whole_lines() {
        for (errors, most, expected) in [
            (&b""[..], 100, "exit code 3"),
            (b" \n", 100, "exit code 3"),
            (b"no space\nleft\n", 100, "exit code 3: no space\nleft"),
            (b"first line\nsecond", 25, "exit code 3: second"),
            (b"a line that is too long", 20, "exit code 3: oo long"),
            ("éééé".as_bytes(), 18, "exit code 3: éé"),
            (b"a\xffb", 100, "exit code 3: a\u{fffd}b"),
            (b"x", 3, "exit code 3"),
        ] {
            assert_eq!(reason("exit code 3", errors, most), expected);
        }
    }

    #[test]
    fn what_is_kept_fits_however_much_is_written() {
        let (from, mut to) = io::pipe().unwrap();
        let (ended, continues) = io::pipe().unwrap();
        let kept = Arc::<Mutex<Kept>>::default();
        let passed_to = File::options().write(true).open("/dev/null").unwrap();
        let reader = Reader { which: Which::Output, from, ended, passed_to, kept: Arc::clone(&kept) };
        let thread = thread::spawn(move || reader.read());
        for _ in 0..40 {
            to.write_all(&[b'x'; 10_000]).unwrap();
        }
        // The pipe stays open, as one that the command left to another process.
        drop(continues);
        thread.join().unwrap();
        let kept = mem::take(&mut *kept.lock());
        assert_eq!(kept.bytes.len(), MOST_RESULT);
        assert_eq!(kept.text().json.len(), MOST_RESULT);
        drop(to);
    }
}
