//! Safe names: a lock's name made of any text.

use ring::digest::{SHA256, digest};

use super::MAX_NAME_BYTES;

/// The length of the readable part in the name of a text that is too long, in bytes.
const HEAD: usize = 200;

/// A lock's name for any text: an empty one, one that is too long, one with `{`, `}`, NUL or `:~lt:`. Different texts get
/// different names. Every language gives a text the same name.
///
/// A character that a name can't have is written as `%XX`, and so is `%`. If the name of a text would be too long, it consists of
/// the text's beginning and the SHA-256 of the whole text. Use this function for all texts of a kind or for none:
/// `safe_name("50%")` is not the lock `50%`.
///
/// ```
/// use locktender::{Client, safe_name};
///
/// let client = Client::open("memory://docs-safe-name")?;
/// let user = "smith}{x";
/// let hold = client.lock(safe_name(user)).acquire_blocking()?;
/// assert_eq!(hold.name(), "smith%7D%7Bx");
/// assert_eq!(safe_name("orders:42"), "orders:42");
/// # Ok::<(), locktender::Error>(())
/// ```
#[must_use]
pub fn safe_name(text: &str) -> String {
    if text.is_empty() {
        return "%empty".to_owned();
    }
    let name = escaped(text);
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let mut short = head(&name).to_owned() + "%sha256:";
    for byte in digest(&SHA256, text.as_bytes()).as_ref() {
        short.push_str(&format!("{byte:02x}"));
    }
    short
}

fn escaped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '%' | '{' | '}' | '\0' => name.push_str(&format!("%{:02X}", u32::from(letter))),
            other => name.push(other),
        }
    }
    name.replace("~lt:", "%7Elt:")
}

/// The beginning of an escaped text, never cut within a character or within a `%XX`.
fn head(name: &str) -> &str {
    let end = (0..=HEAD.min(name.len())).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
    let half = name[..end].char_indices().rev().take(2).find(|(_, letter)| *letter == '%');
    &name[..half.map_or(end, |(at, _)| at)]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::name::{Keys, Kind};

    fn assert_a_name(text: &str, name: &str) {
        for prefix in ["", "prod:", "{shop}:"] {
            let made = Keys::new(Kind::Exclusive, prefix, name, true);
            assert!(made.is_ok(), "{text:?} became {name:?}: {made:?}");
        }
    }

    #[test]
    fn every_text_has_a_name_of_its_own() {
        let pieces = ["", "a", "%", "%25", "{", "}", "\0", ":~lt:", "~lt", ":", "é", "%empty", "%sha256:"];
        let mut names = HashMap::new();
        for number in 0..pieces.len().pow(4) {
            let text: String = (0..4u32).map(|at| pieces[number / pieces.len().pow(at) % pieces.len()]).collect();
            let name = safe_name(&text);
            assert_a_name(&text, &name);
            let first = names.entry(name).or_insert_with(|| text.clone());
            assert_eq!(*first, text, "the name of both");
        }
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_differs_from_all_others() {
        let mut names = HashMap::new();
        for (piece, offset) in [("x", 0), ("é", 0), ("é", 1), ("🔒", 0), ("🔒", 3), ("}", 0), ("}", 1), ("}", 2), ("%", 1)]
        {
            for count in [600, 1_024, 1_025, 10_000] {
                let text = "a".repeat(offset) + &piece.repeat(count);
                let name = safe_name(&text);
                assert!(name.len() <= MAX_NAME_BYTES && name.starts_with(&text[..offset]), "{name}");
                assert_a_name(&text, &name);
                assert_eq!(names.insert(name, text), None);
            }
        }
        assert_eq!(safe_name(&"x".repeat(1_024)), "x".repeat(1_024));
        assert_eq!(safe_name(&"}".repeat(2_000)).split("%sha256:").next(), Some("%7D".repeat(66).as_str()));
    }
}
