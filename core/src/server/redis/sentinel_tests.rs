//! Tables of what sentinels answer, and what is chosen.

use super::*;
use crate::server::redis::login::Login;

fn address(text: &str) -> Address {
    let (host, port) = text.split_once(':').unwrap();
    Address { host: host.into(), port: port.parse().unwrap() }
}

fn names(place: &str, epoch: u64) -> PrimaryReply {
    PrimaryReply::Named(Named { address: address(place), epoch, is_down: false, quorum: 2, down_after_ms: 1_000 })
}

fn failed(kind: FailureKind, why: &str) -> PrimaryReply {
    PrimaryReply::Failed(Failure::not_applied(kind, why))
}

fn bulk(text: &str) -> Value {
    Value::BulkString(text.into())
}

fn fields(pairs: &[(&str, &str)]) -> Value {
    Value::Array(pairs.iter().flat_map(|(name, value)| [bulk(name), bulk(value)]).collect())
}

fn error(line: &str) -> RedisResult<Value> {
    redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).and_then(Value::extract_error)
}

const PRIMARY: [(&str, &str); 6] =
    [("name", "m"), ("ip", "10.0.0.1"), ("port", "6380"), ("flags", "master"), ("config-epoch", "7"), ("quorum", "2")];

#[test]
fn an_answer_names_a_primary_or_says_why_not() {
    let named = Named { address: address("10.0.0.1:6380"), epoch: 7, is_down: false, quorum: 2, down_after_ms: 0 };
    assert_eq!(primary_reply(Ok(fields(&PRIMARY))), PrimaryReply::Named(named.clone()));
    for (flags, is_down) in [("master", false), ("s_down,master", true), ("master,o_down,failover_in_progress", true)] {
        let more = [&PRIMARY[..3], &[("flags", flags), ("down-after-milliseconds", "500"), PRIMARY[4], PRIMARY[5]]].concat();
        assert_eq!(
            primary_reply(Ok(fields(&more))),
            PrimaryReply::Named(Named { is_down, down_after_ms: 500, ..named.clone() }),
            "{flags}"
        );
    }
    assert_eq!(primary_reply(Ok(Value::Nil)), PrimaryReply::Unknown);
    assert_eq!(primary_reply(error("ERR No such master with that name")), PrimaryReply::Unknown);
    for (line, kind, words) in [
        ("NOAUTH Authentication required.", FailureKind::Denied, "?sentinel_password="),
        ("NOPERM this user has no permissions to run the 'sentinel|master' command", FailureKind::Denied, "+sentinel|master"),
        ("ERR unknown command 'SENTINEL', with args beginning with: 'MASTER'", FailureKind::Mismatch, "is no sentinel"),
        ("BUSY later", FailureKind::Other, "BUSY later"),
    ] {
        let PrimaryReply::Failed(failure) = primary_reply(error(line)) else { panic!("{line}") };
        assert!(failure.kind == kind && failure.message.contains(words) && !failure.maybe_applied, "{line}: {failure}");
    }
}

#[test]
fn an_answer_without_a_whole_address_or_without_an_epoch_is_garbage() {
    for wrong in [
        Value::Okay,
        Value::Int(1),
        Value::Array(vec![]),
        Value::Array(vec![bulk("ip")]),
        Value::Array(vec![Value::Array(vec![])]),
        fields(&PRIMARY[..4]),
        fields(&[("ip", ""), PRIMARY[2], PRIMARY[4]]),
        fields(&[PRIMARY[1], ("port", "0"), PRIMARY[4]]),
        fields(&[PRIMARY[1], ("port", "70000"), PRIMARY[4]]),
        fields(&[PRIMARY[1], PRIMARY[2], ("config-epoch", "-1")]),
    ] {
        let PrimaryReply::Failed(failure) = primary_reply(Ok(wrong.clone())) else { panic!("{wrong:?}") };
        assert_eq!((failure.kind, &*failure.message), (FailureKind::Protocol, GARBAGE), "{wrong:?}");
        assert_eq!(others(Ok(wrong)), (vec![], vec![]));
    }
}

#[test]
fn credentials_are_refused_without_being_repeated() {
    assert_eq!(logged_in(Ok(Value::Okay)), Ok(()));
    for (line, kind, words) in [
        ("WRONGPASS invalid username-password pair", FailureKind::Denied, "refuses sentinel_user or sentinel_password"),
        ("ERR AUTH <password> called without any password configured", FailureKind::Denied, "leave sentinel_password out"),
        ("ERR unknown command 'AUTH', with args beginning with: 'hunter2'", FailureKind::Other, "with an error"),
    ] {
        let failure = logged_in(error(line)).unwrap_err();
        assert!(failure.kind == kind && failure.message.contains(words), "{line}: {failure}");
        assert!(!failure.message.contains("hunter2"), "{failure}");
    }
    let command = |user: Option<&str>, password: Option<&str>| {
        let login = Login { user: user.map(Into::into), password: password.map(Into::into) };
        login.command().map(|command| String::from_utf8(command).unwrap())
    };
    assert_eq!(command(None, None), None);
    assert_eq!(command(None, Some("p")).unwrap(), "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n");
    assert_eq!(command(Some("u"), Some("p")).unwrap(), "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n");
}

const AT: Tick = Tick::from_micros(1_000_000);

/// The choice after these answers, `millis` after the first one, in words.
fn choice(known: usize, floor: u64, answers: &[PrimaryReply], millis: u64, is_over: bool) -> String {
    let asked: Vec<Address> = (0..known).map(|number| address(&format!("s{number}:1"))).collect();
    let mut poll = Poll::new("m", asked.clone(), floor, BTreeSet::new(), 1);
    answers.iter().zip(asked).for_each(|(reply, from)| poll.take(from, reply.clone(), Ids::default(), AT));
    match poll.choice(AT.after(Duration::from_millis(millis)), is_over) {
        None => "waits".to_owned(),
        Some(Ok(named)) => format!("{} {}", named.address, named.epoch),
        Some(Err(failure)) => format!("{}: {}", failure.kind.as_str(), failure.message),
    }
}

fn the_highest_epoch_wins() {
    let (a5, a4, b5, b6) = (names("a:1", 5), names("a:1", 4), names("b:1", 5), names("b:1", 6));
    let (unknown, refused) = (PrimaryReply::Unknown, failed(FailureKind::Refused, "no"));
    type Case<'a> = (usize, u64, &'a [&'a PrimaryReply], u64, bool, &'a str);
    let cases: &[Case<'_>] = &[
        (1, 0, &[&a5], 0, false, "a:1 5"),
        (3, 0, &[], 9_000, false, "waits"),
        (3, 0, &[&a5], 49, false, "waits"),
        (3, 0, &[&a5], 50, false, "a:1 5"),
        (3, 0, &[&a5], 0, true, "a:1 5"),
        (3, 0, &[&a5, &a5], 0, false, "a:1 5"),
        (4, 0, &[&a5, &a5], 0, false, "waits"),
        (3, 0, &[&a4, &a5], 0, false, "waits"),
        (3, 0, &[&a4, &b5], 50, false, "b:1 5"),
        (3, 0, &[&a5, &a5, &b6], 0, false, "b:1 6"),
        (5, 0, &[&a5, &a5, &b6], 49, false, "waits"),
        (5, 0, &[&a5, &a5, &b6], 50, false, "b:1 6"),
        (3, 0, &[&refused, &a5], 0, false, "waits"),
        (3, 0, &[&refused, &unknown, &a5], 0, false, "a:1 5"),
        (3, 0, &[&refused, &unknown], 9_000, false, "waits"),
        (3, 5, &[&a4], 9_000, false, "waits"),
        (3, 5, &[&a4, &a4, &b5], 0, false, "b:1 5"),
        (3, 5, &[&a4, &a4, &b6], 0, false, "b:1 6"),
        // Where a majority agrees in the highest epoch, one that says something else is alone.
        (3, 0, &[&a5, &b5], 0, false, "waits"),
        (3, 0, &[&a5, &b5, &a5], 0, false, "a:1 5"),
    ];
    for (known, floor, answers, millis, is_over, expected) in cases {
        let answers: Vec<PrimaryReply> = answers.iter().map(|reply| (*reply).clone()).collect();
        assert_eq!(choice(*known, *floor, &answers, *millis, *is_over), *expected, "{known} {floor} {answers:?} {millis}");
    }
    let lower = |floor: u64, answers: &[&PrimaryReply]| {
        let asked: Vec<Address> = (0..3).map(|number| address(&format!("s{number}:1"))).collect();
        let mut poll = Poll::new("m", asked.clone(), floor, BTreeSet::new(), 1);
        answers.iter().zip(asked).for_each(|(reply, from)| poll.take(from, (*reply).clone(), Ids::default(), AT));
        poll.agreed_below()
    };
    assert_eq!(lower(5, &[&a4, &a4, &unknown]), Some(4));
    assert_eq!((lower(4, &[&a4, &a4]), lower(5, &[&a4, &unknown]), lower(6, &[&a5, &b5, &a4])), (None, None, None));
    let behind = choice(2, 6, &[a5.clone(), a4], 0, false);
    assert!(behind.starts_with("read_only: no sentinel names the primary of the service \"m\": "), "{behind}");
    assert!(behind.contains("s0:1: it names a:1 in epoch 5, and epoch 6 has come since"), "{behind}");
}

#[test]
fn the_highest_epoch_wins_among_the_answers_that_come_soon_and_none_below_one_that_was_seen() {
    the_highest_epoch_wins();
}

#[test]
fn an_epoch_that_is_ignored_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::EpochIgnored, the_highest_epoch_wins);
}

#[test]
fn where_nobody_names_a_primary_the_reasons_are_reported_with_who_gave_them() {
    let (unknown, refused) = (PrimaryReply::Unknown, failed(FailureKind::Refused, "could not connect"));
    let (denied, none) = (failed(FailureKind::Denied, "wrong password"), failed(FailureKind::Mismatch, "is no sentinel"));
    let disagree = [names("a:1", 5), names("b:2", 5)];
    for (known, answers, expected) in [
        (2, &disagree[..], "other: the sentinels disagree: in epoch 5 they name a:1 and b:2 as the primary of the service \"m\""),
        (
            3,
            &[unknown.clone(), refused.clone(), unknown.clone()],
            "mismatch: the sentinels watch no service \"m\": its name stands",
        ),
        (
            3,
            &[unknown.clone(), refused.clone(), refused.clone()],
            "refused: no sentinel names the primary of the service \"m\": s0:1: it watches no such service; s1:1, s2:1: could not connect",
        ),
        (
            2,
            &[refused.clone(), refused.clone()],
            "refused: no sentinel names the primary of the service \"m\": s0:1, s1:1: could not connect",
        ),
        (
            3,
            &[refused.clone(), denied.clone(), denied.clone()],
            "denied: no sentinel names the primary of the service \"m\": s0:1: could not",
        ),
        (
            2,
            &[none.clone(), none.clone()],
            "mismatch: no sentinel names the primary of the service \"m\": s0:1, s1:1: is no sentinel",
        ),
        (2, &[none, refused], "refused: no sentinel"),
    ] {
        let reply = choice(known, 0, answers, 0, false);
        assert!(reply.starts_with(expected), "{reply}");
    }
    assert_eq!(
        choice(2, 0, &[], 0, true),
        "timeout: no sentinel names the primary of the service \"m\": s0:1, s1:1: no answer in time"
    );
}

#[test]
fn a_message_is_about_the_service_whose_whole_name_it_begins_with() {
    for (message, expected) in [("m 10.0.0.1 1 10.0.0.2 1", true), ("m2 10.0.0.1 1 10.0.0.2 1", false), ("m", false), ("", false)]
    {
        assert_eq!(is_about(message, "m"), expected, "{message}");
    }
}

#[test]
fn a_sentinel_of_another_group_is_not_followed_whatever_its_epoch() {
    let ids =
        |own: &str, others: &[&str]| Ids { own: Some(own.into()), others: others.iter().map(|id| (*id).to_owned()).collect() };
    let asked: Vec<Address> = ["s0:1", "s1:1", "s2:1", "x:1"].map(address).into();
    let known = || ["a", "b", "c"].map(str::to_owned).into();
    for (known, words) in [(BTreeSet::new(), "p:1"), (known(), "p:1")] {
        let mut poll = Poll::new("m", asked.clone(), 0, known, 4);
        poll.take(asked[3].clone(), names("q:1", 9), ids("x", &[]), AT);
        poll.take(asked[0].clone(), names("p:1", 1), ids("a", &["b", "c"]), AT);
        poll.take(asked[1].clone(), names("p:1", 1), ids("b", &["a", "c"]), AT);
        let chosen = poll.choice(AT.after(GATHER_FIRST), false).unwrap().unwrap();
        assert_eq!((chosen.address.to_string(), poll.foreign()), (words.to_owned(), vec![asked[3].clone()]));
        assert_eq!(poll.ids(), ["a", "b", "c"].map(str::to_owned).into());
    }
    // It alone answers, at an address that a sentinel had before.
    let mut poll = Poll::new("m", asked.clone(), 0, known(), 3);
    poll.take(asked[3].clone(), names("q:1", 9), ids("x", &[]), AT);
    let failure = poll.choice(AT.after(GATHER_FIRST), true).unwrap().unwrap_err();
    assert!(failure.message.contains("is of another group"), "{failure}");
    // Two groups in one URL.
    let mut poll = Poll::new("m", asked[2..].into(), 0, BTreeSet::new(), 2);
    poll.take(asked[3].clone(), names("q:1", 9), ids("x", &[]), AT);
    poll.take(asked[2].clone(), names("p:1", 1), ids("c", &["a", "b"]), AT);
    let failure = poll.choice(AT, false).unwrap().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Mismatch);
    assert!(failure.message.contains("x:1, and s2:1 watch different services"), "{failure}");
}
