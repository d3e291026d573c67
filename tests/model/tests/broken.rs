//! Without any one of its rules the protocol breaks a promise, and the checker finds how.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that fails shows the trace, and one that passes what it took"
)]

use locktender_model::promise::Violation::{self, Exclusion, Order, Uniqueness};
use locktender_model::rules::Rule;
use locktender_model::scenario::Scenario;
use locktender_model::search::search;

/// Every rule, with the smallest scenario known to need it, and what breaks first.
const BROKEN: [(Scenario, Violation); 14] = [
    (Scenario::timed(3, 2).broken(Rule::NoWriteBack), Order),
    (Scenario::timed(3, 2).broken(Rule::ConfirmAnywhere), Uniqueness),
    (Scenario::untimed(3, 2).broken(Rule::ConfirmUnowned), Uniqueness),
    (Scenario::untimed(3, 2).broken(Rule::ConfirmOlder), Uniqueness),
    (Scenario::timed(2, 2).broken(Rule::SmallQuorum), Order),
    (Scenario::timed(3, 2).forgetting().broken(Rule::NoQuarantine), Exclusion),
    (Scenario::timed(1, 2).handing_over().broken(Rule::OldFence), Order),
    (Scenario::timed(1, 3).broken(Rule::ReleaseUnowned), Exclusion),
    (Scenario::timed(3, 2).extending(2).forgetting().broken(Rule::EarlyHeal), Exclusion),
    (Scenario::untimed(3, 2).broken(Rule::CountAbove), Uniqueness),
    (Scenario::timed(3, 2).extending(2).broken(Rule::CountEarlierRound), Exclusion),
    (Scenario::timed(3, 2).extending(2).broken(Rule::HealUnanswered), Exclusion),
    (Scenario::timed(3, 2).extending(2).broken(Rule::HealFailed), Exclusion),
    (Scenario::timed(3, 2).extending(2).forgetting().broken(Rule::HealInQuarantine), Exclusion),
];

#[test]
fn every_rule_is_needed() {
    for ((scenario, expected), rule) in BROKEN.into_iter().zip(Rule::ALL) {
        assert_eq!(scenario.broken, Some(rule));
        let outcome = search(&scenario, usize::MAX, |_, _, _| ()).unwrap();
        let Some((violation, trace)) = outcome.violation else { panic!("{scenario}: nothing breaks") };
        eprintln!("{scenario}: {violation:?} after {} states, {:.3} s\n{trace}", outcome.states, outcome.took.as_secs_f64());
        assert_eq!(violation, expected, "{scenario}:\n{trace}");
    }
}

#[test]
fn a_counterexample_reads_from_the_first_request_to_the_last_grant() {
    let scenario = Scenario::timed(2, 2).broken(Rule::SmallQuorum);
    let outcome = search(&scenario, usize::MAX, |_, _, _| ()).unwrap();
    let (_, trace) = outcome.violation.unwrap();
    let text = trace.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), trace.len());
    assert!(lines[0].contains("A asks all servers"), "{text}");
    assert!(lines[lines.len() - 1].contains("is granted with fence"), "{text}");
}
