//! Tests of URLs of Sentinel, right and wrong.

use super::*;

fn parse(url: &str) -> Result<SentinelUrl, String> {
    SentinelUrl::parse(url).map_err(|why| why.in_words_of(crate::wording::Language::Rust))
}

#[test]
fn a_url_says_whom_to_ask_and_for_what() {
    for (url, address, user, password) in [
        ("redis+sentinel://a/mymaster", "redis+sentinel://a:26379/mymaster", None, None),
        ("redis+sentinel://a:1,b,[::1]:3/m-1.x_y", "redis+sentinel://a:1,b:26379,[::1]:3/m-1.x_y", None, None),
        ("valkey+sentinel://10.0.0.1, b:2/m/", "valkey+sentinel://10.0.0.1:26379,b:2/m", None, None),
        ("REDISS+Sentinel://A.example/M/7", "rediss+sentinel://A.example:26379/M/7", None, None),
        ("redis+sentinel://a/m?db=3", "redis+sentinel://a:26379/m/3", None, None),
        ("redis+sentinel://a/m/0", "redis+sentinel://a:26379/m", None, None),
        (
            "valkeys+sentinel://ann:p%40s%2Fs,w%C3%B6@a,b/my%20one",
            "valkeys+sentinel://a:26379,b:26379/my one",
            Some("ann"),
            Some("p@s/s,wö"),
        ),
        ("redis+sentinel://:pw@a/m", "redis+sentinel://a:26379/m", None, Some("pw")),
        ("redis+sentinel://ann@a/m", "redis+sentinel://a:26379/m", Some("ann"), None),
        ("redis+sentinel://a/m?user=ann&pass=x%20y+z", "redis+sentinel://a:26379/m", Some("ann"), Some("x y z")),
    ] {
        let parsed = parse(url).unwrap();
        let found = (&*parsed.address(), parsed.user.as_deref(), parsed.password.as_deref());
        assert_eq!(found, (address, user, password), "{url}");
    }
}

#[test]
fn sentinels_have_credentials_and_tls_of_their_own() {
    for (url, user, password, primary_tls, sentinel_tls) in [
        ("redis+sentinel://ann:pw@a/m", None, None, false, false),
        ("redis+sentinel://a/m?sentinel_user=sue&sentinel_password=s%2Bw", Some("sue"), Some("s+w"), false, false),
        ("redis+sentinel://a/m?sentinel_password=&sentinel_tls=yes", None, Some(""), false, true),
        ("rediss+sentinel://a/m", None, None, true, true),
        ("valkeys+sentinel://a/m?sentinel_tls=no", None, None, true, false),
    ] {
        let parsed = parse(url).unwrap();
        let login = (parsed.sentinel_user.as_deref(), parsed.sentinel_password.as_deref());
        assert_eq!((login, parsed.primary_tls(), parsed.sentinel_tls), ((user, password), primary_tls, sentinel_tls), "{url}");
    }
}

#[test]
fn what_is_wrong_is_named_and_no_password_is() {
    for (rest, message) in [
        ("", "one of these is no host"),
        ("/m", "one of these is no host"),
        ("a,,b/m", "one of these is no host"),
        ("a,/m", "one of these is no host"),
        ("x:hunter2@/m", "one of these is no host"),
        ("a b/m", "one of these is no host"),
        ("%41/m", "one of these is no host"),
        ("[::g]/m", "one of these is no host"),
        ("::1/m", "in brackets"),
        ("a:0/m", "the port must be a number from 1 to 65535"),
        ("a:65536/m", "the port must be a number from 1 to 65535"),
        ("a:hunter2/m", "the port must be a number from 1 to 65535"),
        ("[::1]6/m", "the port must be a number from 1 to 65535"),
        ("a:1,b,a:1/m", "names the sentinel a:1 twice"),
        ("x:hunter2@a", "names no service"),
        ("a,b/", "names no service"),
        ("a?db=1", "names no service"),
        ("a//1", "names no service"),
        ("a/m%0A", "no control characters"),
        ("a/m/one", "a number, 0 or more"),
        ("a/m/-1", "a number, 0 or more"),
        ("a/m/1/2", "a number, 0 or more"),
        ("a/m?db=one", "a number, 0 or more"),
        ("a/m/3?db=3", "two databases"),
        ("a/m?db=3&db=4", "there twice"),
        ("a/m?sentinel_password=hunter2&sentinel_password=hunter2", "there twice"),
        ("x:hunter2@a/m?pass=hunter2", "two users or passwords"),
        ("x@a/m?user=y", "two users or passwords"),
        ("a/m?pass=hunter2&password=hunter2", "there twice"),
        ("a/m?sentinel_user=sue", "without a sentinel_password"),
        ("a/m?sentinel_tls=maybe", "sentinel_tls is yes or no"),
        ("a/m?sentinel_passwort=hunter2", "there are db, user, pass, sentinel_user, sentinel_password and sentinel_tls"),
        ("a/m?ssl_cert_reqs=none", "certificate checks can't be switched off"),
        ("x:hun%2@a/m", "% is %25"),
        ("x:hun%ff@a/m", "no UTF-8"),
        ("x:hun/ter2@a/m", "/ is written %2F"),
        ("x:hun?ter2@a/m", "? is %3F"),
        ("x:hun#ter2@a/m", "# begins what has no meaning"),
    ] {
        let url = format!("redis+sentinel://{rest}");
        let text = parse(&url).unwrap_err();
        assert!(text.contains(message), "{url}: {text}");
        assert!(!text.contains("hun") && !text.contains("ter2"), "{url}: {text}");
    }
}
