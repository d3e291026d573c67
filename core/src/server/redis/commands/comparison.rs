//! Comparison: how a server deletes a key if it has a given value. Pure.

use crate::server::redis::commands::info;

/// What deletes a key if it has a given value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// A script on that key alone.
    #[default]
    Script,
    /// `DELIFEQ`, of Valkey since 9.0.
    DelIfEq,
    /// `DELEX … IFEQ`, of Redis since 8.4.
    DelEx,
}

impl Comparison {
    /// The way of a server that shows these facts. Valkey shows a version of Redis, too.
    pub(crate) fn of(info: &str) -> Self {
        let is_since = |name: &str, since: (u32, u32)| {
            let version = info::field(info, name)?;
            let mut numbers = version.split('.').map(|number| number.parse().unwrap_or_default());
            Some((numbers.next()?, numbers.next().unwrap_or_default()) >= since)
        };
        match (is_since("valkey_version", (9, 0)), is_since("redis_version", (8, 4))) {
            (Some(true), _) => Self::DelIfEq,
            (None, Some(true)) => Self::DelEx,
            _ => Self::Script,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_compares_by_the_command_that_it_has() {
        for (info, expected) in [
            ("redis_version:6.2.14", Comparison::Script),
            ("redis_version:8.2.3", Comparison::Script),
            ("redis_version:8.4.0", Comparison::DelEx),
            ("redis_version:10.0.0", Comparison::DelEx),
            ("redis_version:7.2.4\r\nvalkey_version:8.1.8", Comparison::Script),
            ("redis_version:8.4.0\r\nvalkey_version:8.1.8", Comparison::Script),
            ("redis_version:7.2.4\r\nvalkey_version:9.0.0", Comparison::DelIfEq),
            ("redis_version:255.255.255\r\nserver_name:valkey\r\nvalkey_version:255.255.255", Comparison::DelIfEq),
            ("dragonfly_version:df-v1.25.0", Comparison::Script),
        ] {
            assert_eq!(Comparison::of(info), expected, "{info}");
        }
    }
}
