//! Sightings: what observers have reported, compared with what the servers had.

use std::sync::Arc;

use locktender::internals::protocol::Observation;
use locktender::op::{LockOp, Op, Reply, Verb};

use super::clock::{Instant, ms};
use super::node::Node;
use super::observers::{LATE, Look, Observer, is_steady, longest_look};
use super::world::World;

/// The longest pause between two looks.
const LOOK: u64 = ms(1_000);

/// The pause between an announcement and its look.
const GATHERS: u64 = ms(5);

/// The time by which clocks differ within a second, and the resolution of an expiry.
const SLACK: u64 = ms(12);

/// What an observer has reported, and what it was notified of.
#[derive(Default)]
pub(super) struct Sightings {
    last: Option<Observation>,
    /// The largest term so far, and its owner.
    term: (u64, Arc<str>),
    /// The number of the last look that was taken, and when.
    taken: (u64, Instant),
    /// The first announcement since the last look began.
    pub(super) announced: Option<Instant>,
}

/// Who leads on one server, by its ledger.
#[derive(Clone, Debug, Default)]
pub(super) struct Reign {
    leader: Option<Arc<str>>,
    term: u64,
    since: Instant,
    /// When the key of the leader ends, if nothing prolongs it.
    gone: Instant,
}

impl Reign {
    /// The leader at this time, since when, and whether an expiry was the last change.
    fn at(&self, now: Instant) -> (Option<&Arc<str>>, Instant, bool) {
        match &self.leader {
            Some(_) if self.gone <= now => (None, self.gone, true),
            leader => (leader.as_ref(), self.since, false),
        }
    }
}

impl Sightings {
    /// A program has got news.
    pub(super) fn note(&mut self, news: Observation) {
        self.last = Some(news);
    }
}

impl World {
    /// The owner that leads on a node: that of an acquisition, which has the lock alone.
    pub(super) fn leader_by_ledger(&self, server: usize, node: u32, name: usize) -> Option<Arc<str>> {
        self.leads_on(self.node(server, node)?, name).map(|(owner, _)| owner)
    }

    fn leads_on(&self, node: &Node, name: usize) -> Option<(Arc<str>, Instant)> {
        let (owner, gone) = node.lock(&self.keys[name], self.now)?;
        self.history.whose(name, owner).map(|_| (owner.into(), gone))
    }

    /// A server has done an operation, or may have lost data: its ledger may show another leader.
    pub(super) fn enter_reign(&mut self, server: usize, name: usize) {
        if !self.observers.all.iter().any(|observer| observer.name == name) {
            return;
        }
        let node = &self.nodes[server];
        let (leader, gone) = self.leads_on(node, name).unzip();
        let term = node.fence(&self.keys[name], self.now);
        let now = self.now;
        let reign = &mut self.reigns[server][name];
        let (before, _, _) = reign.at(now);
        if before == leader.as_ref() && (leader.is_none() || reign.term == term) {
            reign.gone = gone.unwrap_or(reign.gone);
        } else {
            *reign = Reign { leader, term, since: now, gone: gone.unwrap_or(Instant::MAX) };
        }
    }

    /// The same behind an operation.
    pub(super) fn enters_reign(&mut self, server: usize, op: &Op) {
        if let Op::Lock(LockOp { keys, verb, .. }) = op
            && !matches!(verb, Verb::Inspect)
            && let Some(name) = self.name_of(keys.lock())
        {
            self.enter_reign(server, name);
        }
    }

    /// Compares what a look has shown, and whether that is reported, with what the servers had.
    pub(super) fn check_sighting(&mut self, observer: usize, look: &Look, seen: &Observation, news: Option<&Observation>) {
        let wrong = self.wrong_look(look, seen).or_else(|| self.wrong_report(observer, look, seen, news));
        if let Some(why) = wrong {
            return self.violate(format!("o{observer}: {why}: {seen:?}, {news:?}, asked at {}: {:?}", look.asked, look.leaders));
        }
        let now = self.now;
        let sightings = &mut self.observers.all[observer].sightings;
        sightings.taken = sightings.taken.max((look.number, now));
        if let Some(leader) = news.and_then(|news| news.leader.as_ref()) {
            sightings.term = (leader.term, leader.owner.as_str().into());
        }
    }

    /// A leader that is shown led on a majority when that was asked, in a term that a majority gave it; none is shown where none led.
    fn wrong_look(&self, look: &Look, seen: &Observation) -> Option<String> {
        let needed = self.plan.needed();
        let replies: Vec<Option<&Reply>> = look.answers.iter().map(|answer| answer.as_ref()?.as_ref().ok()).collect();
        let count = |leader: Option<&str>| {
            let had = replies.iter().zip(&look.leaders).filter(|(reply, _)| reply.is_some());
            had.filter(|(_, had)| had.as_deref() == leader).count()
        };
        if let Some(leader) = &seen.leader {
            let attested = self.history.attested(&leader.owner.as_str().into(), leader.term);
            return match () {
                () if count(Some(&leader.owner)) < needed => Some("who leads did not lead".to_owned()),
                () if attested < needed && !self.forgot => Some(format!("{attested} servers gave it this term")),
                () => None,
            };
        }
        if !seen.unknown {
            return (count(None) < needed).then(|| "nobody leads, and somebody did".to_owned());
        }
        // A transaction notes no term.
        let has_term = |reply: &Reply| reply.fence > 0 || self.plan.is_election;
        let is_known = count(None) >= needed || self.plan.servers == 1 && replies[0].is_some_and(has_term);
        is_known.then(|| "who leads is unknown, and the servers have said it".to_owned())
    }

    /// Terms rise, only news is reported, and what a look has shown is reported, but for a term that went back.
    fn wrong_report(&self, observer: usize, look: &Look, seen: &Observation, news: Option<&Observation>) -> Option<String> {
        let Observer { name, sightings: Sightings { last, term: (term, owner), taken: (taken, taken_at), .. }, .. } =
            &self.observers.all[observer];
        let shows = |seen: &Observation| (seen.leader.as_ref().map(|leader| (leader.term, leader.owner.clone())), seen.unknown);
        if look.number < *taken {
            return news.map(|_| "a later look was taken before".to_owned());
        }
        let goes_back = seen.leader.as_ref().is_some_and(|leader| leader.term < *term);
        // The questions of a look that began before may have overtaken those of that one. A candidate that
        // gave up may have shown a term, and a smaller one may follow.
        let has_led = self.history.grants.get(name).is_some_and(|grants| grants.iter().any(|grant| grant.fence == *term));
        if goes_back && has_led && look.asked >= *taken_at && !self.forgot && !self.plan.outside {
            return Some(format!("a smaller term than {term}"));
        }
        if let Some(leader) = news.and_then(|news| news.leader.as_ref()) {
            if leader.term < *term {
                return Some(format!("the term went back from {term}"));
            }
            if leader.term == *term && *leader.owner != **owner && !self.forgot {
                return Some(format!("one term for two, also for {owner}"));
            }
        }
        let reported = news.or(last.as_ref());
        let expected = if goes_back { (None, true) } else { shows(seen) };
        match (reported, news) {
            (Some(reported), _) if shows(reported) != expected => Some("what was seen was not reported".to_owned()),
            (Some(_), Some(news)) if last.as_ref().map(shows) == Some(shows(news)) => Some("no news was reported".to_owned()),
            (None, _) => Some("the first look was not reported".to_owned()),
            _ => None,
        }
    }

    /// What has lasted on a majority of the servers is reported to who waits for it: within a second, and at once behind an announcement,
    /// or when a term has ended.
    pub(super) fn look_for_blind_observers(&mut self) {
        if self.observers.all.is_empty() {
            return;
        }
        for server in 0..self.plan.servers {
            (0..self.plan.names).for_each(|name| self.enter_reign(server, name));
        }
        let blind = (0..self.observers.all.len()).find_map(|at| Some((at, self.is_blind(&self.observers.all[at])?)));
        if let Some((observer, why)) = blind {
            self.violate(format!("o{observer}: {why}"));
        }
    }

    fn is_blind(&self, observer: &Observer) -> Option<String> {
        let waits_since = observer.waits_since?;
        let name = observer.name;
        let long_ago = |at: Instant, limit: u64| at.max(waits_since) + limit < self.now;
        let Sightings { last, term: (highest, _), announced, .. } = &observer.sightings;
        if observer.stopped_until + LATE < self.now && announced.is_some_and(|at| long_ago(at, GATHERS + LATE + SLACK)) {
            return Some(format!("nobody has looked since the announcement at {announced:?}"));
        }
        let moment = 2 * longest_look(&self.plan) + LATE + SLACK;
        let nodes = &self.nodes;
        let has_settled = |at: Instant| at + LOOK + moment < self.now;
        let is_quiet = |node: &Node| node.up && has_settled(node.troubled_at) && has_settled(node.stopped_until);
        let is_calm = is_steady(&self.plan) && !self.plan.outside && self.probes.is_none();
        let failovers_are_over = self.failovers.past.iter().all(|failover| has_settled(failover.until()));
        if !is_calm || !failovers_are_over || !nodes.iter().all(is_quiet) || !has_settled(observer.troubled_until()) {
            return None;
        }
        let reigns: Vec<_> = self.reigns.iter().map(|reigns| &reigns[name]).collect();
        let leads: Vec<_> = reigns.iter().map(|reign| reign.at(self.now)).collect();
        let (leader, _, _) = leads[0];
        let term = reigns[0].term;
        let agrees =
            leads.iter().zip(&reigns).all(|((other, ..), reign)| *other == leader && (leader.is_none() || reign.term == term));
        if !agrees {
            return None;
        }
        let since = leads.iter().map(|(_, since, _)| *since).fold(0, Instant::max);
        let is_expiry = leads.iter().all(|(_, _, is_expiry)| *is_expiry);
        let goes_back = leader.is_some() && (term < *highest || term == 0);
        let shown = last.as_ref().map(|last| (last.leader.as_ref().map(|leader| &*leader.owner), last.unknown));
        let expected = if goes_back { (None, true) } else { (leader.map(|leader| &**leader), false) };
        // Only of a leader that was shown is it known when its key expires.
        let was_shown = last.as_ref().and_then(|last| last.leader.as_ref()).is_some_and(|leader| leader.term == term);
        let limit = if is_expiry && was_shown { moment } else { LOOK + moment };
        (shown != Some(expected) && long_ago(since, limit))
            .then(|| format!("{leader:?} leads in {term} since {since} (an expiry: {is_expiry}), and it shows {last:?}"))
    }
}
