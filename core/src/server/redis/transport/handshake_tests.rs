//! Refused greetings: what is told of a server that refuses the first words, without a password in it.

use super::*;
use std::time::Duration;

use crate::options::ClientOptions;
use crate::server::redis::settings::name;

fn settings(url: &str) -> Settings {
    let target = Target::parse(url, &ClientOptions::default()).unwrap();
    let timeout = Duration::from_secs(1);
    Settings { target, name: name(None), quorum_config: None, connect_timeout: timeout, response_timeout: timeout }
}

/// What comes of these answers to the first words.
fn failed(url: &str, answers: &[&str]) -> Failure {
    let settings = settings(url);
    let steps: Vec<Step> = questions(&settings).iter().map(|(step, _)| *step).collect();
    let answers = answers.iter().map(|answer| redis::parse_redis_value(format!("{answer}\r\n").as_bytes()));
    match judge(steps.into_iter().zip(answers), &settings) {
        Err(failure) => failure,
        Ok(_) => panic!("{url} was let in"),
    }
}

#[test]
fn a_password_that_the_server_repeats_is_not_told_on() {
    for password in ["hunter2hunter2hunter2", "hunter2", "hu", "PASSWORD", "geheim\u{1b}x"] {
        let encoded = password.replace('\u{1b}', "%1B");
        let url = format!("redis://ann:{encoded}@localhost/3");
        let cut = &password[..password.len().min(6)];
        for answers in [
            vec![format!("-ERR unknown command 'AUTH', with args beginning with: 'ann' '{password}' ")],
            vec![format!("-ERR unknown command `renamed`, with args beginning with: `ann` `{cut}")],
            vec![format!("-{password} is no password")],
            vec![format!("-WRONGPASS {password} is wrong")],
            vec![format!("-ERR invalid password {password}")],
            vec![format!("-LOADING {password}")],
            vec!["+OK".to_owned(), format!("-ERR unknown command 'AUTH' 'ann' '{password}'")],
            vec!["+OK".to_owned(), "+OK".to_owned(), format!("-ERR '{password}'"), "HTTP".to_owned()],
            vec!["+OK".to_owned(), "+OK".to_owned(), "+OK".to_owned(), format!("-ERR unknown command 'x' '{password}'")],
        ] {
            let failure = failed(&url, &answers.iter().map(String::as_str).collect::<Vec<_>>());
            let told = failure.message.replace("password", "");
            assert!(!told.contains(cut), "{answers:?} became {failure}");
        }
    }
}

#[test]
fn why_the_first_words_were_refused_is_told_all_the_same() {
    for (answers, kind, words) in [
        (
            &["-WRONGPASS invalid username-password pair or user is disabled."][..],
            FailureKind::Denied,
            "user or password (WRONGPASS)",
        ),
        (&["-ERR invalid password"], FailureKind::Denied, "user or password (ERR)"),
        (&["-ERR AUTH <password> called without any password configured"], FailureKind::Denied, "asks for none (ERR)"),
        (&["-ERR max number of clients reached"], FailureKind::Other, "ERR max number of clients reached"),
        (&["-LOADING Redis is loading"], FailureKind::Loading, "(LOADING)"),
        (&["+OK", "-ERR DB index is out of range"], FailureKind::Other, "database 3 can't be used: ERR DB index is out of range"),
        (&["+OK", "+OK", "+OK", "-LOADING Redis is loading"], FailureKind::Loading, "LOADING Redis is loading"),
        (&["+OK", "+OK", "+OK", "-MOVED 866 127.0.0.1:7001"], FailureKind::Mismatch, "redis+cluster:// is not supported yet"),
        (
            &["+OK", "+OK", "+OK", "-ERR unknown command 'EVAL', with args beginning with: '-- Asks'"],
            FailureKind::Denied,
            "(ERR unknown command 'EVAL')",
        ),
    ] {
        let failure = failed("redis://ann:hunter2@localhost/3", answers);
        assert_eq!((failure.kind, failure.maybe_applied), (kind, false), "{failure}");
        assert!(failure.message.contains(words), "{failure}");
    }
}
