//! Scanned: the cursor of a scan over all primaries of a cluster. Pure.
//!
//! A list that lacks all locks of one node looks like any other. So a cursor counts by certain primaries, and says by which. If they are
//! others by now, the scan begins again: a number is another node then, and a node's own cursor means nothing to its successor.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::op::Cursor;
use crate::server::redis::address::Address;

/// How often a scan, or that of one primary, may begin.
const MOST: u8 = 10;

/// It stands for some primaries.
type Mark = [u8; 5];

/// The cursor of a scan of all primaries, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scanned {
    /// By which primaries it counts.
    mark: Mark,
    /// How often the scan has begun.
    begun: u8,
    /// The number of the primary.
    node: u16,
    /// Its own cursor.
    own: u64,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This part comes next, of this primary.
    Part(Scanned, Address),
    /// No primary is left.
    Last,
    /// There is no primary.
    Nobody,
    /// The primaries were others again and again.
    Unsteady,
}

impl Scanned {
    pub(super) fn read(cursor: Cursor) -> Self {
        let [n0, n1, begun, mark @ ..] = cursor.place.to_le_bytes();
        Self { mark, begun, node: u16::from_le_bytes([n0, n1]), own: cursor.own }
    }

    pub(super) fn write(self) -> Cursor {
        let ([n0, n1], [m0, m1, m2, m3, m4]) = (self.node.to_le_bytes(), self.mark);
        Cursor { own: self.own, place: u64::from_le_bytes([n0, n1, self.begun, m0, m1, m2, m3, m4]) }
    }

    /// What comes next, where these are the primaries.
    pub(super) fn step(self, primaries: &[Address]) -> Step {
        let mut primaries: Vec<_> = primaries.iter().collect();
        primaries.sort();
        let mark = mark(&primaries);
        let counts_by_these = self.begun > 0 && self.mark == mark;
        let at = if counts_by_these { self } else { Self { mark, begun: self.begun.saturating_add(1), node: 0, own: 0 } };
        match primaries.get(usize::from(at.node)) {
            _ if at.begun > MOST => Step::Unsteady,
            Some(primary) => Step::Part(at, (*primary).clone()),
            None if primaries.is_empty() => Step::Nobody,
            None => Step::Last,
        }
    }

    /// The same primary from its beginning, on another connection: what is there now may not know its cursor.
    pub(super) fn over(self) -> Self {
        Self { begun: self.begun.saturating_add(1), own: 0, ..self }
    }

    /// The cursor behind this part, where its primary gives `next` as its own.
    pub(super) fn behind(self, next: u64) -> Self {
        let node = if next == 0 { self.node.saturating_add(1) } else { self.node };
        Self { node, own: next, ..self }
    }
}

fn mark(primaries: &[&Address]) -> Mark {
    let mut hasher = DefaultHasher::new();
    primaries.hash(&mut hasher);
    let [.., m0, m1, m2, m3, m4] = hasher.finish().to_le_bytes();
    [m0, m1, m2, m3, m4]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ports: &[u16]) -> Vec<Address> {
        ports.iter().map(|port| Address { host: "h".into(), port: *port }).collect()
    }

    /// Scans primaries of two parts each. `map` gives the primaries for each step, by its number. Returns the ports and cursors of
    /// all parts, and how it ended.
    fn scan(map: impl Fn(usize) -> Vec<Address>) -> (Vec<(u16, u64)>, Step) {
        let (mut cursor, mut parts) = (Cursor::default(), Vec::new());
        loop {
            match Scanned::read(cursor).step(&map(parts.len())) {
                Step::Part(part, primary) => {
                    parts.push((primary.port, part.own));
                    assert_eq!(Scanned::read(part.write()), part);
                    cursor = part.behind(if part.own == 0 { u64::MAX } else { 0 }).write();
                }
                end => return (parts, end),
            }
        }
    }

    #[test]
    fn one_primary_comes_after_the_other() {
        let whole = vec![(1, 0), (1, u64::MAX), (2, 0), (2, u64::MAX)];
        assert_eq!(scan(|_| nodes(&[1, 2])), (whole.clone(), Step::Last));
        assert_eq!(
            scan(|step| nodes(if step < 2 { &[1, 2] } else { &[2, 1] })),
            (whole, Step::Last),
            "the same in another order"
        );
        assert_eq!(scan(|_| nodes(&[])), (vec![], Step::Nobody));
    }

    #[test]
    fn each_primary_is_scanned_as_a_whole_though_others_have_taken_over_meanwhile() {
        let before = nodes(&[1, 2, 3]);
        let changes: [&[u16]; 7] = [&[2, 3, 4], &[0, 2, 3], &[1, 3, 4], &[0, 1, 2], &[1, 2], &[1, 2, 3, 4], &[4, 5, 6]];
        for after in changes {
            // The last step is the one that finds no primary left.
            for change in 0..=6 {
                let (parts, end) = scan(|step| if step < change { before.clone() } else { nodes(after) });
                assert_eq!(end, Step::Last);
                let again: Vec<_> = after.iter().flat_map(|port| [(*port, 0), (*port, u64::MAX)]).collect();
                assert_eq!(parts[change..], again, "{after:?} after {change} parts");
            }
        }
    }

    #[test]
    fn a_primary_whose_connection_broke_is_scanned_from_its_beginning() {
        let Step::Part(first, _) = Scanned::read(Cursor::default()).step(&nodes(&[1, 2])) else { panic!("no part") };
        let Step::Part(second, _) = first.behind(0).step(&nodes(&[1, 2])) else { panic!("no part") };
        let mut broken = second.behind(7);
        for _ in 1..MOST {
            broken = broken.over();
            let Step::Part(part, primary) = broken.step(&nodes(&[1, 2])) else { panic!("no part") };
            assert_eq!((part.own, primary.port), (0, 2));
        }
        assert_eq!(broken.over().step(&nodes(&[1, 2])), Step::Unsteady);
    }

    #[test]
    fn primaries_that_are_others_at_each_step_end_the_scan() {
        let (parts, end) = scan(|step| nodes(&[if step % 2 == 0 { 1 } else { 2 }, 3]));
        assert_eq!((parts.len(), end), (usize::from(MOST), Step::Unsteady));
    }
}
