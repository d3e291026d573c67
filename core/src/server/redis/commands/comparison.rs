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
        match (info::version(info, "valkey_version"), info::version(info, "redis_version")) {
            (Some((9.., _)), _) => Self::DelIfEq,
            (None, Some((9.., _) | (8, 4..))) => Self::DelEx,
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
