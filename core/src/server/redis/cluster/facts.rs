//! Facts of a cluster: what its primaries report about themselves, as one server. Pure.

use crate::op::{Answer, ClusterFacts, Reply, ServerFacts, Verdict};

/// One answer for those of all primaries, of a cluster with so many slots that no node serves: in everything the one that is worst
/// for a lock, because any of them may have it. A primary that does not answer is the whole answer.
pub(super) fn of_all(answers: Vec<Answer>, unserved: usize) -> Answer {
    let mut whole: Option<Reply> = None;
    for answer in answers {
        let reply = answer?;
        whole = Some(match whole {
            None => reply,
            Some(before) => worse(before, reply),
        });
    }
    let mut whole = whole.unwrap_or_else(|| Reply::new(Verdict::Ok, 0, 0));
    if let Verdict::Described(facts) = &mut whole.verdict {
        facts.cluster.get_or_insert(ClusterFacts { primaries: 1, unserved: 0 }).unserved = unserved;
    }
    Ok(whole)
}

fn worse(one: Reply, other: Reply) -> Reply {
    let (Verdict::Described(first), Verdict::Described(second)) = (one.verdict, other.verdict) else {
        return Reply::new(Verdict::Ok, 0, 0);
    };
    let rank = |persistence: &str| ["none", "rdb", "aof"].iter().position(|known| *known == persistence);
    let (is_weaker, evicts) = (rank(&second.persistence) < rank(&first.persistence), first.eviction == "noeviction");
    let count = |facts: &ServerFacts| facts.cluster.as_ref().map_or(1, |cluster| cluster.primaries);
    let primaries = count(&first) + count(&second);
    let facts = ServerFacts {
        persistence: if is_weaker { second.persistence } else { first.persistence },
        eviction: if evicts { second.eviction } else { first.eviction },
        role: if first.role == "master" { second.role } else { first.role },
        shows_replid: first.shows_replid && second.shows_replid,
        is_writable_replica: first.is_writable_replica || second.is_writable_replica,
        replicas: first.replicas.min(second.replicas),
        cluster: Some(ClusterFacts { primaries, unserved: 0 }),
        version: first.version,
        in_cluster: first.in_cluster,
        sentinels: None,
    };
    Reply::new(Verdict::Described(Box::new(facts)), one.time_us.min(other.time_us), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Failure, FailureKind};

    fn node(persistence: &str, eviction: &str, replicas: u32) -> Answer {
        let facts = ServerFacts {
            role: "master".into(),
            persistence: persistence.into(),
            eviction: eviction.into(),
            replicas,
            shows_replid: true,
            ..ServerFacts::default()
        };
        Ok(Reply::new(Verdict::Described(Box::new(facts)), 7, 0))
    }

    #[test]
    fn a_cluster_is_as_good_as_its_worst_primary() {
        let nodes = [("aof", "noeviction", 2), ("none", "allkeys-lru", 1), ("rdb", "noeviction", 3)];
        for turn in 0..3 {
            let answers =
                nodes.iter().cycle().skip(turn).take(3).map(|(persistence, eviction, count)| node(persistence, eviction, *count));
            let Ok(Reply { verdict: Verdict::Described(facts), .. }) = of_all(answers.collect(), 7) else { panic!("no facts") };
            assert_eq!((&*facts.persistence, &*facts.eviction, facts.replicas), ("none", "allkeys-lru", 1));
            assert_eq!(
                (&*facts.role, facts.shows_replid, facts.cluster),
                ("master", true, Some(ClusterFacts { primaries: 3, unserved: 7 }))
            );
        }
    }

    #[test]
    fn a_primary_that_does_not_answer_is_the_answer() {
        let failure = Failure::not_applied(FailureKind::Refused, "no");
        assert_eq!(of_all(vec![node("aof", "noeviction", 0), Err(failure.clone())], 0), Err(failure));
        let Ok(Reply { verdict: Verdict::Described(facts), .. }) = of_all(vec![node("aof", "noeviction", 0)], 0) else {
            panic!("no facts")
        };
        assert_eq!(facts.cluster, Some(ClusterFacts { primaries: 1, unserved: 0 }));
    }
}
