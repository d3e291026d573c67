//! Messages: what the command writes to standard error. Standard output belongs to the program that it runs.

use std::io::{self, ErrorKind, Write};

use locktender::Error;
use locktender::host::Language;
use locktender::host::cli::on_one_line;
use serde_json::{Map, Value};

use super::exit;

/// Whether and how something is written.
pub(super) struct Messages {
    pub(super) is_quiet: bool,
    pub(super) is_verbose: bool,
    pub(super) is_json: bool,
}

impl Messages {
    /// Those of a subcommand that only asks: its result is on standard output.
    pub(super) fn for_operators(is_json: bool) -> Self {
        Self { is_quiet: false, is_verbose: false, is_json }
    }

    /// Writes something beside the result.
    pub(super) fn note(&self, text: &str) {
        self.write("info", "NOTE", text, &[]);
    }

    /// Writes why the command does not do what it was asked for.
    pub(super) fn error(&self, code: &str, text: &str) {
        if !self.is_quiet {
            self.write("error", code, text, &[]);
        }
    }

    /// Writes the error that stands in the way.
    pub(super) fn failure(&self, error: &Error) {
        self.error(error.code().as_str(), &in_words(error));
    }

    /// Writes that the output can't be written, and gives the exit code. That of a closed pipe has no reader, and is no error.
    pub(super) fn unwritten(&self, error: &io::Error) -> u8 {
        if error.kind() == ErrorKind::BrokenPipe {
            return 0;
        }
        self.error("CANNOT_WRITE", &format!("can't write the output: {error}"));
        exit::UNWRITTEN
    }

    /// Writes that something is not as good as it could be.
    pub(super) fn warning(&self, code: &str, text: &str) {
        if !self.is_quiet {
            self.write("warning", code, text, &[]);
        }
    }

    /// Writes the progress, for a person who would see nothing else.
    pub(super) fn for_a_person(&self, text: &str) {
        if !self.is_quiet && !self.is_json {
            self.note(text);
        }
    }

    /// Writes the progress, if that is wanted.
    pub(super) fn progress(&self, event: &str, text: &str, fields: &[(&str, Value)]) {
        if self.is_verbose {
            self.write("info", event, text, fields);
        }
    }

    fn write(&self, level: &str, code: &str, text: &str, fields: &[(&str, Value)]) {
        let line = if self.is_json {
            let own = [("level", level.into()), ("code", code.into()), ("message", text.into())];
            let fields = own.into_iter().chain(fields.iter().cloned());
            Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>()).to_string()
        } else {
            format!("locktender: {}", on_one_line(text))
        };
        // One write, so that lines of several processes don't mix. Who closed it doesn't read it.
        let _ = io::stderr().write_all((line + "\n").as_bytes());
    }
}

/// An error in the words of this command.
pub(super) fn in_words(error: &Error) -> String {
    error.in_words_of(Language::Shell)
}
