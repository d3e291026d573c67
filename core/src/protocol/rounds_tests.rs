//! Extensions on slow links, and the effects of their rounds on each other, in virtual time.

use super::*;
use crate::error::LossReason;
use crate::op::{Failure, FailureKind, Reply, Verdict};
use crate::protocol::hold::tests::{Bench, recipe, yes};
use crate::protocol::waiting::tests::{at, gone, ms};
use crate::protocol::{Amount, Quorum};

/// A hold of a second whose renewals are all applied, and whose answers take `trip` milliseconds.
fn slow(trip: u64) -> Bench {
    let mut bench = Bench::held(recipe(1, ms(1_000)));
    bench.run(at(20_000), |_, _| Some((ms(trip), yes(Verdict::Ok))));
    bench
}

#[test]
fn f04_a_hold_whose_renewals_are_all_answered_within_validity_is_kept_however_slow_the_link() {
    for trip in [0, 100, 220, 250, 330, 400, 500, 600, 640] {
        let bench = slow(trip);
        assert_eq!(bench.lost, None, "every round trip takes {trip} ms");
        assert!(bench.tries.len() < 200, "{trip} ms: {} tries in 20 ttls", bench.tries.len());
    }
    // The answer comes after validity has ended.
    assert!(slow(680).lost.is_some());
}

#[test]
fn a_quorum_keeps_a_hold_on_answers_of_one_late_round_and_not_on_those_of_two() {
    // The first server answers late. The second and the third answer every other round, in turns.
    let late = |server: usize| ms(if server == 0 { 300 } else { 350 });
    let mut bench = Bench::held(recipe(3, ms(1_000)));
    bench.run(at(10_000), |server, _| (server < 2).then(|| (late(server), yes(Verdict::Ok))));
    assert_eq!(bench.lost, None);
    let mut bench = Bench::held(recipe(3, ms(1_000)));
    let (mut round, mut last) = (0, at(0));
    let mut number = move |sent| {
        round += usize::from(std::mem::replace(&mut last, sent) != sent);
        round
    };
    bench.run_mut(at(10_000), |server, sent| (number(sent) % 3 == server).then(|| (ms(30), yes(Verdict::Ok))));
    assert_eq!(bench.lost.map(|loss| loss.reason), Some(LossReason::Expired), "no round has a majority of its own");
}

#[test]
fn an_extend_whose_first_try_is_answered_late_is_fulfilled_once_and_from_its_own_sending() {
    let mut bench = Bench::held(recipe(1, ms(1_000)));
    let answer = |_: usize, _: Tick| Some((ms(400), yes(Verdict::Ok)));
    bench.run(at(100), answer);
    bench.extend(1, answer);
    bench.run(at(499), answer);
    assert_eq!(bench.reported(), []);
    bench.run(at(501), answer);
    assert_eq!(bench.reported(), [(1, at(500), None)]);
    assert_eq!(bench.valid_until(), at(100).after(ms(1_000 - 12)));
    bench.run(at(3_000), answer);
    assert_eq!(bench.reported().len(), 1);
}

#[test]
fn a_renewal_does_not_wait_for_an_extension_that_asks_for_less() {
    let mut bench = Bench::held(recipe(1, ms(1_000)));
    let answer = |_: usize, _: Tick| Some((ms(450), yes(Verdict::Ok)));
    // Just before the first renewal is due. When the extend is answered, no renewal could be answered in time any more.
    bench.run(at(300), answer);
    bench.extend_to(1, Amount::To(ms(10)), answer);
    bench.run(at(5_000), answer);
    assert_eq!(bench.lost, None);
}

#[test]
fn what_ends_first_is_not_the_round_that_was_sent_last() {
    let mut rounds = three_rounds();
    // The second of three rounds is confirmed: the first ends, the third continues.
    let RoundAnswer::Confirmed(round) = rounds.answer_from(0, 2, &yes(Verdict::Ok)) else { panic!("not confirmed") };
    assert_eq!((round.round, round.sent), (2, at(200)));
    assert!(matches!(rounds.answer_from(0, 1, &no()), RoundAnswer::Nothing), "what was refused before doesn't matter");
    assert!(matches!(rounds.answer_from(0, 3, &yes(Verdict::Ok)), RoundAnswer::Confirmed(_)));
}

fn an_earlier_round_that_reaches_further_counts_also_behind_a_later_one() {
    // The answers to the first of two rounds. The first two servers have confirmed the second round.
    for (answers, third_to_second, confirmed) in [
        ([Some(true), None, Some(true)], None, true),
        ([None, Some(true), Some(true)], None, true),
        ([Some(true), None, Some(true)], Some(false), false),
        ([Some(false), Some(false), Some(false)], None, false),
    ] {
        let mut rounds = Bare::new(3, 0);
        let mut begin = |number, sent, span| {
            rounds.rounds.end_current();
            rounds.rounds.begin(Extension::new(number, sent, span, sent.after(ms(50)), Quorum::of(3)));
        };
        begin(1, at(100), ms(5_000));
        begin(2, at(200), ms(1_000));
        rounds.answer_from(0, 2, &yes(Verdict::Ok));
        assert!(matches!(rounds.answer_from(1, 2, &yes(Verdict::Ok)), RoundAnswer::Confirmed(_)));
        if third_to_second == Some(false) {
            assert!(matches!(rounds.answer_from(2, 2, &no()), RoundAnswer::Forgot));
        }
        let mut last = RoundAnswer::Nothing;
        for (server, answer_from) in answers.into_iter().enumerate() {
            if let Some(is_ours) = answer_from {
                last = rounds.answer_from(server, 1, &if is_ours { yes(Verdict::Ok) } else { no() });
            }
        }
        let counts = matches!(&last, RoundAnswer::Confirmed(round) if round.round == 1);
        assert_eq!(counts, confirmed, "{answers:?} {third_to_second:?}");
        assert!(confirmed || matches!(last, RoundAnswer::Nothing), "what was refused before the second doesn't matter");
        assert!(matches!(rounds.answer_from(2, 2, &no()), RoundAnswer::Forgot), "the second is still the last");
    }
}

#[test]
fn a_round_behind_a_confirmed_one_counts_where_it_reaches_further() {
    an_earlier_round_that_reaches_further_counts_also_behind_a_later_one();
}

#[test]
fn a_late_refusal_by_as_many_as_leave_no_majority_is_a_loss() {
    let mut rounds = three_rounds();
    assert!(matches!(rounds.answer_from(0, 1, &no()), RoundAnswer::Open(Progress::Refused(LossReason::Missing, None), false)));
}

#[test]
fn what_a_server_says_later_withdraws_its_earlier_yes() {
    let mut rounds = Bare::new(3, 2);
    assert!(matches!(rounds.answer_from(0, 1, &yes(Verdict::Ok)), RoundAnswer::Open(Progress::Open, false)));
    assert!(matches!(rounds.answer_from(0, 2, &no()), RoundAnswer::Open(Progress::Open, true)));
    // One of the two servers that confirmed the first round has lost the key since.
    assert!(!matches!(rounds.answer_from(1, 1, &yes(Verdict::Ok)), RoundAnswer::Confirmed(_)));
    assert!(matches!(rounds.answer_from(1, 2, &yes(Verdict::Ok)), RoundAnswer::Open(Progress::Open, true)));
    assert!(matches!(rounds.answer_from(2, 2, &yes(Verdict::Ok)), RoundAnswer::Confirmed(_)));
}

#[test]
fn a_clock_that_was_seen_to_jump_doesnt_count_for_rounds_before_that() {
    let mut rounds = Bare::new(3, 2);
    let time = |ms: u64| Ok(Reply::new(Verdict::Ok, ms * 1_000, 7));
    rounds.readings = vec![Some(Reading { sent: at(0), server_us: 0 }); 3];
    assert!(matches!(rounds.answer_from(0, 1, &time(110)), RoundAnswer::Open(Progress::Open, false)));
    assert!(matches!(rounds.answer_from(0, 2, &time(60_000)), RoundAnswer::Open(Progress::Open, true)), "a minute in 100 ms");
    assert!(!matches!(rounds.answer_from(1, 1, &time(120)), RoundAnswer::Confirmed(_)), "its key ends a minute early");
}

#[test]
fn a_round_that_every_server_failed_is_forgotten() {
    let mut rounds = three_rounds();
    let failed = Err(Failure::unknown(FailureKind::Timeout, "late"));
    assert!(matches!(rounds.answer_from(0, 1, &failed), RoundAnswer::Open(Progress::Unknown, false)));
    assert!(matches!(rounds.answer_from(0, 1, &yes(Verdict::Ok)), RoundAnswer::Nothing));
}

fn no() -> Answer {
    Ok(Reply::new(gone(), 0, 7))
}

/// Rounds without a hold. All but the last have timed out.
struct Bare {
    rounds: Rounds,
    readings: Vec<Option<Reading>>,
}

fn three_rounds() -> Bare {
    Bare::new(1, 3)
}

impl Bare {
    fn new(servers: usize, count: u32) -> Self {
        let mut rounds = Rounds::default();
        for number in 1..=count {
            rounds.end_current();
            let (sent, quorum) = (at(u64::from(number) * 100), Quorum::of(servers));
            rounds.begin(Extension::new(number, sent, ms(1_000), sent.after(ms(100)), quorum));
        }
        Self { rounds, readings: vec![None; servers] }
    }

    fn answer_from(&mut self, server: usize, round: u32, answer: &Answer) -> RoundAnswer {
        self.rounds.answer((server, round), at(400), &"us".into(), answer.clone(), &mut self.readings)
    }
}

#[test]
fn the_tables_notice_what_is_left_out() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::EarlierYesStands, what_a_server_says_later_withdraws_its_earlier_yes);
    assert_noticed(Mutant::ExtendDelaysRenewal, a_renewal_does_not_wait_for_an_extension_that_asks_for_less);
    assert_noticed(Mutant::LongerRoundForgotten, an_earlier_round_that_reaches_further_counts_also_behind_a_later_one);
    assert_noticed(Mutant::StaleRefusal, what_ends_first_is_not_the_round_that_was_sent_last);
}
