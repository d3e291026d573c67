//! Known sentinels: who is asked for a service, and the highest epoch that they have named. Known once for all connections. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::Tick;
use crate::op::SentinelFacts;
use crate::server::redis::address::Address;
use crate::server::redis::sentinel::{Poll, PrimaryReply};
use crate::server::redis::sentinel_groups::Ids;

/// The most sentinels that are remembered besides those of the URL.
const LEARNED: usize = 32;

/// The time after which a lower epoch is believed, in which a majority of the sentinels agrees. They begin to count again when an
/// operator has them watch the service again.
const COUNTED_AGAIN: Duration = Duration::from_secs(60);

/// What is known of the sentinels of a service, for all connections to it.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The sentinels of the URL, and the address of each at which it answered.
    hosts: Vec<(Address, Option<Address>)>,
    /// The sentinels that others know.
    learned: Vec<Address>,
    /// The ids of the sentinels that were believed last.
    ids: BTreeSet<String>,
    /// The highest epoch of a primary that was chosen.
    epoch: u64,
    /// The time since which a majority agrees on a lower one, and nobody names a primary of this one.
    agreed_below_since: Option<Tick>,
}

/// A sentinel's whole answer.
#[derive(Clone, Debug)]
pub(crate) struct SentinelAnswer {
    pub(crate) from: Address,
    /// The address of its socket.
    pub(crate) peer: Option<Address>,
    pub(crate) reply: PrimaryReply,
    pub(crate) others: Vec<Address>,
    pub(crate) ids: Ids,
}

impl Known {
    pub(crate) fn new(hosts: Vec<Address>) -> Self {
        Self { hosts: hosts.into_iter().map(|host| (host, None)).collect(), ..Self::default() }
    }

    /// The sentinels to ask.
    pub(crate) fn all(&self) -> Vec<Address> {
        self.hosts.iter().map(|(host, _)| host).chain(&self.learned).cloned().collect()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A poll of all sentinels that are known.
    pub(crate) fn poll(&self, service: &str) -> Poll {
        Poll::new(service, self.all(), self.epoch, self.ids.clone(), self.hosts.len())
    }

    /// These sentinels were believed.
    pub(crate) fn believed(&mut self, ids: BTreeSet<String>) {
        if !ids.is_empty() {
            self.ids = ids;
        }
    }

    /// A primary of this epoch was chosen.
    pub(crate) fn chosen(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
        self.agreed_below_since = None;
    }

    /// No primary was chosen. `agreed_below` is the lower epoch in which a majority agrees, if it does.
    pub(crate) fn refused(&mut self, agreed_below: Option<u64>, now: Tick) {
        let Some(epoch) = agreed_below else {
            self.agreed_below_since = None;
            return;
        };
        let since = *self.agreed_below_since.get_or_insert(now);
        if now >= since.after(COUNTED_AGAIN) {
            (self.epoch, self.agreed_below_since) = (epoch, None);
        }
    }

    /// Learns of other sentinels. Those of the URL stay. Of the others, those stay that a sentinel still lists.
    pub(crate) fn learn(&mut self, answers: &[SentinelAnswer]) {
        for (host, peer) in &mut self.hosts {
            let now = answers.iter().find(|answer| answer.from == *host).and_then(|answer| answer.peer.clone());
            *peer = now.or_else(|| peer.take());
        }
        let mut listed: Vec<Address> = answers.iter().flat_map(|answer| answer.others.iter().cloned()).collect();
        if listed.is_empty() {
            return;
        }
        let is_host = |address: &Address| self.hosts.iter().any(|(host, peer)| host == address || peer.as_ref() == Some(address));
        // A sentinel that lists the others doesn't list itself.
        let speakers = answers.iter().filter(|answer| !answer.others.is_empty()).map(|answer| answer.from.clone());
        listed.extend(speakers);
        listed.retain(|address| !is_host(address));
        listed.sort_unstable();
        listed.dedup();
        listed.truncate(LEARNED);
        self.learned = listed;
    }
}

/// The sum of what the sentinels report, but for those of another group. One that answers at two addresses counts once.
pub(crate) fn facts(answers: &[SentinelAnswer], foreign: &[Address]) -> SentinelFacts {
    let answers = || answers.iter().filter(|answer| !foreign.contains(&answer.from));
    let place = |answer: &SentinelAnswer| answer.peer.clone().unwrap_or_else(|| answer.from.clone());
    let mut places: Vec<_> = answers().map(|each| (place(each), matches!(each.reply, PrimaryReply::Named(_)))).collect();
    places.sort_unstable();
    places.dedup();
    let named = answers().filter_map(|answer| if let PrimaryReply::Named(named) = &answer.reply { Some(named) } else { None });
    let latest = named.max_by_key(|named| named.epoch);
    SentinelFacts {
        known: places.len(),
        answered: places.iter().filter(|(_, answered)| *answered).count(),
        quorum: latest.map_or(0, |named| named.quorum),
        down_after_ms: latest.map_or(0, |named| named.down_after_ms),
        foreign: foreign.iter().map(Address::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Failure, FailureKind};
    use crate::server::redis::sentinel::Named;

    fn address(text: &str) -> Address {
        let (host, port) = text.split_once(':').unwrap();
        Address { host: host.into(), port: port.parse().unwrap() }
    }

    fn answers(from: &str, peer: Option<&str>, others: &[&str]) -> SentinelAnswer {
        let others = others.iter().map(|place| address(place)).collect();
        SentinelAnswer { from: address(from), peer: peer.map(address), reply: PrimaryReply::Unknown, others, ids: Ids::default() }
    }

    #[test]
    fn sentinels_that_others_list_are_asked_next_time_and_none_of_them_twice() {
        let mut known = Known::new(vec![address("one:1"), address("two:1")]);
        let places = |known: &Known| known.all().iter().map(Address::to_string).collect::<Vec<_>>().join(" ");
        known.learn(&[answers("one:1", Some("10.0.0.1:1"), &["10.0.0.2:1", "10.0.0.3:1"])]);
        assert_eq!(places(&known), "one:1 two:1 10.0.0.2:1 10.0.0.3:1", "who two:1 is isn't known yet");
        let second = answers("two:1", Some("10.0.0.2:1"), &["10.0.0.1:1", "10.0.0.3:1"]);
        known.learn(&[second, answers("10.0.0.3:1", Some("10.0.0.3:1"), &["10.0.0.1:1", "10.0.0.2:1"])]);
        assert_eq!(places(&known), "one:1 two:1 10.0.0.3:1");
        known.learn(&[answers("one:1", None, &[])]);
        assert_eq!(places(&known), "one:1 two:1 10.0.0.3:1", "nobody lists anybody");
        known.learn(&[answers("one:1", Some("10.0.0.1:1"), &["10.0.0.2:1", "10.0.0.4:1"])]);
        assert_eq!(places(&known), "one:1 two:1 10.0.0.4:1", "one was replaced");
        let many: Vec<String> = (0..100).map(|number| format!("h{number}:1")).collect();
        known.learn(&[answers("one:1", None, &many.iter().map(String::as_str).collect::<Vec<_>>())]);
        assert_eq!(known.all().len(), 2 + LEARNED);
    }

    fn named() -> Named {
        Named { address: address("a:1"), epoch: 4, is_down: false, quorum: 2, down_after_ms: 1_000 }
    }

    #[test]
    fn the_facts_of_all_sentinels_are_summed_up_and_each_of_them_counts_once() {
        let with = |from: &str, peer: Option<&str>, reply: PrimaryReply| SentinelAnswer { reply, ..answers(from, peer, &[]) };
        let all = [
            with("one:1", Some("10.0.0.1:1"), PrimaryReply::Named(named())),
            with("10.0.0.1:1", Some("10.0.0.1:1"), PrimaryReply::Named(named())),
            with("two:1", Some("10.0.0.2:1"), PrimaryReply::Unknown),
            with("10.0.0.3:1", None, PrimaryReply::Failed(Failure::not_applied(FailureKind::Refused, "no"))),
        ];
        assert_eq!(
            facts(&all, &[]),
            SentinelFacts { known: 3, answered: 1, quorum: 2, down_after_ms: 1_000, ..SentinelFacts::default() }
        );
        let foreign = vec!["one:1".to_owned(), "10.0.0.1:1".to_owned()];
        let apart = [address("one:1"), address("10.0.0.1:1")];
        assert_eq!(facts(&all, &apart), SentinelFacts { known: 2, foreign, ..SentinelFacts::default() });
        assert_eq!(facts(&all[2..], &[]), SentinelFacts { known: 2, ..SentinelFacts::default() });
    }

    #[test]
    fn an_epoch_sinks_only_where_a_majority_has_agreed_on_it_for_a_minute() {
        let at = |second: u64| Tick::from_micros(second * 1_000_000);
        let mut known = Known::default();
        for (epoch, expected) in [(3, 3), (2, 3), (7, 7)] {
            known.chosen(epoch);
            assert_eq!(known.epoch(), expected);
        }
        for (second, agreed_below, expected) in [
            (0, Some(1), 7),
            (59, Some(1), 7),
            (60, None, 7),
            (61, Some(1), 7),
            (120, Some(1), 7),
            (121, Some(1), 1),
            (122, Some(0), 1),
        ] {
            known.refused(agreed_below, at(second));
            assert_eq!(known.epoch(), expected, "{second}");
        }
        known.chosen(2);
        known.refused(Some(1), at(182));
        assert_eq!(known.epoch(), 2, "a sentinel has named a primary of that epoch in between");
    }
}
