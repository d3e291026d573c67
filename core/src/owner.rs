//! The owner value: unique, and readable by a person in `redis-cli`.
//!
//! `app=billing host=web-3 pid=4711 at=2026-11-21T02:22:10.123Z id=<uuid v7>`

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::entropy;
use crate::stack_text::StackText;

/// A signature: the parts of an owner value that stay the same for one client.
#[derive(Clone, Debug)]
pub struct Signature {
    prefix: String,
    /// Random bytes, other ones for each value. With the caller's randomness they make a value unique.
    salt: fn() -> u64,
}

impl Signature {
    /// A signature of the given application, host and process. Its values depend only on their arguments.
    #[must_use]
    pub fn new(app: Option<&str>, host: &str, pid: u32) -> Self {
        let mut prefix = String::new();
        if let Some(app) = app.filter(|app| !app.is_empty()) {
            let _ = write!(prefix, "app={} ", escape(app));
        }
        let _ = write!(prefix, "host={} pid={pid} ", escape(host));
        Self { prefix, salt: || 0 }
    }

    /// This process's signature. Each of its values contains randomness of the operating system. Suppose a snapshot of the
    /// process is restored twice. Both copies have the same state of the generator, and would make the same value. A server takes
    /// a repeated value for a repetition of the same acquire.
    #[must_use]
    pub fn of_this_process(app: Option<&str>) -> Self {
        Self { salt: entropy::draw, ..Self::new(app, &host_name(), std::process::id()) }
    }

    /// The length of its longest owner value, in bytes, whatever the process's id will be after a fork.
    pub(crate) fn longest(&self) -> usize {
        let pid = self.prefix.rfind("pid=").map_or(0, |at| self.prefix.len() - at);
        self.prefix.len() - pid + LONGEST_END.len()
    }

    /// The fields that stay the same.
    #[must_use]
    pub fn who(&self) -> &str {
        self.prefix.trim_end()
    }

    /// A new owner value made at `wall_us`; `random` makes it unique.
    #[must_use]
    pub fn owner(&self, wall_us: u64, random: u128) -> Arc<str> {
        let [_, _, _, _, _, _, entropy @ ..] = (random ^ u128::from((self.salt)())).to_be_bytes();
        let id = uuid::Builder::from_unix_timestamp_millis(wall_us / 1_000, &entropy).into_uuid();
        let at = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_micros(wall_us.min(MAX_WALL_US)));
        let mut owner = StackText::default();
        let _ = write!(owner, "{}at={at} id={id}", self.prefix);
        owner.share()
    }
}

/// The longest end of an owner value: all that neither the application nor the host decides.
const LONGEST_END: &str = "pid=4294967295 at=9999-12-31T23:59:59.999Z id=01a1fbe9-40cb-7c52-9d0e-1f6d2c3b4a59";

/// The last microsecond of the year 9999: the latest that the date format can write.
const MAX_WALL_US: u64 = 253_402_300_799_999_999;

/// The fields of an owner value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerFields {
    /// The application, if the holder named one.
    pub app: Option<String>,
    /// The holder's host name.
    pub host: Option<String>,
    /// The holder's process id.
    pub pid: Option<u32>,
    /// The time at which the holder asked, by its own clock.
    pub at: Option<SystemTime>,
    /// The unique id of the acquisition.
    pub id: Option<String>,
}

impl OwnerFields {
    /// Reads an owner value; `None` for a value of another library.
    #[must_use]
    pub fn parse(owner: &str) -> Option<Self> {
        let fields = Fields::parse(owner);
        let text = |key: &str| fields.get(key);
        text("id")?;
        Some(Self {
            app: text("app"),
            host: text("host"),
            pid: text("pid").and_then(|pid| pid.parse().ok()),
            at: text("at").and_then(|at| humantime::parse_rfc3339(&at).ok()),
            id: text("id"),
        })
    }
}

/// Space-separated `key=value` fields with escaped values, the form of owner values and hand-over strings.
#[derive(Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// The fields of a text. What is none is skipped.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let field = |part: &str| part.split_once('=').map(|(key, value)| (key.to_owned(), unescape(value)));
        Self(text.split(' ').filter_map(field).collect())
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }
}

/// Replaces each character that would break the `key=value` form, or a terminal, by `%XX` of its UTF-8 bytes.
pub(crate) fn escape(value: &str) -> Cow<'_, str> {
    let plain = |c: char| !(c.is_whitespace() || c.is_control() || c == '%' || c == '=');
    if value.chars().all(plain) {
        return Cow::Borrowed(value);
    }
    let mut escaped = String::with_capacity(value.len() + 8);
    for c in value.chars() {
        if plain(c) {
            escaped.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    Cow::Owned(escaped)
}

fn unescape(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| value.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()));
        if let Some(Some(byte)) = code {
            plain.push(byte);
            at += 3;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The name of this machine.
#[must_use]
pub fn host_name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_value_is_readable_and_reads_back() {
        let signature = Signature::new(Some("billing"), "web-3", 4711);
        let owner = signature.owner(1_795_227_730_123_456, 7);
        assert!(owner.starts_with("app=billing host=web-3 pid=4711 at=2026-11-21T02:22:10.123Z id="), "{owner}");
        let fields = OwnerFields::parse(&owner).unwrap();
        assert_eq!((fields.app.as_deref(), fields.pid), (Some("billing"), Some(4711)));
        assert_eq!(uuid::Uuid::parse_str(&fields.id.unwrap()).unwrap().get_version_num(), 7);
    }

    #[test]
    fn two_owners_of_one_instant_differ() {
        let signature = Signature::new(None, "h", 1);
        assert_ne!(signature.owner(1, 1), signature.owner(1, 2));
    }

    #[test]
    fn a_restored_process_repeats_no_owner() {
        let signature = Signature::of_this_process(None);
        let restored = signature.clone();
        assert_ne!(signature.owner(1, 1), restored.owner(1, 1), "the same instant, and the same state of the generator");
    }

    #[test]
    fn the_longest_owner_value_of_a_signature_is_known() {
        for (app, host, bytes) in
            [("", "h", 89), (&*"a".repeat(256), &*"h".repeat(64), 413), (&*" ".repeat(256), &*"=".repeat(64), 1_053)]
        {
            let signature = Signature::new(Some(app), host, u32::MAX);
            assert_eq!((signature.longest(), signature.owner(u64::MAX, u128::MAX).len()), (bytes, bytes));
            assert_eq!(Signature::new(Some(app), host, 1).longest(), bytes, "the process may fork");
        }
    }

    #[test]
    fn values_are_escaped_and_come_back() {
        for value in ["plain", "a b", "50%", "k=v", "line\nbreak", "naïve 鍵", "%41", ""] {
            let escaped = escape(value);
            assert!(!escaped.contains([' ', '=', '\n']), "{escaped}");
            assert_eq!(unescape(&escaped), value);
        }
        assert_eq!(unescape("100%"), "100%");
        assert_eq!(unescape("%zz%é"), "%zz%é");
    }

    #[test]
    fn a_value_of_another_library_has_no_fields() {
        for foreign in ["", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "host=only", "\u{fffd}"] {
            assert_eq!(OwnerFields::parse(foreign), None);
        }
    }
}
