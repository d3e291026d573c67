//! Wording: sentences in the words of each language, where Python counts seconds and Node milliseconds; and the words of enums.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// An enum with a word for each of its variants, one row each, and if it asks for that a list of them all, and `Display` by its word.
macro_rules! words {
    (@ [] $($variant:ident)*) => {};
    (@ [$all:vis ALL] $($variant:ident)*) => {
        /// All of them.
        $all const ALL: &[Self] = &[$(Self::$variant),*];
    };
    (
        $(#[$about:meta])* $vis:vis enum $name:ident $(, $all:vis ALL)?;
        $(#[$of_word:meta])* fn as_str $(, impl $shown:ident)?;
        $($(#[$of:meta])* $variant:ident = $word:literal,)*
    ) => {
        $(#[$about])*
        $vis enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            words!(@ [$($all ALL)?] $($variant)*);

            $(#[$of_word])*
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        $(impl std::fmt::$shown for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        })?
    };
}
pub(crate) use words;

/// The language of the user who reads a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Times are `Duration`s.
    Rust,
    /// Times are seconds.
    Python,
    /// Times are milliseconds, and names are in camel case.
    Node,
    /// What the command `locktender` says: options begin with `--`, and functions are subcommands.
    Shell,
}

/// The options that are times: in Node their names end in `Ms`.
const TIMES: [&str; 15] = [
    "ttl",
    "wait",
    "max_hold",
    "min_hold",
    "grace",
    "connect_timeout",
    "response_timeout",
    "unavailable_after",
    "max_ttl",
    "replicas_timeout",
    "retry_delay",
    "retry_in",
    "retention",
    "every",
    "max_lateness",
];

/// The options of the command that have the names of the core's.
const ARGUMENTS: [&str; 12] = [
    "kill_after",
    "ttl",
    "max_hold",
    "min_hold",
    "fair",
    "retry_delay",
    "max_attempts",
    "retention",
    "every",
    "max_lateness",
    "owner",
    "at",
];

impl Language {
    /// An option, an argument or a function of the core as this language spells it.
    ///
    /// ```
    /// use locktender::host::Language;
    /// assert_eq!(Language::Node.spell("max_ttl"), "maxTtlMs");
    /// assert_eq!(Language::Python.spell("max_ttl"), "max_ttl");
    /// ```
    #[must_use]
    pub fn spell(self, name: &str) -> Cow<'_, str> {
        match (self, name) {
            (Self::Python, "forever") => "math.inf".into(),
            (Self::Rust, "forever") => "Wait::Forever".into(),
            (Self::Node, "forever") => "Infinity".into(),
            (Self::Shell, "forever") => "no -w".into(),
            (Self::Shell, "wait") => "-w".into(),
            (Self::Shell, "url") => "--server URL".into(),
            (Self::Shell, "units") => "seconds".into(),
            (Self::Shell, "reset") => "locktender reset".into(),
            (Self::Shell, "initialize_quorum") => "locktender quorum init".into(),
            (Self::Shell, "safe_name") => "a hash, as of sha256sum,".into(),
            (Self::Shell, name) if ARGUMENTS.contains(&name) => format!("--{}", name.replace('_', "-")).into(),
            (Self::Rust, "units") => "Durations".into(),
            (Self::Python, "units") => "seconds".into(),
            (Self::Node, "units") => "milliseconds".into(),
            (Self::Node, "since_1970") => "milliseconds since 1970".into(),
            (_, "since_1970") => "seconds since 1970".into(),
            (Self::Rust, "lost") => "Hold::on_lost()".into(),
            (Self::Python, "lost") => "on_lost".into(),
            (Self::Node, "lost") => "hold.signal".into(),
            (Self::Node, "by") => "byMs".into(),
            (Self::Rust, "around") => "Lock::with()".into(),
            (Self::Python, "around") => "with client.lock(name):".into(),
            (Self::Node, "around") => "client.withLock(name, options, body)".into(),
            (Self::Rust, "client_of_url") => "Client::open(url)".into(),
            (Self::Python, "client_of_url") => "Client(url)".into(),
            (Self::Node, "client_of_url") => "new Client(url)".into(),
            (Self::Node, name) if TIMES.contains(&name) => (camel(name) + "Ms").into(),
            (Self::Node, name) => camel(name).into(),
            (_, name) => name.into(),
        }
    }

    /// A time in this language's unit, for a reader.
    #[must_use]
    pub fn time(self, span: Duration) -> String {
        let plain = match self {
            // A `Duration` shows none as 0ns.
            Self::Rust | Self::Shell if span.is_zero() => "0s".to_owned(),
            Self::Rust | Self::Shell => format!("{span:?}"),
            Self::Python => format!("{} s", decimal(span, 9)),
            Self::Node => format!("{} ms", decimal(span, 6)),
        };
        match span.as_secs() {
            seconds @ 86_400.. if seconds % 86_400 == 0 && seconds > 86_400 => format!("{plain} ({} days)", seconds / 86_400),
            seconds @ 3_600.. if seconds % 3_600 == 0 => format!("{plain} ({} h)", seconds / 3_600),
            _ => plain,
        }
    }
}

/// The time in a unit of 10^`digits` nanoseconds. Exactly: a float shows 2.78 s as 2.7800000000000002 s.
fn decimal(span: Duration, digits: usize) -> String {
    let nanos = format!("{:0width$}", span.as_nanos(), width = digits + 1);
    let (whole, fraction) = nanos.split_at(nanos.len() - digits);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

fn camel(name: &str) -> String {
    let mut upper = false;
    let letters = name.chars().filter_map(|letter| {
        let raised = if upper { letter.to_ascii_uppercase() } else { letter };
        upper = letter == '_';
        (!upper).then_some(raised)
    });
    letters.collect()
}

/// A name without case, `_`, `-` and the unit at its end: `ttl_ms`, `ttlMs` and `TTL` become one word.
pub(crate) fn plain(name: &str) -> String {
    let mut letters = name.to_lowercase();
    letters.retain(|letter| letter.is_alphanumeric());
    for unit in ["milliseconds", "millis", "seconds", "secs", "sec", "ms"] {
        if let Some(rest) = letters.strip_suffix(unit).filter(|rest| rest.len() > 1) {
            return rest.to_owned();
        }
    }
    letters
}

/// A sentence with placeholders: `{}` takes the next part, and `{ttl}` is a name that each language spells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    template: Cow<'static, str>,
    parts: Vec<Part>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Words that are the same in all languages.
    Words(String),
    /// A time, shown in the language's unit.
    Time(Duration),
    /// An option, an argument or a function, spelled by the language.
    Name(Cow<'static, str>),
    /// A text inside of the text.
    Text(Text),
}

impl Text {
    /// A sentence: `{}` takes the next of `parts`, and each language spells `{ttl}`.
    #[must_use]
    pub fn new(template: &'static str, parts: impl Into<Vec<Part>>) -> Self {
        Self { template: template.into(), parts: parts.into() }
    }

    /// The text in the words of `language`.
    #[must_use]
    pub fn in_words_of(&self, language: Language) -> String {
        let mut worded = String::new();
        let (mut rest, mut parts) = (&*self.template, self.parts.iter());
        while let Some((before, hole)) = rest.split_once('{') {
            let (name, after) = hole.split_once('}').unwrap_or((hole, ""));
            worded.push_str(before);
            match (name, parts.len()) {
                ("", 1..) => worded.extend(parts.next().map(|part| part.in_words_of(language))),
                _ => worded.push_str(&language.spell(name)),
            }
            // A subcommand has no parentheses.
            rest = if language == Language::Shell { after.strip_prefix("()").unwrap_or(after) } else { after };
        }
        worded + rest
    }
}

impl Part {
    /// A measured time: parts of a millisecond help no reader.
    pub(crate) fn whole_ms(span: Duration) -> Self {
        Self::Time(Duration::from_millis(crate::clock::millis(span)))
    }

    fn in_words_of(&self, language: Language) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Time(span) => language.time(*span),
            Self::Name(name) => language.spell(name).into_owned(),
            Self::Text(text) => text.in_words_of(language),
        }
    }
}

/// Words without placeholders: a brace in them has no meaning.
impl From<String> for Text {
    fn from(words: String) -> Self {
        Self::new("{}", [Part::Words(words)])
    }
}

/// Words without placeholders.
impl From<&str> for Text {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

/// The text in Rust's words.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words_of(Language::Rust))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_reads_its_own_names_and_units() {
        let parts = [Part::Time(Duration::from_millis(1_500)), Part::Words("{wait}".into())];
        let text = Text::new("{ttl} is {}, {} stays; call {initialize_quorum}()", parts);
        for (language, worded) in [
            (Language::Rust, "ttl is 1.5s, {wait} stays; call initialize_quorum()"),
            (Language::Python, "ttl is 1.5 s, {wait} stays; call initialize_quorum()"),
            (Language::Node, "ttlMs is 1500 ms, {wait} stays; call initializeQuorum()"),
            (Language::Shell, "--ttl is 1.5s, {wait} stays; call locktender quorum init"),
        ] {
            assert_eq!(text.in_words_of(language), worded);
        }
    }

    #[test]
    fn long_times_are_shown_twice() {
        assert_eq!(Language::Python.time(Duration::from_secs(86_400)), "86400 s (24 h)");
        assert_eq!(Language::Node.time(Duration::from_secs(366 * 86_400)), "31622400000 ms (366 days)");
        assert_eq!(Language::Node.time(Duration::from_millis(10)), "10 ms");
        assert_eq!(Language::Rust.time(Duration::ZERO), "0s");
    }

    #[test]
    fn a_time_is_shown_as_exactly_as_it_is() {
        for (micros, seconds, millis) in [
            (2_780_000, "2.78 s", "2780 ms"),
            (2_970_000, "2.97 s", "2970 ms"),
            (500, "0.0005 s", "0.5 ms"),
            (10_000_000, "10 s", "10000 ms"),
            (0, "0 s", "0 ms"),
        ] {
            let span = Duration::from_micros(micros);
            assert_eq!((Language::Python.time(span), Language::Node.time(span)), (seconds.to_owned(), millis.to_owned()));
        }
    }

    #[test]
    fn words_of_a_user_are_no_template() {
        for words in ["{ttl}", "{", "}{", "{}", "a{b}c"] {
            assert_eq!(Text::from(words.to_owned()).in_words_of(Language::Node), words);
        }
    }
}
