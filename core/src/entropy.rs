//! Entropy: random numbers of the operating system.
//!
//! A generator in the process's own memory is copied with the process: clones of a snapshot (SnapStart, CRIU, a virtual machine) go
//! on with the same numbers. So what has to be unique everywhere is drawn from the system each time, and nothing is kept for the
//! next.

/// Eight bytes that nobody else was given.
pub fn draw() -> u64 {
    let mut bytes = [0; 8];
    match getrandom::getrandom(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => without_the_system(),
    }
}

/// For a system that gives none, such as a sandbox that forbids the call: the hasher of the standard library has keys of its own.
fn without_the_system() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u64(crate::clock::Tick::now().as_micros());
    hasher.write_u32(std::process::id());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_draws_are_the_same() {
        for draw in [draw, without_the_system] {
            let drawn: std::collections::HashSet<_> = (0..1_000).map(|_| draw()).collect();
            assert_eq!(drawn.len(), 1_000);
        }
    }
}
