//! Gate: which requests are answered. Pure.
//!
//! Every program of this machine can reach the port, and so can the scripts of every page that a browser of this machine shows. The token in
//! the path keeps them out. A name of another site that leads to this machine is refused by the header `Host`.

/// The port that browsers leave out of the header `Host`.
const HTTP: u16 = 80;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Page,
    Stream,
}

/// Why a request is refused; the number is its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    WrongToken = 403,
    NotFound = 404,
    WrongMethod = 405,
    WrongHost = 421,
}

pub(super) struct Gate {
    pub(super) token: String,
    pub(super) port: u16,
}

impl Gate {
    /// `hosts` are all names by which the request calls this server.
    pub(super) fn allow<'a>(
        &self,
        method: &str,
        hosts: impl IntoIterator<Item = &'a [u8]>,
        path: &str,
    ) -> Result<Wanted, Refusal> {
        let mut hosts = hosts.into_iter().peekable();
        if hosts.peek().is_none() || !hosts.all(|host| self.is_own(host)) {
            return Err(Refusal::WrongHost);
        }
        let (token, rest) = path.strip_prefix('/').unwrap_or_default().split_once('/').unwrap_or_default();
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return Err(Refusal::WrongToken);
        }
        let wanted = match rest {
            "" => Wanted::Page,
            "events" => Wanted::Stream,
            _ => return Err(Refusal::NotFound),
        };
        if matches!(method, "GET" | "HEAD") { Ok(wanted) } else { Err(Refusal::WrongMethod) }
    }

    fn is_own(&self, host: &[u8]) -> bool {
        let is_named =
            |own: &str| host == format!("{own}:{}", self.port).as_bytes() || self.port == HTTP && host == own.as_bytes();
        ["127.0.0.1", "localhost", "[::1]"].into_iter().any(is_named)
    }
}

/// Takes the same time wherever the two differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_token_and_the_host_gets_an_answer() {
        use Refusal::{NotFound, WrongHost, WrongMethod, WrongToken};
        let gate = Gate { token: "secret".to_owned(), port: 9_000 };
        let own: &[&str] = &["127.0.0.1:9000"];
        for (method, hosts, path, allowed) in [
            ("GET", own, "/secret/", Ok(Wanted::Page)),
            ("HEAD", own, "/secret/", Ok(Wanted::Page)),
            ("GET", &["localhost:9000"], "/secret/events", Ok(Wanted::Stream)),
            ("GET", &["[::1]:9000"], "/secret/events", Ok(Wanted::Stream)),
            ("GET", &["127.0.0.1:9000", "localhost:9000"], "/secret/", Ok(Wanted::Page)),
            ("GET", &[], "/secret/", Err(WrongHost)),
            ("GET", &["evil.example:9000"], "/secret/", Err(WrongHost)),
            ("GET", &["127.0.0.1"], "/secret/", Err(WrongHost)),
            ("GET", &["127.0.0.1:9001"], "/secret/", Err(WrongHost)),
            ("GET", &["127.0.0.1:9000", "evil.example"], "/secret/", Err(WrongHost)),
            ("GET", &["127.0.0.1:9000.evil.example"], "/secret/", Err(WrongHost)),
            ("GET", own, "/", Err(WrongToken)),
            ("GET", own, "", Err(WrongToken)),
            ("GET", own, "/secret", Err(WrongToken)),
            ("GET", own, "/secreT/", Err(WrongToken)),
            ("GET", own, "/secret1/", Err(WrongToken)),
            ("GET", own, "//secret/", Err(WrongToken)),
            ("GET", own, "/secret/x", Err(NotFound)),
            ("GET", own, "/secret//", Err(NotFound)),
            ("POST", own, "/secret/", Err(WrongMethod)),
            ("OPTIONS", own, "/secret/events", Err(WrongMethod)),
            // Who doesn't know the token learns nothing.
            ("POST", own, "/secre/", Err(WrongToken)),
        ] {
            let asked = hosts.iter().map(|host| host.as_bytes());
            assert_eq!(gate.allow(method, asked, path), allowed, "{method} {hosts:?} {path}");
        }
    }

    #[test]
    fn a_browser_does_not_say_the_usual_port() {
        let gate = Gate { token: "secret".to_owned(), port: HTTP };
        for (host, allowed) in [
            ("localhost", Ok(Wanted::Page)),
            ("127.0.0.1:80", Ok(Wanted::Page)),
            ("evil.example", Err(Refusal::WrongHost)),
            ("localhost:81", Err(Refusal::WrongHost)),
        ] {
            assert_eq!(gate.allow("GET", [host.as_bytes()], "/secret/"), allowed, "{host}");
        }
    }
}
