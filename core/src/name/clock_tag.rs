//! Clock tag: the number in the braces of a clock's key. It puts the clock into the slot of the lock whose fences it gives.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::slot::{SLOTS, slot_of};

/// The smallest decimal number of each slot, made when it is first needed. Not by a `LazyLock`: if another thread makes it during a
/// fork, the child would wait without end.
static TAGS: ArcSwapOption<Vec<u32>> = ArcSwapOption::const_empty();

/// The smallest decimal number of this slot.
pub(super) fn clock_tag(slot: u16) -> u32 {
    let tag = |tags: &Vec<u32>| tags.get(usize::from(slot)).copied().unwrap_or_default();
    if let Some(made) = &*TAGS.load() {
        return tag(made);
    }
    let made = Arc::new(tags());
    TAGS.store(Some(Arc::clone(&made)));
    tag(&made)
}

fn tags() -> Vec<u32> {
    let mut tags = vec![None; usize::from(SLOTS)];
    let mut missing = tags.len();
    let mut digits = itoa::Buffer::new();
    for number in 0_u32.. {
        if let Some(tag @ None) = tags.get_mut(usize::from(slot_of(digits.format(number)))) {
            *tag = Some(number);
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    tags.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_number_that_is_the_smallest() {
        let tags = tags();
        assert_eq!(tags.iter().max(), Some(&109_757));
        for (slot, tag) in tags.iter().enumerate().step_by(97) {
            assert_eq!(usize::from(slot_of(&tag.to_string())), slot);
            assert!((0..*tag).all(|smaller| usize::from(slot_of(&smaller.to_string())) != slot), "{slot}");
        }
    }

    #[test]
    fn a_clock_is_in_the_slot_of_its_lock() {
        for key in ["orders:42", "{shop}:orders", "größe", "a{b", "{}x"] {
            assert_eq!(slot_of(&format!("{{{}}}:~lt:clock", clock_tag(slot_of(key)))), slot_of(key), "{key}");
        }
    }
}
