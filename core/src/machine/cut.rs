//! The cut: how much of a text with an unknown writer goes into a reply.

/// A reply shows so many bytes at most of the value of a lock, of a waiter and of a marker. An owner value of this library is
/// shorter. Other programs keep megabytes in keys, and such a value would delay every other answer.
pub const SHOWN_BYTES: usize = 1_024;

/// The text up to [`SHOWN_BYTES`], without half a letter at the end.
pub(super) fn cut(text: &str) -> &str {
    if text.len() <= SHOWN_BYTES {
        return text;
    }
    let end = (0..=SHOWN_BYTES).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::Signature;

    #[test]
    fn a_long_text_ends_behind_a_whole_letter() {
        for (text, bytes) in
            [("", 0), ("short", 5), (&"x".repeat(5_000), 1_024), (&"é".repeat(5_000), 1_024), (&"鍵".repeat(5_000), 1_023)]
        {
            assert_eq!(cut(text), &text[..bytes]);
        }
    }

    #[test]
    fn an_owner_value_of_ours_is_never_cut() {
        // The longest application, host and process. Each letter is escaped, except in the host name, whose letters need no
        // escape.
        let signature = Signature::new(Some(&"\n".repeat(256)), &"h".repeat(64), u32::MAX);
        let owner = signature.owner(u64::MAX, u128::MAX);
        assert_eq!(cut(&owner), &*owner);
    }
}
