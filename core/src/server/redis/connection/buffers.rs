//! Buffers: the bytes of one socket on their way in and out, lent to the transport that moves them.

use crate::server::redis::commands::replies::Replies;

/// The bytes of one socket.
#[derive(Default)]
pub struct Buffers {
    /// What was read and not taken apart yet.
    pub(crate) replies: Replies,
    /// What is to be written.
    pub(crate) output: Output,
}

impl Buffers {
    /// Where to put what is read. How much it was is told by [`Input::Read`](super::effect::Input::Read).
    pub fn room(&mut self) -> &mut [u8] {
        self.replies.room()
    }

    /// What is to be written.
    #[must_use]
    pub fn unwritten(&self) -> &[u8] {
        self.output.rest()
    }

    /// The first `count` bytes of what was to be written have been.
    pub fn wrote(&mut self, count: usize) {
        self.output.took(count);
    }
}

/// Bytes on their way out: what the socket didn't take yet stays, what it took doesn't.
#[derive(Default)]
pub(crate) struct Output {
    /// Written up to `written`.
    bytes: Vec<u8>,
    written: usize,
}

impl Output {
    /// Where to append.
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// So much of the rest has been written. More may be appended faster than that for as long as one likes.
    fn took(&mut self, count: usize) {
        self.written += count;
        // Moves less than was written, or nothing.
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
            // It is never empty for long, and for most of the time it isn't at all.
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
