//! Groups of sentinels: those that watch a service know each other. A sentinel of another group may have a service of the same name, and
//! answer at a host of the URL, or at an address that was used again. Pure.

use std::collections::BTreeSet;

use crate::server::redis::address::Address;

/// How a sentinel and those that it knows call themselves: run ids, which no two sentinels share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    /// Its own, if it may show it.
    pub(crate) own: Option<String>,
    pub(crate) others: Vec<String>,
}

impl Ids {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.own.iter().chain(&self.others)
    }

    fn is_silent(&self) -> bool {
        self.all().next().is_none()
    }
}

/// A sentinel that names a primary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) ids: &'a Ids,
    pub(crate) primary: &'a Address,
    /// Whether it answered at a host of the URL.
    pub(crate) is_host: bool,
}

impl Member<'_> {
    /// Whether the two are of one group, or nothing shows it.
    fn is_beside(&self, other: &Self) -> bool {
        if self.primary == other.primary || self.ids.is_silent() || other.ids.is_silent() {
            return true;
        }
        match (&self.ids.own, &other.ids.own) {
            // Each lists the other. One at an address that was used again learns of those who had a sentinel there before.
            (Some(own), Some(its)) => self.ids.others.contains(its) && other.ids.others.contains(own),
            _ => self.ids.all().any(|id| other.ids.all().any(|its| its == id)),
        }
    }

    /// Whether it was believed before.
    fn is_known(&self, known: &BTreeSet<String>) -> bool {
        match &self.ids.own {
            Some(own) => known.contains(own),
            None => self.ids.others.iter().any(|id| known.contains(id)),
        }
    }
}

/// Which sentinels are believed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Believed {
    /// Those with these numbers. The others are of another group.
    Some(BTreeSet<usize>),
    /// The hosts of the URL are of several groups, and none is larger: these.
    Torn(Vec<BTreeSet<usize>>),
}

/// Finds out who is believed: the group of which one is `known` from before; else the group with most hosts of the URL.
pub(crate) fn believed(members: &[Member<'_>], known: &BTreeSet<String>) -> Believed {
    let groups = groups(members);
    let is_known = |group: &BTreeSet<usize>| group.iter().any(|number| members[*number].is_known(known));
    if let Some(group) = groups.iter().find(|group| is_known(group)) {
        return Believed::Some(group.clone());
    }
    let hosts = |group: &BTreeSet<usize>| group.iter().filter(|number| members[**number].is_host).count();
    let most = groups.iter().map(hosts).max().unwrap_or_default();
    // Where others are known, an address that they had is no reason to believe who answers there now.
    let mut largest = groups.into_iter().filter(|group| hosts(group) == most && (most > 0 || known.is_empty()));
    match (largest.next(), largest.next()) {
        (None, _) => Believed::Some(BTreeSet::new()),
        (Some(group), None) => Believed::Some(group),
        (Some(one), Some(other)) => Believed::Torn([one, other].into_iter().chain(largest).collect()),
    }
}

fn groups(members: &[Member<'_>]) -> Vec<BTreeSet<usize>> {
    let mut groups: Vec<BTreeSet<usize>> = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let is_beside = |group: &BTreeSet<usize>| group.iter().any(|other| members[*other].is_beside(member));
        let (beside, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_beside);
        groups = apart;
        groups.push(beside.into_iter().flatten().chain([number]).collect());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &str) -> Address {
        Address { host: host.into(), port: 1 }
    }

    /// The numbers of those that are believed. A line is: own id, the ids of others, the primary, and `h` for a host of the URL.
    fn who(lines: &[&str], known: &[&str]) -> String {
        let parsed: Vec<(Ids, Address, bool)> = lines
            .iter()
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                let own = Some(words[0].to_owned()).filter(|own| own != "-");
                let others = words[1].split(',').filter(|id| *id != "-").map(str::to_owned).collect();
                (Ids { own, others }, address(words[2]), words.get(3) == Some(&"h"))
            })
            .collect();
        let members: Vec<Member<'_>> =
            parsed.iter().map(|(ids, primary, is_host)| Member { ids, primary, is_host: *is_host }).collect();
        let known = known.iter().map(|id| (*id).to_owned()).collect();
        let text = |group: &BTreeSet<usize>| group.iter().map(usize::to_string).collect::<String>();
        match believed(&members, &known) {
            Believed::Some(group) => text(&group),
            Believed::Torn(groups) => groups.iter().map(text).collect::<Vec<_>>().join(" or "),
        }
    }

    #[test]
    fn a_sentinel_that_knows_none_of_the_others_is_not_believed() {
        for (lines, known, expected) in [
            // A failover is known to some of them already.
            (&["a b,c old h", "b a,c new h", "c a,b old h"][..], &[][..], "012"),
            (&["a b,c p h", "x - q h", "b a,c p h"], &[], "02"),
            (&["x y,z q h", "a b,c p h", "c a,b p h"], &[], "12"),
            // An address of one of them answers with another sentinel.
            (&["a b,c p h", "x - q h"], &["a", "b", "c"], "0"),
            (&["a b,c p h", "x a,b q h"], &["a", "b", "c"], "0"),
            (&["a b,c p h", "b a,c p h", "x a,b q h"], &[], "01"),
            (&["x a,b q"], &["a", "b", "c"], ""),
            (&["x - q"], &["a", "b", "c"], ""),
            (&["x - q"], &[], "0"),
            // All have been replaced: the URL counts.
            (&["x y q h", "y x q h"], &["a", "b", "c"], "01"),
            // Two groups in one URL.
            (&["a b,c p h", "x y,z q h"], &[], "0 or 1"),
            (&["a b,c p h", "x y,z q h"], &["x"], "1"),
            // One that has just been started knows nobody yet, and names the same primary.
            (&["a b,c p h", "n - p h"], &[], "01"),
            // One that may not show its id counts as of the same group.
            (&["- - p h", "- - q h", "- - q h"], &[], "012"),
            (&["- b,c p h", "- a,c q h"], &[], "01"),
            (&[], &["a"], ""),
        ] {
            assert_eq!(who(lines, known), expected, "{lines:?} {known:?}");
        }
    }
}
