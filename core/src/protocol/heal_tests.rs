//! Heal: when a single server gets a key again that it lacks.

use std::sync::Arc;

use crate::clock::{Now, Tick};
use crate::error::{Loss, LossReason, Remaining};
use crate::op::{LockOp, Op, QuorumConfig, Reply, Verb, Verdict};
use crate::protocol::hold::tests::recipe;
use crate::protocol::waiting::tests::{at, ms};
use crate::protocol::{Acquisition, Amount, Command, Input, Recipe, Step, Tag};

/// A lock that is held on one server.
struct Bench {
    machine: Acquisition,
    owner: Arc<str>,
    /// The extension or heal that was sent last, and the time for which it asks.
    asked: Option<Tag>,
    asked_ms: u64,
    lost: Option<Loss>,
}

impl Bench {
    fn acquiring(servers: Option<u32>) -> Self {
        let quorum_config = servers.map(|servers| QuorumConfig { servers, max_ttl_ms: 60_000 });
        let recipe = Arc::new(Recipe { quorum_config, ..recipe(1, ms(9_000)) });
        let machine = Acquisition::new(recipe, None, 1, Now { tick: at(0), wall_us: 0, servers_us: 0 });
        let mut bench = Self { machine, owner: "".into(), asked: None, asked_ms: 0, lost: None };
        bench.bring(0, Input::Start);
        bench
    }

    fn held(servers: Option<u32>) -> Self {
        let mut bench = Self::acquiring(servers);
        bench.votes(1);
        bench
    }

    fn votes(&mut self, now: u64) {
        self.answer(now, Tag { round: 1, step: Step::Acquire, sent: at(0) }, Reply::new(Verdict::Vote, 1, 7));
    }

    fn bring(&mut self, now: u64, input: Input) {
        let mut out = Vec::new();
        self.machine.handle(Now { tick: at(now), wall_us: 0, servers_us: 0 }, input, &mut out);
        for command in out {
            match command {
                Command::Send { tag, request, .. } => match request.op {
                    Op::Lock(LockOp { by: owner, verb: Verb::Acquire { .. }, .. }) => self.owner = owner,
                    Op::Lock(LockOp { verb: Verb::Extend { ttl_ms, .. } | Verb::Heal { ttl_ms, .. }, .. }) => {
                        (self.asked, self.asked_ms) = (Some(tag), ttl_ms)
                    }
                    _ => (),
                },
                Command::Lost(loss) => self.lost = Some(loss),
                _ => (),
            }
        }
    }

    fn answer(&mut self, now: u64, tag: Tag, reply: Reply) {
        self.bring(now, Input::Answer { server: 0, tag, answer: Ok(reply) });
    }

    /// Answers what was asked last; gives what is asked then.
    fn answers(&mut self, now: u64, verdict: Verdict) -> Option<Step> {
        let tag = self.asked.take().unwrap();
        self.answer(now, tag, Reply::new(verdict, now * 1_000 + 1, 7));
        self.asked.map(|tag| tag.step)
    }

    fn valid_until(&self) -> Tick {
        self.machine.valid_until()
    }
}

fn gone() -> Verdict {
    Verdict::No { holder: None, remaining: Remaining::Gone }
}

fn a_missing_key_is_a_loss_unless_a_failover_took_it() {
    for (servers, has_failed_over, heals) in [(Some(1), true, true), (Some(1), false, false), (None, true, false)] {
        let mut bench = Bench::held(servers);
        if has_failed_over {
            bench.bring(1_000, Input::FailedOver(0));
            assert!(bench.asked.is_some(), "it is confirmed at once");
        } else {
            bench.bring(3_100, Input::Wake);
        }
        let asks = bench.answers(3_200, gone());
        assert_eq!((asks == Some(Step::Heal), bench.lost.is_none()), (heals, heals), "{servers:?} {has_failed_over}");
    }
}

fn a_key_lasts_as_long_as_the_hold_after_a_failover() {
    for quarantine in [None, Some(1)] {
        let mut bench = Bench::held(quarantine);
        bench.bring(1_000, Input::Extend(1, Amount::To(ms(60_000))));
        bench.answers(1_010, Verdict::Ok);
        // A replica is promoted that has the key and lacks the extension.
        bench.bring(2_000, Input::FailedOver(0));
        assert!(at(2_000).after(ms(bench.asked_ms)) >= bench.valid_until(), "{quarantine:?}: {} ms", bench.asked_ms);
    }
}

#[test]
fn a_confirmation_asks_for_all_of_the_time_that_the_hold_has() {
    a_key_lasts_as_long_as_the_hold_after_a_failover();
}

#[test]
fn a_lost_extension_that_nobody_asks_for_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::LostExtensionIgnored, a_key_lasts_as_long_as_the_hold_after_a_failover);
}

fn a_refusal_from_before_a_heal_is_no_loss() {
    let mut bench = Bench::held(Some(1));
    bench.bring(1_000, Input::FailedOver(0));
    assert_eq!(bench.answers(1_010, gone()), Some(Step::Heal));
    let heal = bench.asked.take().unwrap();
    // An extension on another connection, which the server reads ahead of the heal.
    bench.bring(1_020, Input::Extend(1, Amount::Own));
    let extension = bench.asked.take().expect("an extension does not wait for a heal");
    assert_eq!(extension.step, Step::Extend);
    bench.answer(1_030, heal, Reply::new(Verdict::Ok, 1, 7));
    bench.answer(1_040, extension, Reply::new(gone(), 1, 7));
    assert!(bench.lost.is_none(), "{:?}", bench.lost);
    assert_eq!(bench.answers(1_050, Verdict::Ok), None, "it is asked once more");
    assert!(bench.lost.is_none() && bench.valid_until() > at(9_000));
    // What is sent from here on shows what is so.
    bench.bring(2_000, Input::Extend(2, Amount::Own));
    bench.answers(2_010, gone());
    assert_eq!(bench.lost.map(|loss| loss.reason), Some(LossReason::Missing));
}

#[test]
fn an_extension_that_was_read_ahead_of_a_heal_refuses_nothing() {
    a_refusal_from_before_a_heal_is_no_loss();
}

#[test]
fn a_refusal_from_before_a_heal_that_counts_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::RefusalFromBeforeHeal, a_refusal_from_before_a_heal_is_no_loss);
}

#[test]
fn only_a_single_server_in_quarantine_gets_a_missing_key_again_and_only_after_a_failover() {
    a_missing_key_is_a_loss_unless_a_failover_took_it();
}

#[test]
fn a_deleted_key_that_is_written_again_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::DeletedKeyHealed, a_missing_key_is_a_loss_unless_a_failover_took_it);
}

fn only_an_extension_that_was_sent_after_the_failover_confirms_the_hold_there() {
    let mut bench = Bench::held(None);
    bench.bring(3_100, Input::Wake);
    bench.bring(3_150, Input::FailedOver(0));
    assert_eq!(bench.answers(3_200, Verdict::Ok), Some(Step::Extend), "the next one follows at once");
    assert_eq!(bench.answers(3_300, Verdict::Ok), None);
}

#[test]
fn an_extension_from_before_a_failover_confirms_nothing_after_it() {
    only_an_extension_that_was_sent_after_the_failover_confirms_the_hold_there();
}

#[test]
fn an_extension_from_before_a_failover_that_confirms_a_hold_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::EarlierReplidConfirms, only_an_extension_that_was_sent_after_the_failover_confirms_the_hold_there);
}

fn a_grant_by_a_vote_from_before_a_failover_is_confirmed_after_it() {
    for (servers, next) in [(Some(1), Some(Step::Heal)), (None, None)] {
        let mut bench = Bench::acquiring(servers);
        bench.bring(5, Input::FailedOver(0));
        bench.votes(6);
        bench.bring(6, Input::Wake);
        assert_eq!(bench.asked.map(|tag| tag.step), Some(Step::Extend), "at once");
        assert_eq!((bench.answers(10, gone()), bench.lost.is_some()), (next, next.is_none()), "{servers:?}");
    }
}

#[test]
fn a_vote_that_comes_behind_the_news_of_a_failover_is_confirmed() {
    a_grant_by_a_vote_from_before_a_failover_is_confirmed_after_it();
}

#[test]
fn a_vote_from_before_a_failover_that_counts_after_it_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::EarlierReplidGrants, a_grant_by_a_vote_from_before_a_failover_is_confirmed_after_it);
}

#[test]
fn a_refusal_that_comes_after_its_time_leads_to_a_heal_too() {
    let mut bench = Bench::held(Some(1));
    bench.bring(1_000, Input::FailedOver(0));
    let first = bench.asked.unwrap();
    bench.bring(2_100, Input::Wake);
    let second = bench.asked.unwrap();
    assert_ne!(first.round, second.round, "the first has timed out");
    bench.answer(2_200, first, Reply::new(gone(), 1, 0));
    assert!(bench.lost.is_none() && bench.asked == Some(second), "the second one reports the same");
    assert_eq!(bench.answers(2_300, gone()), Some(Step::Heal));
    let heal = bench.asked.unwrap();
    bench.bring(4_300, Input::Wake);
    bench.answers(4_400, gone());
    assert!(bench.lost.is_none(), "it may have overtaken the heal");
    bench.answer(4_500, heal, Reply::new(Verdict::Ok, 4_500_000, 7));
    assert!(bench.lost.is_none() && bench.valid_until() > at(9_100), "{:?}", bench.valid_until());
}

#[test]
fn a_hold_is_valid_from_the_sending_of_the_heal_or_lost_to_who_has_the_key() {
    let other = Verdict::No { holder: Some("other".into()), remaining: Remaining::For(ms(1)) };
    for (verdict, expected) in [(Verdict::Ok, None), (gone(), Some(LossReason::Missing)), (other, Some(LossReason::Taken))] {
        let mut bench = Bench::held(Some(1));
        bench.bring(1_000, Input::FailedOver(0));
        let before = bench.valid_until();
        assert_eq!(bench.answers(1_200, gone()), Some(Step::Heal));
        assert_eq!(bench.valid_until(), before, "nothing is confirmed yet");
        bench.answers(1_400, verdict);
        assert_eq!(bench.lost.as_ref().map(|loss| loss.reason), expected);
        let counted_from_the_heal = at(1_200).after(ms(9_000));
        assert!(expected.is_some() || (before..counted_from_the_heal).contains(&bench.valid_until()));
    }
}
