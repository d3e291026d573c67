//! Replies out of what has been read of a connection: where each ends, and those of a lock's scripts taken apart.
//!
//! Whatever isn't a flat list is left to the crate's parser, as soon as all of it is there. That parser alone would take as long as
//! everything else a caller does: it clears eight kilobytes for each read, and looks at each byte through a dozen layers.

use std::future::poll_fn;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use redis::{ErrorKind, RedisError, RedisResult, Value};
use tokio::io::{AsyncRead, ReadBuf};

/// How much may be read at once, at least.
const ROOM: usize = 8 * 1024;

/// The bytes that were read and not yet taken apart, all of them replies or the beginning of one.
#[derive(Default)]
pub(super) struct Replies {
    /// Read up to `end`, taken apart up to `begin`.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Replies {
    /// Reads once, and says how much; nothing is the reader's end. Its errors mean nothing to what was read before.
    pub(super) fn fill(&mut self, mut reader: impl Read) -> io::Result<usize> {
        let count = reader.read(self.room())?;
        self.end += count;
        Ok(count)
    }

    /// The same without waiting.
    pub(super) fn poll_fill(&mut self, reader: Pin<&mut impl AsyncRead>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(self.room());
        ready!(reader.poll_read(context, &mut room))?;
        let count = room.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    /// Waits for the next reply. Cancel safe: what was read of it stays.
    pub(super) async fn read(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> RedisResult<Value> {
        loop {
            if let Some(reply) = self.next() {
                return reply;
            }
            if poll_fn(|context| self.poll_fill(Pin::new(&mut *reader), context)).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }

    fn room(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == 0 && self.buffer.len() > 8 * ROOM {
            // It was a long reply that took it.
            self.buffer = Vec::new();
        }
        if self.buffer.len() - self.end < ROOM {
            // Twice what there is, whatever a reply says of its length: that may be no truth.
            self.buffer.resize(2 * self.end + ROOM, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// The next reply, if all of it is there.
    pub(super) fn next(&mut self) -> Option<RedisResult<Value>> {
        if self.begin == self.end {
            return None;
        }
        let unread = &self.buffer[self.begin..self.end];
        let (value, length) = match flat(unread) {
            Some((fields, length)) => (Ok(Value::Array(fields)), length),
            None => match length(unread) {
                Ok(None) => return None,
                Ok(Some(length)) => (redis::parse_redis_value(&unread[..length]), length),
                Err(NoReply) => (Err(RedisError::from((ErrorKind::Parse, "this is no Redis, or speaks another protocol"))), 0),
            },
        };
        self.begin += length;
        Some(value)
    }
}

/// What was read is no beginning of a reply.
#[derive(Debug, PartialEq, Eq)]
struct NoReply;

/// A line without its end, and the number of bytes with it.
fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((bytes[..end].strip_suffix(b"\r")?, end + 1))
}

fn number<N: std::str::FromStr>(digits: &[u8]) -> Option<N> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A list whose fields are numbers, strings or nothing, and its length in bytes; nothing if that isn't all there, or isn't one.
fn flat(bytes: &[u8]) -> Option<(Vec<Value>, usize)> {
    let (count, mut at) = integer(bytes.strip_prefix(b"*")?)?;
    at += 1;
    let count = usize::try_from(count).ok()?;
    // A script's reply has no more; more are not worth a guess at the room they take.
    let mut fields = Vec::with_capacity(count.min(8));
    for _ in 0..count {
        let (kind, rest) = bytes.get(at..)?.split_first()?;
        if *kind == b'_' && rest.starts_with(b"\r\n") {
            fields.push(Value::Nil);
            at += 3;
            continue;
        }
        let (number, length) = integer(rest)?;
        at += 1 + length;
        fields.push(match (kind, usize::try_from(number)) {
            (b':', _) => Value::Int(number),
            (b'$', Ok(count)) => {
                let end = at.checked_add(count)?;
                let text = bytes.get(at..end)?;
                at = end + 2;
                (bytes.get(end..at)? == b"\r\n").then(|| Value::BulkString(text.to_vec()))?
            }
            (b'$', Err(_)) if number == -1 => Value::Nil,
            _ => return None,
        });
    }
    Some((fields, at))
}

/// The number up to the end of the line, and the number of bytes with that. What is longer than any time or fence is nothing here.
fn integer(bytes: &[u8]) -> Option<(i64, usize)> {
    let negative = bytes.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let (first, mut number) = (at, 0_i64);
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    // So many digits that no sum has overflowed.
    let fits = at > first && at - first <= 18;
    (fits && bytes.get(at..at + 2)? == b"\r\n").then_some((if negative { -number } else { number }, at + 2))
}

/// The length in bytes of the reply with which these bytes begin, if all of it is there.
fn length(bytes: &[u8]) -> Result<Option<usize>, NoReply> {
    let (mut at, mut wanted) = (0_usize, 1_usize);
    while wanted > 0 {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some((&kind, _)) = rest.split_first() else { return Ok(None) };
        if !b"+-:_#,($=!*~>%|".contains(&kind) {
            return Err(NoReply);
        }
        let Some((head, length)) = line(rest) else {
            // A line ends with both, and one that hasn't ended yet may be all there is.
            return if rest.contains(&b'\n') { Err(NoReply) } else { Ok(None) };
        };
        at += length;
        wanted -= 1;
        if b"+-:_#,(".contains(&kind) || head == b"$-1" || head == b"*-1" {
            continue;
        }
        let count: usize = number(&head[1..]).ok_or(NoReply)?;
        // No sum may overflow, whoever says how long something is.
        let sum = |one: usize, other: usize| one.checked_add(other).filter(|sum| *sum < isize::MAX as usize).ok_or(NoReply);
        match kind {
            b'$' | b'=' | b'!' => at = sum(at, sum(count, 2)?)?,
            b'%' => wanted = sum(wanted, sum(count, count)?)?,
            // Attributes come before the value that they describe.
            b'|' => wanted = sum(wanted, sum(sum(count, count)?, 1)?)?,
            _ => wanted = sum(wanted, count)?,
        }
    }
    Ok((at <= bytes.len()).then_some(at))
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
