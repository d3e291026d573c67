//! Replies: the end of each reply in the bytes of a socket, and the fields of the replies to a lock's scripts.
//!
//! A reply that isn't a number, a string, a short line or a flat list is left to the crate's parser, as soon as all of it is there.
//! With that parser alone a reply would take as long as the whole rest of an operation. The parser clears eight kilobytes for each
//! read, and looks at each byte through a dozen layers.

use redis::{RedisResult, Value};

use crate::server::redis::commands::extent::{Bounds, Extent, LONGEST, VALUES};

/// The least room for one read.
const ROOM: usize = 8 * 1024;

/// The longest line that is read without the crate's parser.
const LONGEST_WORD: usize = 16;

/// The bytes that were read and not yet taken apart: whole replies and the beginning of one.
#[derive(Default)]
pub(crate) struct Replies {
    /// The bytes: read up to `end`, taken apart up to `begin`.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// The progress through the first of the replies.
    extent: Extent,
    bounds: Bounds,
}

impl Replies {
    /// The map of a cluster comes next.
    pub(crate) fn expect_map(&mut self) {
        self.bounds = Bounds::Map;
        self.extent = Extent::within(Bounds::Map);
    }

    /// `count` bytes were put into the [room](Replies::room).
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// The room for the bytes that are read next: never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == 0 && self.buffer.len() > 8 * ROOM {
            // A long reply needed this much room.
            self.buffer = Vec::new();
        }
        if self.buffer.len() - self.end < ROOM {
            // Twice the bytes that are there, whatever length a reply announces: that length may be false.
            self.buffer.resize(2 * self.end + ROOM, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Whether all bytes that were read are taken apart.
    pub(crate) fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// The next reply, if all of it is there. After an error there are no more replies.
    pub(crate) fn next(&mut self) -> Option<RedisResult<Value>> {
        if self.is_empty() {
            return None;
        }
        let unread = &self.buffer[self.begin..self.end];
        // Tried with the first piece only: most replies come in one.
        let whole = self.extent.is_new().then(|| short(unread)).flatten();
        let (value, length) = match whole {
            Some((value, length)) => (Ok(value), length),
            None => match self.extent.measure(unread) {
                Ok(None) => return None,
                Ok(Some(length)) => (redis::parse_redis_value(&unread[..length]), length),
                Err(no_reply) => (Err(no_reply.into()), 0),
            },
        };
        self.extent = Extent::within(self.bounds);
        self.begin += length;
        Some(value)
    }
}

/// The text of a value, if it is one.
pub(crate) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

/// A value that stands alone, or a list of such values, and its length in bytes. `None` if the bytes are not all there, or are another
/// value.
fn short(bytes: &[u8]) -> Option<(Value, usize)> {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let Some(rest) = bytes.strip_prefix(b"*") else { return bare(bytes) };
    let (count, mut at) = integer(rest)?;
    at += 1;
    let count = usize::try_from(count).ok().filter(|count| *count < VALUES)?;
    // A script's reply has no more fields. A longer list reserves no room in advance.
    let mut fields = Vec::with_capacity(count.min(8));
    for _ in 0..count {
        let (value, length) = bare(bytes.get(at..)?)?;
        fields.push(value);
        at += length;
    }
    Some((Value::Array(fields), at))
}

/// A number, a string, a short line or null, and its length in bytes.
fn bare(bytes: &[u8]) -> Option<(Value, usize)> {
    let (kind, rest) = bytes.split_first()?;
    let (value, length) = match kind {
        b'_' => (rest.starts_with(b"\r\n").then_some(Value::Nil)?, 2),
        b'+' => line(rest)?,
        b':' => integer(rest).map(|(number, length)| (Value::Int(number), length))?,
        b'$' => string(rest)?,
        _ => return None,
    };
    Some((value, 1 + length))
}

/// The string behind its length, or the null that has the length -1.
fn string(bytes: &[u8]) -> Option<(Value, usize)> {
    let (count, begin) = integer(bytes)?;
    if count == -1 {
        return Some((Value::Nil, begin));
    }
    let end = begin.checked_add(usize::try_from(count).ok()?)?;
    let text = bytes.get(begin..end)?;
    (bytes.get(end..end + 2)? == b"\r\n").then(|| (Value::BulkString(text.to_vec()), end + 2))
}

/// The word up to the end of the line, and the number of bytes with that end. `None` for a longer or another text than the words that a
/// server answers with.
fn line(bytes: &[u8]) -> Option<(Value, usize)> {
    let end = bytes.iter().take(LONGEST_WORD + 1).position(|byte| !byte.is_ascii_alphanumeric())?;
    let word = std::str::from_utf8(&bytes[..end]).ok()?;
    let value = if word == "OK" { Value::Okay } else { Value::SimpleString(word.to_owned()) };
    (bytes.get(end..end + 2)? == b"\r\n").then_some((value, end + 2))
}

/// The number up to the end of the line, and the number of bytes with that end. `None` for more digits than any time or fence has.
fn integer(bytes: &[u8]) -> Option<(i64, usize)> {
    let negative = bytes.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let (first, mut number) = (at, 0_i64);
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    // With so few digits no sum has overflowed.
    let fits = at > first && at - first <= 18;
    (fits && bytes.get(at..at + 2)? == b"\r\n").then_some((if negative { -number } else { number }, at + 2))
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
