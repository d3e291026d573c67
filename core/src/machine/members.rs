//! A sorted set: as much of it as the queue of waiters needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The members of a sorted set with whole scores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    scores: BTreeMap<Arc<str>, i64>,
    order: BTreeSet<(i64, Arc<str>)>,
}

impl Members {
    /// Whether the set has no members: a server keeps no empty set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    /// The score of a member.
    #[must_use]
    pub fn score(&self, member: &str) -> Option<i64> {
        self.scores.get(member).copied()
    }

    /// The members with a score of at least `score`, in their order.
    pub fn from(&self, score: i64) -> impl Iterator<Item = (i64, &Arc<str>)> {
        self.order.range((score, Arc::from(""))..).map(|(score, member)| (*score, member))
    }

    /// The number of members with a score from `low`, and below `high`.
    #[must_use]
    pub fn between(&self, low: i64, high: i64) -> u64 {
        self.from(low).take_while(|(score, _)| *score < high).count() as u64
    }

    /// The last member, and its score.
    #[must_use]
    pub fn last(&self) -> Option<(i64, &Arc<str>)> {
        self.order.last().map(|(score, member)| (*score, member))
    }

    /// The members in the opposite order.
    pub fn from_last(&self) -> impl Iterator<Item = (i64, &Arc<str>)> {
        self.order.iter().rev().map(|(score, member)| (*score, member))
    }

    /// Adds a member, or moves it (`ZADD`).
    pub fn put(&mut self, member: &str, score: i64) {
        self.remove(member);
        let member: Arc<str> = member.into();
        self.scores.insert(Arc::clone(&member), score);
        self.order.insert((score, member));
    }

    /// Takes a member out (`ZREM`).
    pub fn remove(&mut self, member: &str) {
        if let Some((member, score)) = self.scores.remove_entry(member) {
            self.order.remove(&(score, member));
        }
    }
}
