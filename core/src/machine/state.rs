//! The keys of one server: a small key-value store with expiry, with the part of Redis that the operations use.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::members::Members;
use crate::op::HistoryEntry;

/// Below this number of keys, an expired key is freed only by the next access to it.
const SWEEP_FROM: usize = 1024;

/// The keys of one server.
///
/// Expiry has the resolution and the boundary of Redis: whole milliseconds, and a key lives through the millisecond at which it
/// expires. An expired key is absent to every reader, whether or not its memory is freed yet.
#[derive(Clone, Debug, Default)]
pub struct State {
    entries: BTreeMap<String, Entry>,
    sweep_at: usize,
    published: Vec<Message>,
    /// The time that a clock sees next, if it isn't that of the operation.
    seen_us: Vec<(String, u64)>,
}

/// A published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The channel.
    pub channel: String,
    /// The text.
    pub payload: String,
}

/// A key's value and expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// The last millisecond (since the Unix epoch) at which the key exists; `None` for a key without expiry.
    pub expires_ms: Option<u64>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(Arc<str>),
    /// A sorted set.
    Members(Members),
    /// A hash.
    Fields(BTreeMap<Arc<str>, Arc<str>>),
    /// A stream without entries: the last id that it gave, in milliseconds and a number.
    Clock(u64, u64),
    /// The history.
    Log(VecDeque<HistoryEntry>),
    /// A value of any other type, by the type's name (`list`, `set`, …). No operation makes one; tests do.
    Foreign(Arc<str>),
}

impl Value {
    /// The type's name as the command `TYPE` gives it.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Text(_) => "string",
            Self::Members(_) => "zset",
            Self::Fields(_) => "hash",
            Self::Clock(..) | Self::Log(_) => "stream",
            Self::Foreign(name) => name,
        }
    }
}

impl State {
    /// A server without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the messages that were published since the last call.
    pub fn take_published(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.published)
    }
}

/// The keys themselves, for the rules and for tests: a server only applies operations.
#[doc(hidden)]
impl State {
    /// The entry of `key` at `now_us`; `None` if there is none, or if it has expired.
    #[must_use]
    pub fn get(&self, key: &str, now_us: u64) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.lives(now_us))
    }

    /// All entries that live at `now_us`, in the order of the keys.
    pub fn iter(&self, now_us: u64) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().filter(move |(_, entry)| entry.lives(now_us)).map(|(key, entry)| (key.as_str(), entry))
    }

    /// Writes a key, whatever its value was (`SET`, with `ttl_ms` from `now_us` or without an expiry).
    pub fn put(&mut self, key: &str, value: Value, now_us: u64, ttl_ms: Option<u64>) {
        let expires_ms = ttl_ms.map(|ttl| expiry(now_us, ttl));
        if let Some(entry) = self.entries.get_mut(key) {
            *entry = Entry { value, expires_ms };
            return;
        }
        if self.entries.len() >= self.sweep_at.max(SWEEP_FROM) {
            self.entries.retain(|_, entry| entry.lives(now_us));
            self.sweep_at = self.entries.len().saturating_mul(2);
        }
        self.entries.insert(key.to_owned(), Entry { value, expires_ms });
    }

    /// Writes a key as it is elsewhere, or deletes it.
    pub(super) fn restore(&mut self, key: &str, entry: Option<Entry>) {
        match entry {
            Some(entry) => _ = self.entries.insert(key.to_owned(), entry),
            None => _ = self.entries.remove(key),
        }
    }

    /// Makes an existing key expire `ttl_ms` after `now_us` (`PEXPIRE`).
    pub fn expire(&mut self, key: &str, now_us: u64, ttl_ms: u64) {
        if let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.lives(now_us)) {
            entry.expires_ms = Some(expiry(now_us, ttl_ms));
        }
    }

    /// Deletes a key (`DEL`).
    pub fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    /// The members of a sorted set; `None` if there is no key, or one of another type.
    #[must_use]
    pub fn members(&self, key: &str, now_us: u64) -> Option<&Members> {
        match &self.get(key, now_us)?.value {
            Value::Members(members) => Some(members),
            _ => None,
        }
    }

    /// The fields of a hash; `None` if there is no key, or one of another type.
    #[must_use]
    pub fn fields(&self, key: &str, now_us: u64) -> Option<&BTreeMap<Arc<str>, Arc<str>>> {
        if let Value::Fields(fields) = &self.get(key, now_us)?.value { Some(fields) } else { None }
    }

    /// Writes fields of a hash (`HSET`), and makes the hash if there is no key. A key of another type stays as it is.
    pub fn put_fields(&mut self, key: &str, fields: &[(&str, &str)], now_us: u64) {
        if self.get(key, now_us).is_none() {
            self.put(key, Value::Fields(BTreeMap::new()), now_us, None);
        }
        if let Some(Entry { value: Value::Fields(known), .. }) = self.entries.get_mut(key) {
            known.extend(fields.iter().map(|(name, value)| (Arc::from(*name), Arc::from(*value))));
        }
    }

    /// Adds to the history, of which the last `length` entries stay. A key of another type stays as it is.
    pub(super) fn put_entry(&mut self, key: &str, entry: HistoryEntry, length: usize, now_us: u64) {
        if self.get(key, now_us).is_none() {
            self.put(key, Value::Log(VecDeque::new()), now_us, None);
        }
        if let Some(Entry { value: Value::Log(entries), .. }) = self.entries.get_mut(key) {
            entries.push_back(entry);
            entries.drain(..entries.len().saturating_sub(length));
        }
    }

    /// Whether a key is of a type that has no members.
    pub(super) fn is_foreign_to_members(&self, key: &str, now_us: u64) -> bool {
        self.get(key, now_us).is_some() && self.members(key, now_us).is_none()
    }

    /// Adds a member to a sorted set, and makes the set if there is no key. A key of another type stays as it is.
    pub fn put_member(&mut self, key: &str, member: &str, score: i64, now_us: u64) {
        if self.get(key, now_us).is_none() {
            self.put(key, Value::Members(Members::default()), now_us, None);
        }
        if let Some(Entry { value: Value::Members(members), .. }) = self.entries.get_mut(key) {
            members.put(member, score);
        }
    }

    /// Takes members out of a sorted set. A set without members is deleted.
    pub fn drop_members(&mut self, key: &str, members: &[&str], now_us: u64) {
        if self.members(key, now_us).is_none() {
            return;
        }
        if let Some(Entry { value: Value::Members(set), .. }) = self.entries.get_mut(key) {
            members.iter().for_each(|member| set.remove(member));
            if set.is_empty() {
                self.remove(key);
            }
        }
    }

    /// Publishes a message (`PUBLISH`).
    pub fn publish(&mut self, channel: String, payload: String) {
        self.published.push(Message { channel, payload });
    }

    /// A clock sees this time in the next operation: a server reads its time more than once in a script.
    pub fn clock_sees(&mut self, key: &str, us: u64) {
        self.seen_us.push((key.to_owned(), us));
    }

    pub(super) fn forget_seen(&mut self) {
        self.seen_us.clear();
    }

    /// The time that a clock sees in an operation at `now_us`.
    pub(super) fn clock_time(&self, key: &str, now_us: u64) -> u64 {
        self.seen_us.iter().find(|(seen, _)| seen == key).map_or(now_us, |(_, us)| *us)
    }

    /// Deletes every key (`FLUSHALL`), as a server that forgets its data.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

impl Entry {
    fn lives(&self, now_us: u64) -> bool {
        self.expires_ms.is_none_or(|at| now_us / 1_000 <= at)
    }

    /// The text of a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Milliseconds until expiry, `None` for a key without.
    #[must_use]
    pub fn left_ms(&self, now_us: u64) -> Option<u64> {
        self.expires_ms.map(|at| at.saturating_sub(now_us / 1_000))
    }
}

fn expiry(now_us: u64, ttl_ms: u64) -> u64 {
    (now_us / 1_000).saturating_add(ttl_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::Text(value.into())
    }

    #[test]
    fn a_key_lives_through_the_millisecond_of_its_expiry() {
        let mut state = State::new();
        state.put("k", text("v"), 1_000_500, Some(10));
        assert_eq!(state.get("k", 1_010_999).and_then(|entry| entry.left_ms(1_010_999)), Some(0));
        assert_eq!(state.get("k", 1_011_000), None);
        assert_eq!(state.iter(1_011_000).count(), 0);
    }

    #[test]
    fn an_expired_key_is_not_revived_by_a_new_expiry() {
        let mut state = State::new();
        state.put("k", text("v"), 0, Some(1));
        state.expire("k", 2_000, 100);
        assert_eq!(state.get("k", 2_000), None);
    }

    #[test]
    fn expired_keys_are_freed_as_new_ones_come() {
        let mut state = State::new();
        for n in 0..100_000_u64 {
            state.put(&n.to_string(), text("v"), n * 1_000, Some(10));
        }
        assert!(state.entries.len() <= SWEEP_FROM + 1, "{} keys kept", state.entries.len());
    }
}
