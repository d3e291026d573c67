//! Stack text: a short text that is put together without an allocation, before it is shared.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

/// A text that lies on the stack as long as it is short.
#[derive(Default)]
pub(crate) struct StackText(SmallVec<[u8; 192]>);

impl StackText {
    /// The text, to be shared.
    pub(crate) fn share(&self) -> Arc<str> {
        // Only whole texts were added.
        std::str::from_utf8(&self.0).unwrap_or_default().into()
    }
}

impl fmt::Write for StackText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn short_and_long_texts_are_what_was_written() {
        for length in [0, 1, 95, 96, 97, 1_000] {
            let mut text = StackText::default();
            write!(text, "{}{}", "ä".repeat(length), length).unwrap();
            assert_eq!(*text.share(), *format!("{}{length}", "ä".repeat(length)));
        }
    }
}
