//! Settings: the values with which every connection to one server is made.

use std::time::Duration;

use crate::error::Error;
use crate::op::QuorumConfig;
use crate::options::ClientOptions;
use crate::server::redis::transport::url::Target;

/// The values that connecting needs, fixed for a server's life.
#[derive(Debug)]
pub struct Settings {
    pub(crate) target: Target,
    /// The name of the connections.
    pub(crate) name: String,
    pub(crate) quorum_config: Option<QuorumConfig>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
}

impl Settings {
    /// The settings of a server at `url`. Reads certificate files, but does no network I/O.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL or a certificate file that can't be used.
    pub fn new(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        quorum_config: Option<QuorumConfig>,
    ) -> Result<Self, Error> {
        let (target, name) = (Target::parse(url, options)?, name(options.app_name().as_deref()));
        Ok(Self { target, name, quorum_config, connect_timeout: options.connect_timeout, response_timeout })
    }
}

/// The name of the connections in `CLIENT LIST`: `locktender`, and the application behind a colon. A name may have no white space,
/// and only the letters of English.
pub(crate) fn name(app: Option<&str>) -> String {
    let mut name = String::from("locktender");
    for (at, byte) in app.unwrap_or_default().bytes().enumerate() {
        name.push_str(if at == 0 { ":" } else { "" });
        name.push(if byte.is_ascii_graphic() { char::from(byte) } else { '_' });
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_called_after_its_application() {
        for (app, expected) in [
            (None, "locktender"),
            (Some(""), "locktender"),
            (Some("billing"), "locktender:billing"),
            (Some("billing job\n"), "locktender:billing_job_"),
            (Some("größer"), "locktender:gr____er"),
        ] {
            assert_eq!(name(app), expected);
        }
    }
}
