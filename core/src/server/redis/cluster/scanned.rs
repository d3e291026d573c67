//! Scanned: the cursor of a scan over all primaries of a cluster. Pure.

/// The cursor of a scan of all primaries, one after the other: the number of the primary, and its own cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scanned {
    pub(super) node: usize,
    pub(super) cursor: u64,
}

/// The bits of a primary's own cursor. It counts buckets of a table, and slots.
const CURSOR_BITS: u32 = 48;

impl Scanned {
    pub(super) fn read(cursor: u64) -> Self {
        let node = usize::try_from(cursor >> CURSOR_BITS).unwrap_or_default();
        Self { node, cursor: cursor & ((1 << CURSOR_BITS) - 1) }
    }

    /// The cursor of the next part, where the primary gives `next` and there are so many primaries; 0 after the last part.
    pub(super) fn next(self, next: u64, primaries: usize) -> u64 {
        let node = if next == 0 { self.node + 1 } else { self.node };
        if node >= primaries { 0 } else { (node as u64) << CURSOR_BITS | next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_primary_comes_after_the_other() {
        let (mut cursor, mut seen) = (0, Vec::new());
        // Each primary has three parts.
        let next = |cursor| match cursor {
            0 => 70_000_000_007,
            70_000_000_007 => 5,
            _ => 0,
        };
        loop {
            let scanned = Scanned::read(cursor);
            seen.push((scanned.node, scanned.cursor));
            cursor = scanned.next(next(scanned.cursor), 2);
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (0, 70_000_000_007), (0, 5), (1, 0), (1, 70_000_000_007), (1, 5)]);
    }
}
