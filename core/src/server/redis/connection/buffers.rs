//! Buffers: the bytes that one socket reads and writes, lent to the transport that moves them.

use crate::server::redis::commands::replies::Replies;

/// The bytes of one socket.
#[derive(Default)]
pub struct Buffers {
    /// The bytes that were read and not taken apart yet.
    pub(crate) replies: Replies,
    /// The bytes to write.
    pub(crate) output: Output,
}

impl Buffers {
    /// The room for the bytes that are read next. [`Input::Read`](super::input::Input::Read) says how many they were.
    pub fn room(&mut self) -> &mut [u8] {
        self.replies.room()
    }

    /// The bytes that are still to be written.
    #[must_use]
    pub fn unwritten(&self) -> &[u8] {
        self.output.rest()
    }

    /// The socket has taken the first `count` of the bytes to write.
    pub fn wrote(&mut self, count: usize) {
        self.output.took(count);
    }
}

/// Bytes to write: those that the socket didn't take yet stay, the others go.
#[derive(Default)]
pub(crate) struct Output {
    /// The bytes, of which those up to `written` are written.
    bytes: Vec<u8>,
    written: usize,
}

impl Output {
    /// The buffer to append to.
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// `count` more bytes are written. The caller may append faster than the socket takes, for as long as it likes.
    fn took(&mut self, count: usize) {
        self.written += count;
        // This moves fewer bytes than were written, or none.
        if 2 * self.written >= self.bytes.len() {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_was_appended_and_takes_no_room_afterwards() {
        let (mut rng, mut output) = (fastrand::Rng::with_seed(1), Output::default());
        let (mut appended, mut written) = (Vec::<u8>::new(), Vec::<u8>::new());
        for round in 0..20_000_u32 {
            let piece = round.to_le_bytes().repeat(rng.usize(1..20));
            output.end().extend(&piece);
            appended.extend(&piece);
            // The output is never empty for long, and for most of the time it isn't empty at all.
            let count = rng.usize(..=80).min(output.rest().len());
            written.extend(&output.rest()[..count]);
            output.took(count);
            assert!(output.bytes.len() <= 2 * output.rest().len() + 1, "{} for {}", output.bytes.len(), output.rest().len());
        }
        written.extend(output.rest());
        output.took(output.rest().len());
        assert!(output.rest().is_empty() && written == appended);
    }
}
