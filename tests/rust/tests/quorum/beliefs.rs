//! The beliefs of several clients, and whether all of them could be true.

use std::sync::Mutex;
use std::time::Instant;

/// One hold: from when it was returned until its holder let go, or last looked whether it was still valid.
#[derive(Clone, Debug)]
struct Hold {
    fence: u64,
    granted: Instant,
    ended: Instant,
}

/// Every hold of one lock.
#[derive(Default)]
pub struct Journal(Mutex<Vec<Hold>>);

impl Journal {
    /// Does `work` again and again while it says so, and writes down how long the hold was believed in.
    pub fn record(&self, held: &locktender::Hold, mut work: impl FnMut() -> bool) {
        let granted = Instant::now();
        let mut ended = granted;
        loop {
            let more = work();
            // The clock is read first: what is valid afterwards was so then.
            let now = Instant::now();
            if !held.is_valid() {
                break;
            }
            ended = now;
            if !more {
                break;
            }
        }
        self.0.lock().unwrap().push(Hold { fence: held.fence(), granted, ended });
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Fails if two holds overlapped, or a later one has no larger fence.
    pub fn check(&self) {
        let mut holds = self.0.lock().unwrap().clone();
        holds.sort_by_key(|hold| hold.granted);
        for pair in holds.windows(2) {
            assert!(pair[0].ended <= pair[1].granted, "two holds at once: {pair:#?}");
            assert!(pair[0].fence < pair[1].fence, "fences don't rise: {pair:#?}");
        }
    }
}
