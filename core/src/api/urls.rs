//! URLs: one, several in one text, or a list; and servers that are no URL.

use std::sync::Arc;

use crate::server::Server;

/// The URLs of a client's servers: a text (with commas between several), an array, a slice or a `Vec` of texts.
///
/// ```
/// use locktender::Client;
///
/// let hosts: Vec<String> = ["a", "b", "c"].iter().map(|host| format!("redis://{host}")).collect();
/// let quorum = Client::open(hosts)?;
/// let the_same = Client::open(["redis://a", "redis://b", "redis://c"])?;
/// let one_text = Client::open("redis://a,redis://b,redis://c")?;
/// # Ok::<(), locktender::Error>(())
/// ```
pub trait IntoUrls {
    /// Each server's URL.
    #[doc(hidden)]
    fn into_urls(self) -> Vec<String>;
}

impl IntoUrls for &str {
    fn into_urls(self) -> Vec<String> {
        split(self).map(str::to_owned).collect()
    }
}

impl IntoUrls for String {
    fn into_urls(self) -> Vec<String> {
        self.as_str().into_urls()
    }
}

impl<Text: AsRef<str>> IntoUrls for &[Text] {
    fn into_urls(self) -> Vec<String> {
        self.iter().map(|url| url.as_ref().to_owned()).collect()
    }
}

impl<Text: AsRef<str>, const COUNT: usize> IntoUrls for [Text; COUNT] {
    fn into_urls(self) -> Vec<String> {
        self.as_slice().into_urls()
    }
}

impl<Text: AsRef<str>> IntoUrls for Vec<Text> {
    fn into_urls(self) -> Vec<String> {
        self.as_slice().into_urls()
    }
}

/// A lock server that is no URL: one for tests, or one of your own.
pub trait IntoServer: sealed::Sealed {
    #[doc(hidden)]
    fn into_server(self) -> Arc<dyn Server>;
}

impl<S: Server> IntoServer for Arc<S> {
    fn into_server(self) -> Arc<dyn Server> {
        self
    }
}

impl IntoServer for Arc<dyn Server> {
    fn into_server(self) -> Arc<dyn Server> {
        self
    }
}

mod sealed {
    use std::sync::Arc;

    pub trait Sealed {}

    impl<S: super::Server + ?Sized> Sealed for Arc<S> {}
}

/// Splits at commas that are followed by `scheme://`.
fn split(urls: &str) -> impl Iterator<Item = &str> {
    let is_scheme = |text: &str| {
        text.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        })
    };
    let mut rest = Some(urls);
    std::iter::from_fn(move || {
        let text = rest?;
        let cut = text.match_indices(',').map(|(at, _)| at).find(|at| is_scheme(text[at + 1..].trim_start()));
        rest = cut.map(|at| text[at + 1..].trim_start());
        Some(cut.map_or(text, |at| &text[..at]).trim())
    })
}

/// A URL whose scheme is in small letters: a scheme has no case.
pub(crate) fn with_plain_scheme(url: String) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            format!("{}://{rest}", scheme.to_ascii_lowercase())
        }
        _ => url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_where_a_url_begins() {
        assert_eq!("redis://a".into_urls(), ["redis://a"]);
        assert_eq!("redis://a,redis://b, memory://c".into_urls(), ["redis://a", "redis://b", "memory://c"]);
        assert_eq!("redis+sentinel://h1,h2/master/0".into_urls(), ["redis+sentinel://h1,h2/master/0"]);
        assert_eq!("redis://:p,w@a,rediss://b".into_urls(), ["redis://:p,w@a", "rediss://b"]);
    }

    #[test]
    fn every_kind_of_list_is_one() {
        let owned = vec!["redis://a".to_owned(), "redis://b".to_owned()];
        let expected = ["redis://a", "redis://b"];
        assert_eq!(owned.as_slice().into_urls(), expected);
        assert_eq!(expected.into_urls(), expected);
        assert_eq!(vec!["redis://a", "redis://b"].into_urls(), expected);
        assert_eq!(owned.join(",").into_urls(), expected);
        assert_eq!(owned.into_urls(), expected);
    }

    #[test]
    fn a_scheme_has_no_case() {
        assert_eq!(with_plain_scheme("REDIS://Host/0".into()), "redis://Host/0");
        assert_eq!(with_plain_scheme("Memory://Name".into()), "memory://Name");
        assert_eq!(with_plain_scheme("localhost".into()), "localhost");
    }
}
