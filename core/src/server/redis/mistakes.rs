//! Mistakes: sentences about a URL that can't be used. Pure.

use crate::wording::{Part, Text};

pub(super) const PORT: &str = "the port must be a number from 1 to 65535";

pub(super) const ESCAPES: &str = "in a user or a password / is written %2F, ? is %3F, # is %23, @ is %40 and % is %25";

pub(super) const FRAGMENT: &str = "a # begins what has no meaning here: in a user or a password it is written %23; certificate checks can't be \
                        switched off: give the authority's certificate with the option {tls_ca}";

/// What to do instead of giving this parameter: those of other clients have an option here. `known` are the parameters that there are.
pub(super) fn instead_of_parameter(key: &str, known: &'static str) -> Text {
    let message = match key.to_ascii_lowercase().replace('-', "_").as_str() {
        // The end of a password, which must not be shown.
        rest if rest.contains('@') => return ESCAPES.into(),
        "ssl_ca_certs" | "ssl_ca_path" | "cacert" | "tls_ca" => {
            "the parameter {} is no part of a URL here: give the file as {tls_ca}"
        }
        "ssl_certfile" | "tls_cert" => "the parameter {} is no part of a URL here: give the file as {tls_cert}",
        "ssl_keyfile" | "tls_key" => "the parameter {} is no part of a URL here: give the file as {tls_key}",
        "ssl" | "tls" => "the parameter {} is no part of a URL here: a URL with TLS begins with rediss://",
        ssl if ["ssl", "tls", "insecure", "verify", "reject"].iter().any(|begin| ssl.starts_with(begin)) => {
            "the parameter {} does not exist: certificate checks can't be switched off; give the authority's certificate with the option \
             {tls_ca}"
        }
        "socket_timeout" | "timeout" => "the parameter {} is no part of a URL here: give the option {response_timeout}",
        "socket_connect_timeout" | "connect_timeout" => {
            "the parameter {} is no part of a URL here: give the option {connect_timeout}"
        }
        _ => "the parameter {} is no part of a URL here: there are {}, and all else is an option",
    };
    Text::new(message, [Part::Words(format!("{key:?}")), Part::Words(known.to_owned())])
}
