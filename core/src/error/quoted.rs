//! Quotes: texts of other programs, made safe for a message.
//!
//! Any program that may write to the server decides a key's value and a server's error. In a log these texts must neither look
//! like our lines nor move a terminal's cursor, and they must not fill it. Fields of errors and events contain the whole text
//! unchanged.

use std::fmt::Write as _;

/// The number of characters of a text that are shown.
const SHOWN: usize = 200;

/// A text on one line, without characters that a terminal obeys, and cut if it is long.
pub fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(SHOWN));
    let mut rest = text.chars();
    for c in rest.by_ref().take(SHOWN) {
        if is_plain(c) {
            shown.push(c);
        } else {
            // Writing to a string can't fail.
            let _ = write!(shown, "{}", c.escape_default());
        }
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

/// A text of any length on one line.
pub fn on_one_line(text: &str) -> String {
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() }).collect()
}

/// Whether a character is shown unchanged: no control character, no end of a line, no change of the writing direction.
pub fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_the_rest_stays() {
        for (text, shown) in [
            ("host=web-3 pid=7", "host=web-3 pid=7"),
            ("größer 鍵 \u{fffd}", "größer 鍵 \u{fffd}"),
            ("a\nERROR:locktender:b\r\n", "a\\nERROR:locktender:b\\r\\n"),
            ("\u{1b}[2Jx\u{7}\0", "\\u{1b}[2Jx\\u{7}\\u{0}"),
            ("\u{9b}31m\u{202e}abc\u{2028}", "\\u{9b}31m\\u{202e}abc\\u{2028}"),
        ] {
            assert_eq!((quoted(text).as_str(), on_one_line(text).as_str()), (shown, shown));
        }
    }

    #[test]
    fn long_texts_are_cut_and_those_of_just_the_length_are_not() {
        assert_eq!(quoted(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(quoted(&"é".repeat(201)), "é".repeat(200) + "…");
        assert_eq!(quoted(&"\n".repeat(1 << 20)).len(), 400 + "…".len());
        assert_eq!(on_one_line(&"é\n".repeat(300)), "é\\n".repeat(300));
    }
}
