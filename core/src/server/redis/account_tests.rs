//! Accounts: when the provider is asked, and what its answers and the server's refusals mean.

use super::*;

const START: Tick = Tick::from_micros(1_000_000);
const NODE: &str = "one:7000";

fn seconds(seconds: u64) -> Tick {
    START.after(Duration::from_secs(seconds))
}

fn credentials(password: &str, life: Option<u64>) -> Credentials {
    Credentials { life: life.map(Duration::from_secs), ..Credentials::new(password) }
}

fn given(life: Option<u64>) -> Account {
    let mut account = Account::default();
    account.answered(credentials("one", life), START);
    account
}

fn failure() -> Failure {
    Failure::not_applied(FailureKind::Denied, "no")
}

/// The need in a word.
fn kind_of(need: &Need) -> &'static str {
    match need {
        Need::Use => "use",
        Need::Ask => "ask",
        Need::Rest(_) => "rest",
    }
}

#[test]
fn credentials_are_asked_for_when_two_thirds_of_their_life_are_over() {
    for (life, renewed_after, at, need) in [
        (Some(900), 600, 599, "use"),
        (Some(900), 600, 600, "ask"),
        (Some(540), 360, 359, "use"),
        (Some(3), 2, 1, "use"),
        (Some(3), 2, 2, "ask"),
        (None, 300, 299, "use"),
        (None, 300, 300, "ask"),
    ] {
        let account = given(life);
        assert_eq!(account.due(), seconds(renewed_after), "{life:?}");
        assert_eq!(kind_of(&account.need(NODE, seconds(at))), need, "{life:?} after {at} s");
    }
    let account = Account::default();
    assert_eq!((kind_of(&account.need(NODE, START)), account.due()), ("ask", Tick::NEVER), "nobody has needed any so far");
}

#[test]
fn a_long_life_is_renewed_three_minutes_before_its_end_and_a_tiny_one_keeps_nobody_busy() {
    for life in [540, 900, 3_600, 43_200] {
        assert!(given(Some(life)).due() <= seconds(life - 180), "{life} s");
    }
    assert!(given(Some(0)).due() >= START.after(Duration::from_millis(600)));
}

#[test]
fn a_failing_provider_stops_no_connection_while_the_last_credentials_live() {
    let mut account = given(Some(3));
    assert!(account.failed(failure(), seconds(2)), "nobody else reports it");
    assert_eq!(kind_of(&account.outcome(NODE, seconds(2))), "use");
    assert!(!account.failed(failure(), seconds(2)), "it is no news");
    assert_eq!(kind_of(&account.need(NODE, seconds(2))), "use", "without another call in the pause");
    assert_eq!(kind_of(&account.outcome(NODE, seconds(3))), "rest", "their life is over");
    let mut late = given(Some(3));
    assert!(late.failed(failure(), seconds(4)), "live connections outlast their credentials");
    let mut new = Account::default();
    assert!(!new.failed(failure(), START), "its caller gets it");
    assert_eq!((kind_of(&new.outcome(NODE, START)), kind_of(&new.need(NODE, START))), ("rest", "ask"));
}

#[test]
fn refused_credentials_are_replaced_at_once_and_then_with_pauses() {
    let mut account = given(None);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let login = Arc::clone(account.login(NODE).unwrap());
        assert!(account.refused(NODE, &login, &failure(), true, START));
        assert!(!account.refused(NODE, &login, &failure(), true, START), "another connection was refused, too");
        pauses.push(account.due().since(START).as_millis());
        assert_eq!(kind_of(&account.need(NODE, account.due())), "ask");
        account.answered(credentials("next", None), START);
        assert!(!account.refused(NODE, &login, &failure(), true, START), "others have come since");
    }
    assert_eq!(pauses, [0, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    let login = Arc::clone(account.login(NODE).unwrap());
    account.accepted(NODE, &login);
    account.refused(NODE, &login, &failure(), true, START);
    assert_eq!(account.due(), START, "after a success the count begins again");
}

#[test]
fn a_connection_does_not_wait_for_the_pause_of_refused_credentials() {
    let mut account = given(None);
    for _ in 0..2 {
        let login = Arc::clone(account.login(NODE).unwrap());
        account.refused(NODE, &login, &failure(), true, START);
        if kind_of(&account.need(NODE, START)) == "ask" {
            account.answered(credentials("next", None), START);
        }
    }
    assert_eq!(kind_of(&account.need(NODE, START)), "rest", "it fails at once, by the last refusal");
}

#[test]
fn a_password_that_a_server_repeats_is_found_though_it_is_cut() {
    let login = Login { user: None, password: Some("hunter2hunter2".into()) };
    for (text, repeated) in [("unknown command 'hunter2h'", true), ("hunter", true), ("hunte", false), ("", false)] {
        assert_eq!(login.is_repeated_in(text), repeated, "{text}");
    }
    assert!(!Login::default().is_repeated_in("anything"));
}

#[test]
fn refused_credentials_are_asked_for_again_when_a_caller_needs_a_connection() {
    let mut account = given(None);
    let login = Arc::clone(account.login(NODE).unwrap());
    assert!(account.refused(NODE, &login, &failure(), false, START));
    assert_eq!(
        (account.due(), kind_of(&account.need(NODE, START))),
        (seconds(300), "ask"),
        "not earlier than without the refusal"
    );
    assert!(!account.refused(NODE, &login, &failure(), true, START), "it is known");
    assert_eq!(account.due(), START, "but a live connection needs others");
}

#[test]
fn what_one_node_refuses_another_may_accept() {
    let mut account = given(Some(900));
    let login = Arc::clone(account.login(NODE).unwrap());
    for pause in [0, 500, 1_000, 2_000] {
        let at = START.after(Duration::from_secs(1));
        let refused = Arc::clone(account.login("two:7000").unwrap());
        assert!(account.refused("two:7000", &refused, &failure(), true, at));
        assert_eq!(account.due(), at.after(Duration::from_millis(pause)), "the pauses grow");
        assert_eq!(kind_of(&account.need("two:7000", at)), if pause == 0 { "ask" } else { "rest" });
        assert_eq!(kind_of(&account.need(NODE, at)), "use", "the other node continues");
        account.accepted(NODE, &login);
        // The provider gives the same ones: the node gets them once more, and the others are not.
        account.answered(credentials("one", Some(900)), at);
        assert!(!Arc::ptr_eq(account.login("two:7000").unwrap(), &refused));
        assert!(Arc::ptr_eq(account.login(NODE).unwrap(), &login));
        assert_eq!(kind_of(&account.need("two:7000", at)), "use");
    }
    let accepted = Arc::clone(account.login("two:7000").unwrap());
    account.accepted("two:7000", &accepted);
    assert!(account.refused("two:7000", &accepted, &failure(), true, seconds(3)));
    assert_eq!(account.due(), seconds(3), "after a success the count begins again");
}

#[test]
fn the_failures_of_a_provider_concern_every_node_and_the_refusals_of_nodes_that_are_gone_are_forgotten() {
    let mut account = given(Some(1));
    let login = Arc::clone(account.login(NODE).unwrap());
    account.refused(NODE, &login, &failure(), false, START);
    for _ in 0..2 {
        account.failed(failure(), seconds(2));
    }
    assert_eq!((kind_of(&account.need(NODE, seconds(2))), kind_of(&account.need("two:7000", seconds(2)))), ("rest", "rest"));
    account.answered(credentials("two", None), seconds(59));
    assert_eq!(account.refusals.len(), 1);
    account.answered(credentials("two", None), seconds(60));
    assert_eq!(account.refusals.len(), 0);
}
