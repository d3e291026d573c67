//! Visited states: all states found so far, in the order in which they were found, each with its predecessor.

/// 28 bytes a state, at most 2³² − 1 states. The states lie in blocks, so that growing copies only the table.
pub struct Visited {
    states: Vec<Vec<u128>>,
    parents: Vec<Vec<u32>>,
    /// An open-addressed table of indices, `FREE` where there is none.
    table: Vec<u32>,
    len: usize,
}

const FREE: u32 = u32::MAX;
const BLOCK: usize = 1 << 20;

impl Default for Visited {
    fn default() -> Self {
        Self { states: Vec::new(), parents: Vec::new(), table: vec![FREE; 1 << 16], len: 0 }
    }
}

impl Visited {
    /// How many states there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The state that was found as number `index`.
    #[must_use]
    pub fn state(&self, index: usize) -> u128 {
        self.states[index / BLOCK][index % BLOCK]
    }

    /// Adds a state found from `parent` (itself for a first one), unless it is there.
    pub fn insert(&mut self, state: u128, parent: usize) {
        if self.len * 4 >= self.table.len() * 3 {
            self.grow();
        }
        let mut slot = self.slot(state);
        while self.table[slot] != FREE {
            if self.state(self.table[slot] as usize) == state {
                return;
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
        self.table[slot] = self.len as u32;
        if self.len.is_multiple_of(BLOCK) {
            self.states.push(Vec::new());
            self.parents.push(Vec::new());
        }
        self.states[self.len / BLOCK].push(state);
        self.parents[self.len / BLOCK].push(parent as u32);
        self.len += 1;
        assert!(self.len < FREE as usize, "too many states");
    }

    /// The states on the way to the one with number `index`, from the first on.
    #[must_use]
    pub fn path(&self, mut index: usize) -> Vec<u128> {
        let mut path = vec![self.state(index)];
        loop {
            let parent = self.parents[index / BLOCK][index % BLOCK] as usize;
            if parent == index {
                path.reverse();
                return path;
            }
            index = parent;
            path.push(self.state(index));
        }
    }

    fn slot(&self, state: u128) -> usize {
        let (low, high) = (state as u64, (state >> 64) as u64);
        let mixed = u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD6E8_FEB8_6659_FD93);
        let hash = ((mixed >> 64) as u64 ^ mixed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> (64 - self.table.len().trailing_zeros())) as usize
    }

    fn grow(&mut self) {
        let size = self.table.len() * 2;
        // Frees the old table first.
        self.table = Vec::new();
        self.table = vec![FREE; size];
        for index in 0..self.len {
            let mut slot = self.slot(self.state(index));
            while self.table[slot] != FREE {
                slot = (slot + 1) & (size - 1);
            }
            self.table[slot] = index as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_found_once_and_knows_its_way() {
        let mut visited = Visited::default();
        for state in 0..100_000_u128 {
            visited.insert(state << 40, usize::try_from(state).unwrap().saturating_sub(1));
            visited.insert(state << 40, 0);
        }
        assert_eq!(visited.len(), 100_000);
        assert_eq!(visited.path(3), [0, 1 << 40, 2 << 40, 3 << 40]);
    }
}
