//! Address map: where the addresses that sentinels announce can be reached from here. Pure.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::server::redis::address::Address;

/// The reachable address for each announced one that isn't reachable itself.
#[derive(Debug, Default)]
pub(crate) struct AddressMap(Vec<(Address, Address)>);

impl AddressMap {
    /// Reads the option.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is no host with a port.
    pub(crate) fn read(pairs: &BTreeMap<String, String>) -> Result<Self, Error> {
        let read = |text: &str| {
            let why = "each address is a host and a port, as in 10.0.0.1:6379 or [::1]:6379";
            Address::read(text).ok_or_else(|| Error::invalid("address_map", text, why))
        };
        let pairs = pairs.iter().map(|(announced, reachable)| Ok((read(announced)?, read(reachable)?)));
        pairs.collect::<Result<_, Error>>().map(Self)
    }

    /// The address at which an announced one is reached.
    pub(crate) fn reachable<'a>(&'a self, announced: &'a Address) -> &'a Address {
        self.0.iter().find(|(from, _)| from == announced).map_or(announced, |(_, to)| to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Result<AddressMap, Error> {
        AddressMap::read(&pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect())
    }

    #[test]
    fn an_address_leads_elsewhere_by_its_host_and_port_and_any_other_to_itself() {
        let map =
            map(&[("10.0.0.1:6379", "localhost:7001"), ("[fd00::1]:6379", "[::1]:7002"), ("db:6379", "10.0.0.1:6379")]).unwrap();
        for (announced, reachable) in [
            ("10.0.0.1:6379", "localhost:7001"),
            ("10.0.0.1:6380", "10.0.0.1:6380"),
            ("[fd00::1]:6379", "[::1]:7002"),
            ("db:6379", "10.0.0.1:6379"),
            ("other:6379", "other:6379"),
        ] {
            assert_eq!(map.reachable(&Address::read(announced).unwrap()).to_string(), reachable, "{announced}");
        }
    }

    #[test]
    fn what_is_no_host_with_a_port_is_refused() {
        for wrong in
            ["", "host", "host:", ":6379", "host:0", "host:65536", "::1:6379", "[::1]", "[x]:1", "redis://host:6379", "a b:1"]
        {
            for pair in [(wrong, "host:6379"), ("host:6379", wrong)] {
                let error = map(&[pair]).unwrap_err();
                assert_eq!(error.argument(), Some("address_map"), "{wrong}");
            }
        }
    }
}
