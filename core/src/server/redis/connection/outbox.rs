//! Bytes on their way out: what the socket didn't take yet stays, what it took doesn't.

/// What is to be written.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Written up to `written`.
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    /// Where to append.
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// What is left to be written.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// So much of the rest has been written. Somebody may append faster than that for as long as they like.
    pub(crate) fn took(&mut self, count: usize) {
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
        let (mut rng, mut outbox) = (fastrand::Rng::with_seed(1), Outbox::default());
        let (mut appended, mut written) = (Vec::<u8>::new(), Vec::<u8>::new());
        for round in 0..20_000_u32 {
            let piece = round.to_le_bytes().repeat(rng.usize(1..20));
            outbox.end().extend(&piece);
            appended.extend(&piece);
            // It is never empty for long, and for most of the time it isn't at all.
            let count = rng.usize(..=80).min(outbox.rest().len());
            written.extend(&outbox.rest()[..count]);
            outbox.took(count);
            assert!(outbox.bytes.len() <= 2 * outbox.rest().len() + 1, "{} for {}", outbox.bytes.len(), outbox.rest().len());
        }
        written.extend(outbox.rest());
        outbox.took(outbox.rest().len());
        assert!(outbox.is_empty() && written == appended);
    }
}
