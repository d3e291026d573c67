use redis::Value;

use super::*;
use crate::name::Kind;
use crate::op::job::{AttemptNumber, OpenAttempt, ScheduledTime, Terms};
use crate::op::{Adoption, QueuePlace};
use crate::server::redis::commands::handshake_facts::Replid;

/// The words of a command, as a server reads them.
fn words(command: &Words<'_>) -> Vec<String> {
    let mut bytes = Vec::new();
    command.write(&mut bytes);
    let Ok(Value::Array(words)) = redis::parse_redis_value(&bytes) else { panic!("{bytes:?}") };
    let text = |word| if let Value::BulkString(bytes) = word { String::from_utf8(bytes).unwrap() } else { panic!("{word:?}") };
    words.into_iter().map(text).collect()
}

#[test]
fn words_of_any_length_are_read_as_they_are() {
    for length in [0, 1, 9, 10, 99, 100, 255, 256, 1_000, 70_000] {
        let mut command = Words(Vec::new());
        let text = "ö\r\n$".chars().cycle().take(length).collect::<String>();
        command.text(&text).number(u64::MAX).number(true);
        assert_eq!(words(&command), [&*text, "18446744073709551615", "1"]);
        let many = Words((0..length).map(|_| Word::Text("")).collect());
        assert_eq!(words(&many).len(), length);
    }
}

#[test]
fn every_script_receives_all_keys_and_the_arguments_in_its_header() {
    const MARKER: &str = "n=3 max_ttl=60000 run=run since=0";
    let four = ["4", "k", "{k}:~lt:fence", "{k}:~lt:queue", "{k}:~lt:marker"];
    let quorum_config = QuorumConfig { servers: 3, max_ttl_ms: 60_000 };
    let keys = Arc::new(Keys::new(Kind::Quorum, "", "k", true).unwrap());
    let single = Arc::new(Keys::new(Kind::Exclusive, "", "k", true).unwrap());
    let of_single = |op| match op {
        Op::Lock(op) => Op::Lock(LockOp { keys: Arc::clone(&single), ..op }),
        op => op,
    };
    let owner: Arc<str> = "me".into();
    const TIME: &str = "1795227730123456";
    let acquire = |adopt: Option<(&str, bool)>, quorum_config| {
        let adopt = adopt.map(|(owner, or_acquire)| Adoption { owner: owner.into(), or_acquire, beside: false });
        Op::Lock(LockOp {
            keys: keys.clone(),
            by: owner.clone(),
            verb: Verb::Acquire {
                ttl_ms: 10,
                proposal: TIME.parse().unwrap(),
                adopt,
                fair: false,
                place: None,
                quorum_config,
                job: None,
            },
        })
    };
    // A proposal that is no time.
    let untimely = |proposal| {
        let Op::Lock(LockOp { keys, by: owner, verb: Verb::Acquire { ttl_ms, adopt, fair, place, quorum_config, .. } }) =
            acquire(None, None)
        else {
            unreachable!()
        };
        Op::Lock(LockOp {
            keys,
            by: owner,
            verb: Verb::Acquire { ttl_ms, proposal, adopt, fair, place, quorum_config, job: None },
        })
    };
    let waiting = |stays| {
        let Op::Lock(LockOp { keys, by: owner, verb: Verb::Acquire { ttl_ms, proposal, adopt, quorum_config, .. } }) =
            acquire(None, None)
        else {
            unreachable!()
        };
        let place = Some(QueuePlace { entry: "f:c:1 pid=7".into(), arrival: 5, stays });
        Op::Lock(LockOp {
            keys,
            by: owner,
            verb: Verb::Acquire { ttl_ms, proposal, adopt, fair: true, place, quorum_config, job: None },
        })
    };
    let extend = || {
        let (keys, owner) = (keys.clone(), owner.clone());
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Extend { ttl_ms: 10, fence: 9 } })
    };
    let clock = ["5", "k", "{25578}:~lt:clock", "{k}:~lt:queue", "{k}:~lt:marker", "{k}:~lt:shared"];
    let of_several = |kind, op| match op {
        Op::Lock(op) => Op::Lock(LockOp { keys: Arc::new(Keys::new(kind, "", "k", true).unwrap()), ..op }),
        other => other,
    };
    let job = Arc::new(Keys::new(Kind::Job, "", "k", true).unwrap());
    let of_job = ["6", "k", "{25578}:~lt:clock", "{k}:~lt:queue", "{k}:~lt:marker", "{k}:~lt:job", "{k}:~lt:shared"];
    let begin = {
        let scheduled_time = Some(ScheduledTime { at_ms: 70, max_lateness_ms: 80, waits: true });
        let (job, adopt, place) = (Some(Box::new(Terms { max_attempts: 3, retention_ms: 60, scheduled_time })), None, None);
        let verb =
            Verb::Acquire { ttl_ms: 10, proposal: TIME.parse().unwrap(), adopt, fair: false, place, quorum_config: None, job };
        Op::Lock(LockOp { keys: Arc::new(Keys::new(Kind::Job, "", "k", true).unwrap()), by: owner.clone(), verb })
    };
    let end = |ending| {
        let number = AttemptNumber { number: 2, max: 3, failures: 1 };
        let attempt = OpenAttempt { fence: 9, number, retention_ms: 60, scheduled_time_ms: 70 };
        let verb = Verb::EndAttempt { ending, attempt, leave: Some("b:c:1".into()) };
        Op::Lock(LockOp { keys: job.clone(), by: owner.clone(), verb })
    };
    for (op, expected) in [
        (acquire(None, None), [&four[..], &["me", "10", TIME, "7200010"]].concat()),
        (untimely(7), [&four[..], &["me", "10", "0", "7200010"]].concat()),
        (untimely(u64::MAX), [&four[..], &["me", "10", "0", "7200010"]].concat()),
        (acquire(None, Some(quorum_config)), [&four[..], &["me", "10", TIME, "7200010", "", "", "", "", MARKER]].concat()),
        (
            acquire(Some(("old", true)), Some(quorum_config)),
            [&four[..], &["me", "10", TIME, "7200010", "", "", "", "old", MARKER]].concat(),
        ),
        (acquire(Some(("old", false)), None), [&four[..], &["me", "10", TIME, "7200010", "o", "", "", "old"]].concat()),
        (waiting(false), [&four[..], &["me", "10", TIME, "7200010", "f:c:1 pid=7", "5"]].concat()),
        (waiting(true), [&four[..], &["me", "10", TIME, "7200010", "f:c:1 pid=7", "5", "1"]].concat()),
        (
            Op::Lock(LockOp { keys: keys.clone(), by: owner.clone(), verb: Verb::Confirm { fence: 9 } }),
            [&four[..], &["me", "9"]].concat(),
        ),
        (extend(), [&four[..], &["me", "10", "9"]].concat()),
        (of_single(extend()), vec!["1", "k", "me", "10", "9"]),
        (of_several(Kind::Read, extend()), vec!["2", "k", "{k}:~lt:shared", "me", "10", "9", "read"]),
        (of_several(Kind::Semaphore(3), extend()), vec!["2", "k", "{k}:~lt:shared", "me", "10", "9", "permits"]),
        (of_several(Kind::Read, acquire(None, None)), [&clock[..], &["me", "10", "", TIME]].concat()),
        (of_several(Kind::Semaphore(3), waiting(false)), [&clock[..], &["me", "10", "3", TIME, "f:c:1 pid=7", "5"]].concat()),
        (
            of_several(Kind::Semaphore(3), Op::Lock(LockOp { keys: keys.clone(), by: owner.clone(), verb: Verb::Leave })),
            [&clock[..], &["me", "me", "permits"]].concat(),
        ),
        (of_single(acquire(None, None)), [&clock[..], &["me", "10", TIME]].concat()),
        (of_single(untimely(0)), [&clock[..], &["me", "10"]].concat()),
        (of_single(waiting(true)), [&clock[..], &["me", "10", TIME, "f:c:1 pid=7", "5", "1"]].concat()),
        (of_single(acquire(None, Some(quorum_config))), [&clock[..], &["me", "10", TIME, "", "", "", "", MARKER]].concat()),
        (
            Op::Lock(LockOp { keys: keys.clone(), by: owner.clone(), verb: Verb::Heal { ttl_ms: 10, fence: 9 } }),
            [&four[..], &["me", "10", "9"]].concat(),
        ),
        (
            Op::Lock(LockOp { keys: keys.clone(), by: owner.clone(), verb: Verb::Release { leave: None, kept_ms: 0 } }),
            [&four[..], &["me"]].concat(),
        ),
        (
            Op::Lock(LockOp {
                keys: keys.clone(),
                by: owner.clone(),
                verb: Verb::Release { leave: Some("b:c:1".into()), kept_ms: 0 },
            }),
            [&four[..], &["me", "b:c:1"]].concat(),
        ),
        (
            Op::Lock(LockOp { keys: keys.clone(), by: "b:c:1".into(), verb: Verb::Leave }),
            [&four[..], &["b:c:1", "b:c:1"]].concat(),
        ),
        (Op::inspect(keys.clone()), four.to_vec()),
        (of_single(Op::inspect(keys.clone())), clock.to_vec()),
        (Op::on_nobodys_behalf(job.clone(), Verb::JobStatus), of_job.to_vec()),
        (Op::on_nobodys_behalf(job.clone(), Verb::Reset), of_job.to_vec()),
        (begin, [&of_job[..], &["me", "10", TIME, "3", "60", "70 80 w"]].concat()),
        (
            end(Ending::Done { result: "[1]".into() }),
            [&of_job[..], &["me", "done", "9", "60", "[1]", "", "2 3 1 70", "b:c:1"]].concat(),
        ),
        (
            end(Ending::Failed { error: "no".into(), retry_in_ms: Some(0) }),
            [&of_job[..], &["me", "failed", "9", "60", "no", "0", "2 3 1 70", "b:c:1"]].concat(),
        ),
        (
            end(Ending::Failed { error: "no".into(), retry_in_ms: None }),
            [&of_job[..], &["me", "failed", "9", "60", "no", "-1", "2 3 1 70", "b:c:1"]].concat(),
        ),
        (end(Ending::GivenBack), [&of_job[..], &["me", "back", "9", "", "", "", "", "b:c:1"]].concat()),
        (Op::Greet { quorum_config: None }, vec!["1", "{~lt}:marker"]),
        (Op::Greet { quorum_config: Some(quorum_config) }, vec!["1", "{~lt}:marker", "3", "60000", "run"]),
        (Op::Trust { quorum_config }, vec!["1", "{~lt}:marker", "3", "60000", "run"]),
    ] {
        for is_since_7 in [false, true] {
            let replid = Replid { id: "run".into(), run_id: None, is_first: false, before: None };
            let facts = HandshakeFacts { replid: Some(replid), is_since_7, ..HandshakeFacts::default() };
            let by_sha = words(&command(&op, &facts, Form::BySha));
            assert_eq!(
                (by_sha[0].as_str(), by_sha[1].len(), &by_sha[2..]),
                ("EVALSHA", 40, &*expected.iter().map(|word| word.to_string()).collect::<Vec<_>>())
            );
            let by_text = words(&command(&op, &facts, Form::ByText));
            assert_eq!((by_text[0].as_str(), &by_text[2..]), ("EVAL", &by_sha[2..]));
            assert_eq!(redis::Script::new(&by_text[1]).get_hash(), by_sha[1]);
            let without = matches!(op.verb(), Some(Verb::Inspect | Verb::JobStatus)) || matches!(op, Op::Greet { .. });
            assert_eq!(by_text[1].starts_with("#!lua"), is_since_7 && !without, "{op:?}");
        }
    }
}
