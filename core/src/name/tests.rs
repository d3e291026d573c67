//! Names and keys: what may be a name, and which keys it has.

use super::*;
use crate::error::Code;

#[test]
fn side_keys_share_the_slot_of_the_lock() {
    for (name, lock, fence) in [
        ("orders:42", "orders:42", "{orders:42}:~lt:fence"),
        ("{shop}:orders", "{shop}:orders", "{shop}:orders:~lt:tag:fence"),
        ("a{b", "a{b", "{a{b}:~lt:fence"),
        ("x{{y}}", "x{{y}}", "x{{y}}:~lt:tag:fence"),
        ("a}b{c}", "a}b{c}", "a}b{c}:~lt:tag:fence"),
        ("ключ 鍵 🔑", "ключ 鍵 🔑", "{ключ 鍵 🔑}:~lt:fence"),
    ] {
        let keys = Keys::new(Kind::Quorum, "", name, true).unwrap();
        assert_eq!((keys.lock(), keys.fence()), (lock, fence), "{name}");
    }
}

#[test]
fn a_record_shows_the_name_of_its_lock() {
    for prefix in ["", "prod:", "{p}", "a[b]*"] {
        for name in ["orders:42", "{shop}:orders", "a{b", "x{{y}}", "ключ 鍵 🔑", "a*?[\\\\b^]"] {
            let Ok(keys) = Keys::new(Kind::Job, prefix, name, true) else { continue };
            for (listed, key, other) in
                [(Listed::Records, keys.record(), keys.lock()), (Listed::Locks, keys.lock(), keys.record())]
            {
                assert!(listed.may_be(key) && !listed.may_be(other));
                assert_eq!(listed.name_of(key, prefix), Some(name), "{prefix} {name}");
                assert_eq!(listed.name_of(keys.queue(), prefix), None);
            }
        }
    }
    for (record, prefix) in [
        ("{other:a}:~lt:job", "prod:"),
        ("{prod:}:~lt:job", "prod:"),
        ("{{x}}:~lt:job", ""),
        ("x:~lt:tag:job", ""),
        ("x:~lt:job", ""),
        ("job", ""),
    ] {
        assert_eq!(Listed::Records.name_of(record, prefix), None, "{record} {prefix}");
    }
    assert_eq!(Listed::Records.pattern("a[b]*"), r"*a\[b\]\**:~lt:*job");
    assert_eq!(Listed::Locks.pattern("a[b]*"), r"a\[b\]\**");
}

#[test]
fn no_two_locks_share_a_key() {
    let pieces = ["", "x", "{", "}", "{x}", ":~lt", ":~lt:tag", "lt:", ":", "~lt", "tag:", "fence", ":fence", ":marker"];
    let mut owners = std::collections::HashMap::new();
    for number in 0..pieces.len().pow(4) {
        let name: String = (0..4u32).map(|at| pieces[number / pieces.len().pow(at) % pieces.len()]).collect();
        let Ok(keys) = Keys::new(Kind::Job, "", &name, true) else { continue };
        // Locks of one slot share its clock.
        for key in keys.in_order().filter(|key| *key != keys.clock()) {
            let word = key.rsplit(':').next();
            let is_side = key != keys.lock();
            assert!(!is_side || !matches!(word, Some("clock" | "log")), "{key} could be a clock, or the history");
            let owner = owners.entry(key.to_owned()).or_insert_with(|| name.clone());
            assert_eq!(*owner, name, "both have the key {key}");
        }
    }
    assert!(owners.len() > 10_000 && !owners.contains_key(Keys::server_marker()), "{}", owners.len());
}

#[test]
fn the_prefix_is_part_of_every_key_and_of_no_name() {
    let keys = Keys::new(Kind::Exclusive, "prod:", "a", true).unwrap();
    let four = ["prod:a", "{21262}:~lt:clock", "{prod:a}:~lt:queue", "{prod:a}:~lt:marker"];
    let marks = "{prod:a}:~lt:shared";
    assert_eq!(keys.in_order().collect::<Vec<_>>(), [&four[..], &[marks]].concat());
    let job = Keys::new(Kind::Job, "prod:", "a", true).unwrap();
    assert_eq!(sides_of(job.lock())[0], job.record());
    assert_eq!((&*sides_of(job.lock())[1], keys.marks()), (marks, marks));
    assert_eq!(job.in_order().collect::<Vec<_>>(), [&four[..], &["{prod:a}:~lt:job", marks]].concat());
    let of_quorum = Keys::new(Kind::Quorum, "prod:", "a", false).unwrap();
    assert_eq!((of_quorum.in_order().count(), of_quorum.marks()), (4, ""));
    assert_eq!(keys.name(), "a");
    assert_eq!(Keys::new(Kind::Exclusive, "", "a", false).unwrap().marker(), Keys::server_marker());
}

#[test]
fn a_name_for_trying_rights_is_none_that_a_lock_can_have() {
    for prefix in ["", "prod:", "{shop}:", "a}", "{a}{b}"] {
        let keys = Keys::of_no_lock(Kind::Job, prefix, true);
        assert!(keys.lock().starts_with(prefix), "a user's rights may depend on it");
        assert!(Keys::new(Kind::Exclusive, "", keys.lock(), true).is_err(), "{prefix}");
    }
    assert_eq!(Keys::of_no_lock(Kind::Quorum, "prod:", false).fence(), "{prod::~lt:probe}:~lt:fence");
}

#[test]
fn names_that_cannot_be_locks_are_refused() {
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    for name in ["", &long, "a\0b", "a:~lt:b", MARKER, HISTORY, "{a}{b}", "a}", "{}", "}{", "{}{a}"] {
        let error = Keys::new(Kind::Exclusive, "", name, true).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{name:?}");
    }
    assert!(Keys::new(Kind::Exclusive, "", &"x".repeat(MAX_NAME_BYTES), true).is_ok());
    assert!(Keys::new(Kind::Exclusive, "{t}", "{u}", true).is_err(), "prefix and name together have two tags");
    let error = Keys::new(Kind::Exclusive, "{~lt}:", "log", true).unwrap_err();
    assert!(error.to_string().contains("is the key of the history"), "{error}");
    assert!(!Listed::Locks.may_be(HISTORY));
}
