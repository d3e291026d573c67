//! Slots: which of the 16,384 slots of a cluster a key belongs to. Pure.
//!
//! The rule is that of the [cluster specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/): CRC-16
//! (XMODEM) of the key, or of the part in its first braces if that is not empty.

/// The number of slots of every cluster.
pub(crate) const SLOTS: u16 = 16_384;

const POLYNOMIAL: u16 = 0x1021;

/// The remainders of all bytes.
const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        #[expect(clippy::cast_possible_truncation, reason = "a byte")]
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The slot of a key.
pub(crate) fn slot_of(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.bytes().fold(0_u16, |crc, byte| crc << 8 ^ TABLE[usize::from(crc.to_be_bytes()[0] ^ byte)]);
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{Keys, Kind};

    #[test]
    fn a_key_has_the_slot_that_the_specification_and_servers_give_it() {
        // What `CLUSTER KEYSLOT` of Redis 8.2 answers.
        for (key, slot) in [
            ("123456789", 12_739),
            ("", 0),
            ("foo", 12_182),
            ("{foo}bar", 12_182),
            ("x{foo}{bar}", 12_182),
            ("foo{}bar", 14_292),
            ("{}x", 10_595),
            ("foo{{bar}}zap", 4_015),
            ("{bar", 4_015),
            ("größer", 11_059),
        ] {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }

    #[test]
    fn all_keys_of_a_lock_have_one_slot() {
        for name in ["orders:42", "{shop}:orders", "größer", "a{b", "a}b{c", "{}x", "{a}{b}", "x{}{y}", &"n".repeat(1_024)] {
            for prefix in ["", "prod:", "{team}:", "x{"] {
                let Ok(keys) = Keys::new(Kind::Job, prefix, name, true) else { continue };
                let slots: Vec<u16> = keys.in_order().map(slot_of).collect();
                assert!(slots.iter().all(|slot| *slot == slots[0]), "{prefix}{name}: {slots:?}");
            }
        }
    }
}
