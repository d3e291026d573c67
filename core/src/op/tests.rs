//! Operations: what they are about, and what undoes them.

use super::*;

#[test]
fn only_a_newcomer_to_a_plain_lock_takes_it_so() {
    let of = |change: &dyn Fn(&mut LockOp)| {
        let keys = Arc::new(Keys::new(Kind::Exclusive, "", "a", true).unwrap());
        let place = Some(QueuePlace { entry: "b:c:1".into(), arrival: 0, stays: false });
        let (adopt, quorum_config, job) = (None, None, None);
        let verb = Verb::Acquire { ttl_ms: 1, proposal: 0, adopt, fair: false, place, quorum_config, job };
        let mut op = LockOp { keys, by: "ours".into(), verb };
        change(&mut op);
        Op::Lock(op).takes_if_free()
    };
    assert!(of(&|_| ()));
    let refused: [&dyn Fn(&mut LockOp); 6] = [
        &|op| op.verb = Verb::Inspect,
        &|op| op.keys = Arc::new(Keys::new(Kind::Job, "", "a", true).unwrap()),
        &|op| op.keys = Arc::new(Keys::new(Kind::Quorum, "", "a", false).unwrap()),
        &|op| {
            if let Verb::Acquire { place: Some(place), .. } = &mut op.verb {
                place.arrival = 1;
            }
        },
        &|op| {
            if let Verb::Acquire { adopt, .. } = &mut op.verb {
                *adopt = Some(Adoption { owner: "old".into(), or_acquire: true, beside: false });
            }
        },
        &|op| {
            if let Verb::Acquire { quorum_config, .. } = &mut op.verb {
                *quorum_config = Some(QuorumConfig { servers: 1, max_ttl_ms: 1 });
            }
        },
    ];
    assert!(refused.iter().all(|change| !of(change)));
}
