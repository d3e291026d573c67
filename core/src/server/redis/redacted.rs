//! Redacted: a URL without its passwords, for messages. Pure.

/// A URL, well-formed or not, in which everything that may be a password is masked: the part before the last `@`, the part after a
/// `?` or `#`, and a "port" that isn't a number.
pub(crate) fn redacted(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let mut shown = if text.contains("://") { format!("{scheme}://") } else { String::new() };
    let tail_at = rest.find(['?', '#']);
    let rest = match (rest.rfind('@'), tail_at) {
        // An `@` behind a `?` may belong to either; nothing is safe to show.
        (Some(at), Some(tail)) if tail < at => return shown + "***",
        (Some(at), _) => {
            shown.push_str("***@");
            &rest[at + 1..]
        }
        (None, _) => rest,
    };
    let (rest, tail) = rest.find(['?', '#']).map_or((rest, ""), |at| (&rest[..at], "?***"));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // Only URLs of Sentinel and of Cluster have several hosts. Elsewhere the comma may be a part of a password.
    let scheme = scheme.to_ascii_lowercase();
    let several = scheme.contains("sentinel") || scheme.contains("cluster");
    let places = if several { authority.split(',').collect() } else { vec![authority] };
    let places: Vec<String> = places.into_iter().map(place).collect();
    shown + &places.join(",") + path + tail
}

/// A host and its port, if that is a number.
fn place(text: &str) -> String {
    let after_host = if text.starts_with('[') { text.find(']').unwrap_or(0) } else { 0 };
    match text[after_host..].find(':').map(|at| text.split_at(after_host + at)) {
        Some((host, port)) if host.is_empty() || !port[1..].bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{host}:***")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_password_is_not_shown_and_what_can_be_none_is() {
        for (url, shown) in [
            ("redis+sentinel://ann:hunter2@a:1,b,[::1]:3/primary/2", "redis+sentinel://***@a:1,b,[::1]:3/primary/2"),
            ("rediss+sentinel://a,b/primary?sentinel_password=hunter2", "rediss+sentinel://a,b/primary?***"),
            ("redis+sentinel://ann:hun,ter2@a/primary", "redis+sentinel://***@a/primary"),
            ("redis+sentinel://a:1,b:hunter2/primary", "redis+sentinel://a:1,b:***/primary"),
            ("redis+sentinel://a/primary?sentinel_password=hun@ter2", "redis+sentinel://***"),
            ("redis://ann:hun,ter2", "redis://ann:***"),
        ] {
            assert_eq!(redacted(url), shown, "{url}");
        }
    }
}
