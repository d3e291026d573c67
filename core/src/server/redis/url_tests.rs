//! URLs: the parts that are read, and what is refused, without a password.

use super::*;
use crate::error::Code;

fn parse(url: &str) -> Result<Target, Error> {
    Target::parse(url, &ClientOptions::default())
}

#[test]
fn urls_say_what_redis_clients_take_them_to_say() {
    for (url, address, user, password, database) in [
        ("redis://localhost", "redis://localhost:6379", None, None, 0),
        ("redis://localhost/", "redis://localhost:6379", None, None, 0),
        ("redis://:s3cret@db.example:7000/4", "redis://db.example:7000/4", None, Some("s3cret"), 4),
        ("redis://ann:p%40ss%2Fw%25rd@h/0", "redis://h:6379", Some("ann"), Some("p@ss/w%rd"), 0),
        ("redis://ann@h", "redis://h:6379", Some("ann"), Some(""), 0),
        ("redis://h?db=3&user=bob&pass=x%20y", "redis://h:6379/3", Some("bob"), Some("x y"), 3),
        ("redis://[::1]:6380/2", "redis://[::1]:6380/2", None, None, 2),
        ("unix:///run/redis.sock", "unix:///run/redis.sock", None, None, 0),
        ("REDIS://Db.Example/1", "redis://Db.Example:6379/1", None, None, 1),
        ("redis://h/?db=4", "redis://h:6379/4", None, None, 4),
        ("valkey://ann:p@h:7000/2", "valkey://h:7000/2", Some("ann"), Some("p"), 2),
        ("valkey+unix:///run/valkey.sock?db=1", "valkey+unix:///run/valkey.sock?db=1", None, None, 1),
        ("redis+unix:///a%20b.sock?db=2&pass=p&user=u", "redis+unix:///a b.sock?db=2", Some("u"), Some("p"), 2),
    ] {
        if cfg!(not(unix)) && url.contains("unix") {
            continue;
        }
        let target = parse(url).unwrap();
        let found = (&*target.address, target.login.user.as_deref(), target.login.password.as_deref(), target.database);
        assert_eq!(found, (address, user, password, database), "{url}");
    }
}

#[test]
fn a_url_that_is_none_is_an_argument_error_without_its_password() {
    for url in [
        "",
        "localhost",
        "localhost:6379",
        "http://x:hunter2@localhost",
        "redis:hunter2@localhost",
        "redis://",
        "redis://:hunter2",
        "redis://:hunter2@",
        "redis://host:hunter2",
        "redis://x:hun/ter2@localhost:port",
        "redis://x:hunter2@localhost/notanumber",
        "redis://x:hunter2@localhost/-1",
        "redis://x:hunter2@localhost?db=one",
        "redis://localhost?passwort=hunter2",
        "redis://x:hun?ter2@localhost",
        "redis://x:1?hunter2@localhost",
        "redis://x:1/hunter2@localhost",
        "redis://x:1#hunter2@localhost",
        "redis://x:hunter2@localhost#insecure",
        "redis://x:%ff@localhost",
        "unix://relative/path",
        "unix:///path?pass=hunter2&db=x",
        "unix:///path?pass=hun@ter2&db=x",
        "redis://x:hunter2@localhost/3?db=4",
        "redis://x:hunter2@localhost?db=3&db=4",
        "redis://x:hunter2@localhost?pass=hunter2",
        "redis://x:hunter2@localhost?user=y",
        "redis+sentinel://x:hunter2@a,b",
        "redis-sentinel://x:hunter2@a,b/primary",
        "rediss+cluster://x:hunter2@a",
        "\"redis://x:hunter2@localhost\"",
        "'redis://:hunter2'",
    ] {
        let error = parse(url).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{url}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("ter2") && !text.contains("hun"), "{url}: {text}");
        assert!(text.starts_with("url: "), "{text}");
    }
}

#[test]
#[cfg(not(unix))]
fn a_unix_socket_is_refused_where_the_system_has_none() {
    for url in ["unix:///run/redis.sock", "valkey+unix:///s?db=1&pass=hunter2"] {
        let text = parse(url).unwrap_err().to_string();
        assert!(text.contains("no Unix sockets on this system") && !text.contains("hunter2"), "{url}: {text}");
    }
}

#[test]
fn what_is_wrong_is_named_with_what_is_right() {
    for (url, message) in [
        ("redis-sentinel://a,b/primary", "a service of Sentinel is redis+sentinel://"),
        ("SENTINEL://a", "a service of Sentinel is redis+sentinel://"),
        ("redis+sentinel://a,b", "names no service"),
        ("redis-cluster://a", "a cluster is redis+cluster://[user:password@]host"),
        ("localhost", "write redis://localhost"),
        ("localhost:6380", "write redis://localhost:6380"),
        ("db.example", "write redis://db.example"),
        ("hunter2@host", "a server is redis://"),
        ("\"redis://localhost\"", "has quotes around it"),
        ("'redis+cluster://a,b'", "has quotes around it"),
        ("'localhost'", "has quotes around it"),
        ("http://localhost", "valkeys:// mean the same"),
        ("redis://h/3?db=4", "two databases"),
        ("redis://ann@h?user=bob", "two users"),
        ("redis://h?db=1&db=1", "there twice"),
        ("redis://h:0", "the port must be a number from 1 to 65535"),
        ("redis://h:65536", "the port must be a number from 1 to 65535"),
        ("redis://ann:p@h:99999/1", "the port must be a number from 1 to 65535"),
        ("redis://[::1]:port", "the port must be a number from 1 to 65535"),
        ("redis://ann:a/b@h", "/ is written %2F"),
        ("redis://ann:a?b@h:6379", "? is %3F"),
        ("redis://ann:1/b@h:6379", "/ is written %2F"),
        ("redis://ann:1#b@h:6379", "# is %23"),
        ("redis://h#insecure", "it is written %23; certificate checks can't be switched off: give"),
        ("rediss://h?ssl_cert_reqs=none", "certificate checks can't be switched off"),
        ("rediss://h?ssl_check_hostname=false", "certificate checks can't be switched off"),
        ("rediss://h?ssl_ca_certs=/ca.pem", "give the file as tls_ca"),
        ("redis://h?socket_timeout=5", "give the option response_timeout"),
        ("redis://h?protocol=3", "there are db, user and pass"),
    ] {
        let text = parse(url).unwrap_err().to_string();
        assert!(text.contains(message), "{url}: {text}");
    }
}

#[test]
fn a_scheme_has_no_case_and_may_be_valkeys() {
    for (url, tls) in [
        ("Redis://h", false),
        ("valkey://h", false),
        ("unix:///s", false),
        ("RedisS://h", true),
        ("VALKEYS://h", true),
        ("redis+sentinel://h/m", false),
        ("redis+sentinel://h/m?sentinel_tls=yes", true),
        ("rediss+sentinel://h/m?sentinel_tls=no", true),
    ] {
        assert_eq!(speaks_tls(url), tls, "{url}");
    }
    let options = ClientOptions { tls_ca: Some("/none.pem".into()), ..ClientOptions::default() };
    assert!(Target::parse("VALKEYS://h", &options).unwrap_err().to_string().starts_with("tls_ca: "), "it reads the file");
}

#[test]
fn what_is_shown_of_a_target_has_no_credentials() {
    let target = parse("redis://ann:hunter2@localhost/1").unwrap();
    assert_eq!(format!("{target:?}"), "Target { address: \"redis://localhost:6379/1\", .. }");
}

#[test]
fn a_certificate_file_that_cannot_be_read_is_named() {
    let options = ClientOptions { tls_ca: Some("/does/not/exist.pem".into()), ..ClientOptions::default() };
    let error = Target::parse("rediss://localhost", &options).unwrap_err();
    assert!(error.to_string().starts_with("tls_ca: ") && error.to_string().contains("/does/not/exist.pem"), "{error}");
}
