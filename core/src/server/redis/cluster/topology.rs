//! Topology: which node of a cluster serves which slot. Pure: answers of nodes in, the map out.
//!
//! The map is `CLUSTER SLOTS`. `CLUSTER SHARDS` lists a dead primary beside its successor for a while, both as `master`.

use std::fmt;

use redis::Value;

use crate::name::slot::SLOTS;
use crate::server::redis::address::Address;
use crate::server::redis::commands::replies::text;

/// The primaries, and the slots of each.
#[derive(Clone)]
pub(crate) struct Topology {
    /// In order, so that two maps that say the same are the same.
    primaries: Vec<Address>,
    /// For each slot the place of its primary, counted from 1; 0 if no node serves it.
    slots: Box<[u16]>,
    /// The ids of all nodes, in order. A node keeps its id as long as it lives, whatever its address is.
    ids: Vec<Box<str>>,
}

impl Topology {
    /// Reads the answer to `CLUSTER SLOTS` of the node that was asked at `asked`, with all nodes that it names; `None` if it is no such
    /// answer.
    pub(crate) fn read(answer: &Value, asked: &Address) -> Option<(Self, Vec<Address>)> {
        let Value::Array(ranges) = answer else { return None };
        let (mut served, mut nodes, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for range in ranges {
            let Value::Array(parts) = range else { return None };
            let [first, last, primary, replicas @ ..] = &parts[..] else { return None };
            let (first, last) = (slot(first)?, slot(last)?);
            if first > last {
                return None;
            }
            ids.extend([primary].into_iter().chain(replicas).filter_map(id));
            // A node that doesn't know where its primary is names no host.
            if let Some(primary) = address(primary, asked)? {
                served.push((first, last, primary));
            }
            for replica in replicas {
                nodes.extend(address(replica, asked)?);
            }
        }
        let mut primaries: Vec<Address> = served.iter().map(|(.., primary)| primary.clone()).collect();
        primaries.sort();
        primaries.dedup();
        nodes.extend(primaries.iter().cloned());
        nodes.sort();
        nodes.dedup();
        ids.sort();
        ids.dedup();
        let mut topology = Self { primaries, slots: vec![0; usize::from(SLOTS)].into(), ids };
        for (first, last, primary) in served {
            let place = topology.place(&primary);
            topology.slots.get_mut(usize::from(first)..=usize::from(last))?.fill(place);
        }
        Some((topology, nodes))
    }

    /// The place of a primary, counted from 1. A new one comes last.
    fn place(&mut self, primary: &Address) -> u16 {
        let known = self.primaries.iter().position(|known| known == primary);
        let at = known.unwrap_or_else(|| {
            self.primaries.push(primary.clone());
            self.primaries.len() - 1
        });
        u16::try_from(at + 1).unwrap_or_default()
    }

    /// The primary that serves a slot, if one does.
    pub(crate) fn primary_of(&self, slot: u16) -> Option<&Address> {
        let place = self.slots.get(usize::from(slot))?.checked_sub(1)?;
        self.primaries.get(usize::from(place))
    }

    /// A slot is served by this node from now on.
    pub(crate) fn moved(&mut self, slot: u16, primary: &Address) {
        let place = self.place(primary);
        if let Some(known) = self.slots.get_mut(usize::from(slot)) {
            *known = place;
        }
    }

    /// This map, with the primaries of another one for the slots that no node serves.
    pub(crate) fn filled_from(&self, other: &Self) -> Self {
        let mut filled = self.clone();
        for slot in (0..SLOTS).filter(|slot| self.primary_of(*slot).is_none()) {
            if let Some(primary) = other.primary_of(slot) {
                filled.moved(slot, primary);
            }
        }
        filled
    }

    /// How many slots no node serves.
    pub(crate) fn unserved(&self) -> usize {
        self.slots.iter().filter(|place| **place == 0).count()
    }

    /// All primaries.
    pub(crate) fn primaries(&self) -> &[Address] {
        &self.primaries
    }

    /// Whether this may be a map of the same cluster: they have a node in common, or one of them names none.
    pub(crate) fn is_akin_to(&self, other: &Self) -> bool {
        let names_none = self.ids.is_empty() || other.ids.is_empty();
        names_none || self.ids.iter().any(|id| other.ids.binary_search(id).is_ok())
    }

    /// The primaries that serve slots which `before` had elsewhere: at a node that `counts`.
    pub(crate) fn successors(&self, before: &Self, counts: impl Fn(&Address) -> bool) -> Vec<Address> {
        let mut successors = Vec::new();
        for slot in 0..SLOTS {
            let (Some(was), Some(is)) = (before.primary_of(slot), self.primary_of(slot)) else { continue };
            if was != is && !successors.contains(is) && counts(was) {
                successors.push(is.clone());
            }
        }
        successors
    }
}

/// Two maps are the same if each slot is served by the same node, whatever replicas there are.
impl PartialEq for Topology {
    fn eq(&self, other: &Self) -> bool {
        self.primaries == other.primaries && self.slots == other.slots
    }
}

impl Eq for Topology {}

/// All slots would fill pages.
impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topology").field("primaries", &self.primaries).finish_non_exhaustive()
    }
}

/// The answers of several nodes, and which map counts. Nodes disagree for a moment after a change. A node that is cut off from the
/// others keeps its old map for longer.
#[derive(Debug)]
pub(crate) struct Ballot {
    asked: usize,
    maps: Vec<(Topology, usize)>,
}

/// What the answers of all nodes come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Elected {
    /// No node gave a map.
    None,
    /// The map that most of them agree on.
    Map(Topology),
    /// Two of the maps have no node in common: the nodes belong to several clusters.
    Several,
}

impl Ballot {
    /// No answers so far of so many nodes.
    pub(crate) fn new(asked: usize) -> Self {
        Self { asked, maps: Vec::new() }
    }

    /// A node has answered. Gives the map if more than half of the nodes say the same.
    pub(crate) fn vote(&mut self, map: Topology) -> Option<Topology> {
        let known = self.maps.iter().position(|(known, _)| *known == map);
        let at = known.unwrap_or_else(|| {
            self.maps.push((map, 0));
            self.maps.len() - 1
        });
        let (map, votes) = &mut self.maps[at];
        *votes += 1;
        (2 * *votes > self.asked).then(|| map.clone())
    }

    /// All nodes have answered that will: the map that most of them agree on, if any node gave one; of several the first.
    pub(crate) fn close(self) -> Elected {
        let is_foreign = |map: &Topology| self.maps.iter().any(|(other, _)| !map.is_akin_to(other));
        if self.maps.iter().any(|(map, _)| is_foreign(map)) {
            return Elected::Several;
        }
        let most = self.maps.iter().map(|(_, votes)| *votes).max();
        let elected = self.maps.into_iter().find(|(_, votes)| Some(*votes) == most);
        elected.map_or(Elected::None, |(map, _)| Elected::Map(map))
    }
}

fn slot(value: &Value) -> Option<u16> {
    let Value::Int(number) = value else { return None };
    u16::try_from(*number).ok().filter(|slot| *slot < SLOTS)
}

/// The id of a node.
fn id(node: &Value) -> Option<Box<str>> {
    let Value::Array(parts) = node else { return None };
    text(parts.get(2)?).map(Box::from)
}

/// The address of a node: its host and its port. Without a host it is that of the node that was asked. `Some(None)` for a node whose
/// host nobody knows.
fn address(value: &Value, asked: &Address) -> Option<Option<Address>> {
    let Value::Array(parts) = value else { return None };
    let [host, Value::Int(port), ..] = &parts[..] else { return None };
    let host = if *host == Value::Nil { "" } else { text(host)? };
    let port = u16::try_from(*port).ok()?;
    Some(match host {
        "?" => None,
        host => Some(asked.elsewhere(host, port)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address { host: "10.0.0.1".into(), port }
    }

    fn node(host: &str, port: i64) -> Value {
        Value::Array(vec![Value::BulkString(host.into()), Value::Int(port), Value::BulkString("id".into())])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    }

    fn map(ranges: Vec<Value>) -> Topology {
        Topology::read(&Value::Array(ranges), &at(9)).unwrap().0
    }

    #[test]
    fn a_map_says_who_serves_a_slot() {
        let answer = Value::Array(vec![
            range(0, 5_460, vec![node("10.0.0.1", 2), node("10.0.0.1", 3)]),
            range(5_461, 5_461, vec![node("", 1)]),
            range(5_463, 16_383, vec![node("?", 4), node("10.0.0.1", 5)]),
        ]);
        let (map, nodes) = Topology::read(&answer, &at(9)).unwrap();
        for (slot, port) in [(0, Some(2)), (5_460, Some(2)), (5_461, Some(1)), (5_462, None), (5_463, None), (16_383, None)] {
            assert_eq!(map.primary_of(slot), port.map(at).as_ref(), "{slot}");
        }
        assert_eq!((map.primaries(), nodes), (&[at(1), at(2)][..], vec![at(1), at(2), at(3), at(5)]));
        assert_eq!((map.primary_of(16_384), map.unserved()), (None, 16_384 - 5_462));
    }

    #[test]
    fn a_map_may_have_a_range_for_each_slot() {
        use crate::server::redis::commands::replies::Replies;
        let node = |port: u16| {
            let (id, name) = ("0123456789abcdef0123456789abcdef01234567", "node.example.com");
            format!("*4\r\n$8\r\n10.0.0.1\r\n:{port}\r\n$40\r\n{id}\r\n*2\r\n$8\r\nhostname\r\n${}\r\n{name}\r\n", name.len())
        };
        let range = |slot: u16| format!("*5\r\n:{slot}\r\n:{slot}\r\n{}{}{}", node(1 + slot % 3), node(4), node(5));
        let text = "*16384\r\n".to_owned() + &(0..SLOTS).map(range).collect::<String>();
        let mut replies = Replies::default();
        replies.expect_map();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let room = replies.room();
            let (now, later) = rest.split_at(room.len().min(rest.len()));
            room[..now.len()].copy_from_slice(now);
            replies.filled(now.len());
            rest = later;
        }
        let (map, nodes) = Topology::read(&replies.next().unwrap().unwrap(), &at(9)).unwrap();
        assert_eq!([0, 1, 2, 16_383].map(|slot| map.primary_of(slot).unwrap().port), [1, 2, 3, 1]);
        assert_eq!(nodes.len(), 5);
    }

    #[test]
    fn two_maps_that_say_the_same_are_the_same() {
        let (low, high) = (|| range(0, 8_000, vec![node("a", 2)]), || range(8_001, 16_383, vec![node("a", 1)]));
        assert_eq!(map(vec![low(), high()]), map(vec![high(), low()]));
        assert_eq!(
            map(vec![low(), high()]),
            map(vec![range(0, 4_000, vec![node("a", 2)]), range(4_001, 8_000, vec![node("a", 2)]), high()])
        );
        assert_ne!(map(vec![low(), high()]), map(vec![low()]));
    }

    #[test]
    fn what_is_no_map_is_none() {
        for answer in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(0, 1, vec![])]),
            Value::Array(vec![range(-1, 1, vec![node("a", 1)])]),
            Value::Array(vec![range(0, 16_384, vec![node("a", 1)])]),
            Value::Array(vec![range(2, 1, vec![node("a", 1)])]),
            Value::Array(vec![range(0, 1, vec![node("a", 65_536)])]),
            Value::Array(vec![range(0, 1, vec![Value::Int(1)])]),
        ] {
            assert_eq!(Topology::read(&answer, &at(9)), None, "{answer:?}");
        }
        assert!(Topology::read(&Value::Array(vec![]), &at(9)).is_some(), "a node that knows nobody");
    }

    #[test]
    fn a_slot_that_moved_is_elsewhere_at_once() {
        let mut map = map(vec![range(0, 16_383, vec![node("10.0.0.1", 1)])]);
        map.moved(7, &at(2));
        map.moved(9, &at(2));
        assert_eq!([6, 7, 8, 9].map(|slot| map.primary_of(slot).unwrap().port), [1, 2, 1, 2]);
        assert_eq!(map.primaries(), [at(1), at(2)]);
        map.moved(16_384, &at(3));
    }

    #[test]
    fn a_successor_serves_what_a_node_that_counts_has_served() {
        let before =
            map(vec![range(0, 9, vec![node("a", 1)]), range(10, 19, vec![node("a", 2)]), range(20, 29, vec![node("a", 3)])]);
        let failed_over =
            map(vec![range(0, 9, vec![node("a", 4)]), range(10, 19, vec![node("a", 2)]), range(20, 29, vec![node("a", 3)])]);
        let moved =
            map(vec![range(0, 4, vec![node("a", 1)]), range(5, 19, vec![node("a", 2)]), range(20, 24, vec![node("a", 5)])]);
        let at = |port| Address { host: "a".into(), port };
        for (after, counts, expected) in [
            (&before, &[1, 2, 3][..], vec![]),
            (&failed_over, &[1], vec![at(4)]),
            (&failed_over, &[2, 3], vec![]),
            (&moved, &[1, 2, 3], vec![at(2), at(5)]),
            (&moved, &[3], vec![at(5)]),
        ] {
            assert_eq!(after.successors(&before, |node| counts.contains(&node.port)), expected, "{counts:?}");
        }
    }

    #[test]
    fn the_map_counts_that_most_nodes_agree_on() {
        let of = |port| map(vec![range(0, 16_383, vec![node("a", port)])]);
        let mut ballot = Ballot::new(3);
        assert_eq!(ballot.vote(of(1)), None);
        assert_eq!(ballot.vote(of(2)), None);
        assert_eq!(ballot.vote(of(2)), Some(of(2)), "two of three, whatever the third says");
        for (votes, expected) in [(&[1, 2][..], Some(1)), (&[1, 2, 2, 3], Some(2)), (&[], None)] {
            let mut ballot = Ballot::new(9);
            assert!(votes.iter().all(|port| ballot.vote(of(*port)).is_none()));
            assert_eq!(ballot.close(), expected.map_or(Elected::None, |port| Elected::Map(of(port))), "{votes:?}");
        }
    }

    #[test]
    fn maps_without_a_node_in_common_are_of_several_clusters() {
        let named = |ids: &[&str]| {
            let port = |id: &str| Value::Int(id.bytes().map(i64::from).sum());
            let node = |id: &&str| Value::Array(vec![Value::BulkString("h".into()), port(id), Value::BulkString((*id).into())]);
            map(vec![range(0, 16_383, ids.iter().map(node).collect())])
        };
        for (one, other, akin) in [
            (named(&["a", "b"]), named(&["b", "c"]), true),
            (named(&["a", "b"]), named(&["c"]), false),
            (named(&["a"]), map(vec![]), true),
        ] {
            assert_eq!((one.is_akin_to(&other), other.is_akin_to(&one)), (akin, akin));
            let mut ballot = Ballot::new(9);
            assert_eq!((ballot.vote(one.clone()), ballot.vote(other)), (None, None));
            assert_eq!(ballot.close(), if akin { Elected::Map(one) } else { Elected::Several });
        }
        let mut ballot = Ballot::new(3);
        ballot.vote(named(&["c"]));
        ballot.vote(named(&["a"]));
        assert_eq!(ballot.vote(named(&["a"])), Some(named(&["a"])), "most of them are of one");
    }
}
