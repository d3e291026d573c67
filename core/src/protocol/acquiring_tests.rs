//! A waiting acquire in virtual time: its requests, its notices, and how it is removed from its queue.

use std::sync::Arc;

use crate::clock::{Now, Tick};
use crate::op::{Adoption, Answer, Failure, FailureKind, LockOp, Op, Queued, Reply, Verb, Verdict};
use crate::options::{LockOptions, Wait};
use crate::protocol::waiting::tests::{at, gone, held, ms, recipe};
use crate::protocol::{Acquisition, Command, Input, Recipe, Step, Tag};
use crate::wait::{Hint, LeaveReason, LocalQueues, Role, Waiter};

/// A whole acquire, on servers whose answers a test chooses.
pub(in crate::protocol) struct Acquire {
    pub(in crate::protocol) machine: Acquisition,
    pub(in crate::protocol) round: u32,
    pub(in crate::protocol) now: Tick,
}

impl Acquire {
    pub(in crate::protocol) fn new(waiter: Option<Waiter>, options: LockOptions) -> Self {
        let recipe = Recipe { options, ..recipe(1) };
        let now = Now { tick: at(0), wall_us: 0, servers_us: 0 };
        Self { machine: Acquisition::new(Arc::new(recipe), waiter, 1, now), round: 0, now: at(0) }
    }

    pub(in crate::protocol) fn bring(&mut self, input: Input) -> Vec<Command> {
        let mut out = Vec::new();
        self.machine.handle(Now { tick: self.now, wall_us: 0, servers_us: 0 }, input, &mut out);
        let acquires = |command: &&Command| matches!(command, Command::Send { request, .. } if matches!(request.op.verb(), Some(Verb::Acquire { .. })));
        self.round += out.iter().filter(acquires).count() as u32;
        out
    }

    pub(in crate::protocol) fn answer(&mut self, verdict: Verdict, queued: Queued) -> Vec<Command> {
        let tag = Tag { round: self.round, step: Step::Acquire, sent: self.now };
        let reply = Reply::new(verdict, 0, 7);
        self.bring(Input::Answer { server: 0, tag, answer: Ok(Reply { queued, ..reply }) })
    }

    pub(in crate::protocol) fn held(&mut self) -> Vec<Command> {
        self.answer(held(), Queued::At { rank: 2, arrival: 9 })
    }
}

pub(in crate::protocol) fn reason(commands: &[Command]) -> Option<LeaveReason> {
    commands.iter().find_map(|command| if let Command::Quit(reason) = command { Some(*reason) } else { None })
}

/// The waiters that these commands take off a server.
pub(in crate::protocol) fn leaving(commands: &[Command]) -> Vec<String> {
    let leaves = |command: &Command| match command {
        Command::Send { request, .. } => match &request.op {
            Op::Lock(LockOp { verb: Verb::Release { leave, .. }, .. }) => leave.as_ref().map(ToString::to_string),
            Op::Lock(LockOp { by: entry, verb: Verb::Leave, .. }) => Some(entry.to_string()),
            _ => None,
        },
        _ => None,
    };
    commands.iter().filter_map(leaves).collect()
}

pub(in crate::protocol) fn waiters(count: u64, fair: bool) -> (LocalQueues, Vec<Waiter>) {
    let mut queues = LocalQueues::new("c", "", 1);
    let waiters = (1..=count).map(|waiter| queues.join("l", waiter, fair)).collect();
    (queues, waiters)
}

#[test]
fn a_parked_acquire_sends_nothing_until_its_wait_is_over_and_then_fails_with_its_rank() {
    let (_queues, waiters) = waiters(2, false);
    let mut acquire = Acquire::new(Some(waiters[1].clone()), LockOptions { wait: Wait::For(ms(300)), ..LockOptions::default() });
    assert_eq!(acquire.bring(Input::Start).len(), 0);
    assert_eq!(acquire.machine.wake_at(), at(300));
    acquire.now = at(300);
    acquire.bring(Input::Wake);
    assert_eq!(acquire.round, 1, "one last try");
    let ended = acquire.held();
    let error = ended.iter().find_map(|command| if let Command::Acquired(Err(error)) = command { Some(error) } else { None });
    assert_eq!(error.and_then(crate::Error::rank), Some(2));
    assert_eq!((reason(&ended), leaving(&ended)), (Some(LeaveReason::GaveUp), vec![]), "another shares the place");
}

#[test]
fn an_acquire_that_gives_up_removes_its_place_from_the_servers() {
    for fair in [false, true] {
        let (_queues, waiters) = waiters(1, fair);
        let entry = waiters[0].slot.entry().to_string();
        let mut acquire = Acquire::new(Some(waiters[0].clone()), LockOptions { fair, ..LockOptions::default() });
        acquire.bring(Input::Start);
        acquire.held();
        let ended = acquire.bring(Input::Cancel);
        assert_eq!((reason(&ended), leaving(&ended)), (Some(LeaveReason::GaveUp), vec![entry]), "{fair}");
    }
}

#[test]
fn an_acquire_that_no_server_enqueued_has_nothing_to_remove() {
    let (_queues, waiters) = waiters(1, false);
    let mut acquire = Acquire::new(Some(waiters[0].clone()), LockOptions::default());
    acquire.bring(Input::Start);
    acquire.answer(held(), Queued::Nothing);
    let ended = acquire.bring(Input::Cancel);
    assert_eq!((reason(&ended), leaving(&ended)), (Some(LeaveReason::GaveUp), vec![]));
}

#[test]
fn a_grant_shows_how_long_the_queue_has_to_wait_and_whether_it_is_in_it() {
    for (behind, stays) in [(0, false), (1, true)] {
        let (_queues, waiters) = waiters(1 + behind, false);
        let mut acquire = Acquire::new(Some(waiters[0].clone()), LockOptions::default());
        acquire.bring(Input::Start);
        let ended = acquire.answer(Verdict::Vote, Queued::Nothing);
        let Some(LeaveReason::Granted { until, stays: given }) = reason(&ended) else { panic!("it was granted") };
        assert_eq!((until, given), (acquire.machine.valid_until(), stays));
    }
}

#[test]
fn a_hold_that_was_taken_over_is_asked_for_again_with_the_same_owner_value_until_replicas_have_confirmed_it() {
    let asked = |commands: &[Command]| {
        let ask = |command: &Command| match command {
            Command::Send { request, .. } => match &request.op {
                Op::Lock(LockOp { by, .. }) => Some((request.op.name(), by.to_string())),
                _ => None,
            },
            _ => None,
        };
        commands.iter().filter_map(ask).collect::<Vec<_>>()
    };
    for adopts in [true, false] {
        let adopt = Some(Adoption { owner: "before".into(), or_acquire: false, beside: false }).filter(|_| adopts);
        let recipe = Arc::new(Recipe { adopt, ..recipe(1) });
        let now = Now { tick: at(0), wall_us: 0, servers_us: 0 };
        let mut acquire = Acquire { machine: Acquisition::new(recipe, None, 1, now), round: 0, now: at(0) };
        let unreplicated = |acquire: &mut Acquire| {
            let tag = Tag { round: acquire.round, step: Step::Acquire, sent: acquire.now };
            let answer = Err(Failure::unknown(FailureKind::NotReplicated, "0 of 1"));
            asked(&acquire.bring(Input::Answer { server: 0, tag, answer }))
        };
        let first = asked(&acquire.bring(Input::Start));
        let released = vec![("release", first[0].1.clone())];
        assert_eq!(unreplicated(&mut acquire), if adopts { vec![] } else { released.clone() });
        acquire.now = acquire.machine.wake_at();
        if adopts {
            assert_eq!(asked(&acquire.bring(Input::Wake)), first);
            assert_eq!(unreplicated(&mut acquire), vec![]);
            assert_eq!(asked(&acquire.bring(Input::Cancel)), released, "it is given back by whoever gives up");
        }
    }
}

#[test]
fn the_next_waiter_looks_within_a_second_however_long_the_lock_was_granted_for() {
    let (_queues, waiters) = waiters(2, false);
    let mut acquire = Acquire::new(Some(waiters[1].clone()), LockOptions::default());
    acquire.bring(Input::Start);
    let commands = acquire.bring(Input::Role(Role::First, Some(at(60_000))));
    assert!(commands.iter().any(|command| matches!(command, Command::Listen)), "the one before it may never have had to");
    assert!(acquire.machine.wake_at() <= at(1_000), "{:?}", acquire.machine.wake_at());
    acquire.now = at(5);
    acquire.bring(Input::Role(Role::First, None));
    assert_eq!(acquire.round, 1, "at once, if it has to queue up");
}

#[test]
fn a_wait_is_reported_once_when_it_is_long() {
    let cases = [
        (Wait::Forever, false, vec![at(5_000)]),
        (Wait::Forever, true, vec![at(5_000)]),
        (Wait::For(ms(60_000)), false, vec![at(5_000)]),
        (Wait::For(ms(4_000)), false, vec![]),
        (Wait::For(ms(0)), false, vec![]),
    ];
    for (wait, parked, expected) in cases {
        let (_queues, waiters) = waiters(2, false);
        let waiter = waiters[usize::from(parked)].clone();
        let mut acquire = Acquire::new(Some(waiter), LockOptions { wait, ..LockOptions::default() });
        let mut times = Vec::new();
        let mut commands = acquire.bring(Input::Start);
        while acquire.now < at(20_000) {
            if commands.iter().any(|command| matches!(command, Command::Send { .. })) {
                commands = acquire.held();
                continue;
            }
            acquire.now = acquire.machine.wake_at().min(at(20_000));
            commands = acquire.bring(Input::Wake);
            if commands.iter().any(|command| matches!(command, Command::WaitsLong { since } if *since == at(0))) {
                times.push(acquire.now);
            }
        }
        assert_eq!(times, expected, "{wait:?}, parked: {parked}");
    }
}

#[test]
fn events_say_once_that_it_waits_in_the_queue_and_that_it_was_notified() {
    let (_queues, waiters) = waiters(1, false);
    let mut acquire = Acquire::new(Some(waiters[0].clone()), LockOptions::default());
    let mut kinds = Vec::new();
    let mut note = |commands: Vec<Command>| {
        let emitted = |command| if let Command::Emit(event) = command { Some(event) } else { None };
        kinds.extend(commands.into_iter().filter_map(emitted).map(|event| (event.kind.as_str(), event.rank)));
    };
    note(acquire.bring(Input::Start));
    note(acquire.held());
    acquire.now = at(990);
    note(acquire.bring(Input::Wake));
    acquire.now = at(1_001);
    note(acquire.bring(Input::Wake));
    note(acquire.held());
    note(acquire.bring(Input::Hint(0, Hint::Free)));
    note(acquire.answer(Verdict::Vote, Queued::Nothing));
    let expected = [
        ("round", None),
        ("busy", None),
        ("queued", Some(2)),
        ("round", None),
        ("busy", None),
        ("notified", None),
        ("round", None),
        ("acquired", None),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_waiter_that_gives_up_removes_the_place_that_another_of_its_process_had_enqueued() {
    let (mut queues, waiters) = waiters(2, false);
    let mut first = Acquire::new(Some(waiters[0].clone()), LockOptions::default());
    let mut second = Acquire::new(Some(waiters[1].clone()), LockOptions::default());
    first.bring(Input::Start);
    second.bring(Input::Start);
    first.answer(Verdict::Vote, Queued::At { rank: 0, arrival: 9 });
    queues.quit("l", 1, LeaveReason::Granted { until: at(9_998), stays: true });
    let ended = second.bring(Input::Cancel);
    assert_eq!(leaving(&ended), [waiters[1].slot.entry().to_string()]);
}

#[test]
fn a_server_that_refuses_after_the_end_of_a_round_is_believed_when_it_reports_a_release() {
    // The late answer of the third server after the others have decided, and the time of the next try by its hint alone.
    for (late, soonest, latest) in [(held(), 1, 6), (Verdict::Vote, 700, 1_001)] {
        let mut queues = LocalQueues::new("c", "", 3);
        let waiter = queues.join("l", 1, false);
        let mut machine = Acquisition::new(Arc::new(recipe(3)), Some(waiter), 1, Now { tick: at(0), wall_us: 0, servers_us: 0 });
        let mut bring = |input| machine.handle(Now { tick: at(1), wall_us: 0, servers_us: 0 }, input, &mut Vec::new());
        bring(Input::Start);
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(1) };
        for (server, verdict) in [(0, held()), (1, held()), (2, late.clone())] {
            let reply = Reply::new(verdict, 0, 7);
            let reply = Reply { queued: Queued::At { rank: 0, arrival: 9 }, ..reply };
            bring(Input::Answer { server, tag, answer: Ok(reply) });
        }
        bring(Input::Hint(2, Hint::Free));
        let next = machine.wake_at();
        assert!(next > at(soonest) && next <= at(latest), "{late:?}: {next:?}");
    }
}

#[test]
fn bugs_planted_in_an_acquire_are_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::FirstRoleDoesNotListen, the_next_waiter_looks_within_a_second_however_long_the_lock_was_granted_for);
}

fn one_that_leaves_while_an_earlier_round_has_no_answer_leaves_behind_that() {
    let lost = || Err(Failure::unknown(FailureKind::Disconnected, "it broke"));
    let enqueued = || {
        let reply = Reply::new(held(), 0, 7);
        Ok(Reply { queued: Queued::At { rank: 0, arrival: 9 }, ..reply })
    };
    // The server may still read the acquire; or it has read it, and its answer comes late.
    for answer in [lost as fn() -> Answer, enqueued] {
        let (_queues, waiters) = waiters(1, true);
        let entry = waiters[0].slot.entry().to_string();
        let mut acquire = Acquire::new(Some(waiters[0].clone()), LockOptions { fair: true, ..LockOptions::default() });
        acquire.bring(Input::Start);
        acquire.now = acquire.machine.wake_at();
        let mut asked = acquire.bring(Input::Wake);
        assert_eq!((acquire.round, leaving(&asked)), (1, vec![]), "the round is undone");
        asked.extend(acquire.bring(Input::Cancel));
        assert_eq!(leaving(&asked), Vec::<String>::new(), "as far as one knows it stands in no queue");
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
        asked.extend(acquire.bring(Input::Answer { server: 0, tag, answer: answer() }));
        while let Some(command) = asked.pop() {
            // Each removal finds nothing.
            if let Command::Send { server, tag, request } = command {
                if matches!(&request.op, Op::Lock(LockOp { verb: Verb::Release { leave: Some(leave), .. }, .. }) | Op::Lock(LockOp { by: leave, verb: Verb::Leave, .. }) if **leave == *entry)
                {
                    asked.clear();
                    acquire.round = 0;
                }
                let answer = Ok(Reply::new(gone(), 0, 7));
                acquire.bring(Input::Answer { server, tag, answer });
            }
            if asked.is_empty() && acquire.round > 0 && acquire.machine.wake_at() != Tick::NEVER {
                acquire.now = acquire.machine.wake_at();
                asked = acquire.bring(Input::Wake);
            }
        }
        assert_eq!(acquire.round, 0, "{entry} was taken out behind the acquire");
    }
}

#[test]
fn an_acquire_that_leaves_while_an_earlier_round_has_no_answer_leaves_behind_that() {
    one_that_leaves_while_an_earlier_round_has_no_answer_leaves_behind_that();
}

#[test]
fn an_acquire_that_ends_without_the_lock_reports_how_and_how_long_it_waited() {
    let denied = || Err(Failure::not_applied(FailureKind::Denied, "NOPERM"));
    let held = || Ok(Reply::new(held(), 0, 7));
    for (input, answer, kind, holder, message) in [
        (None, held as fn() -> Answer, "timed_out", Some("id=x"), false),
        (None, denied, "acquire_failed", None, true),
        (Some(Input::Cancel), held, "cancelled", None, false),
        (Some(Input::Close), held, "cancelled", None, true),
    ] {
        let (_queues, waiters) = waiters(1, false);
        let options = LockOptions { wait: Wait::For(ms(300)), ..LockOptions::default() };
        let mut acquire = Acquire::new(Some(waiters[0].clone()), options);
        acquire.bring(Input::Start);
        let tag = Tag { round: 1, step: Step::Acquire, sent: at(0) };
        acquire.now = at(if input.is_some() { 200 } else { 300 });
        let mut commands = acquire.bring(Input::Answer { server: 0, tag, answer: answer() });
        acquire.now = at(300);
        commands.extend(input.into_iter().flat_map(|input| acquire.bring(input)));
        let ended = |command: Command| match command {
            Command::Emit(event) if event.kind.as_str() == kind => Some(event),
            _ => None,
        };
        let ended: Vec<_> = commands.into_iter().filter_map(ended).collect();
        let [event] = &ended[..] else { panic!("{kind}: {ended:?}") };
        assert_eq!((event.took, event.holder.as_deref(), event.message.is_some()), (Some(ms(300)), holder, message), "{kind}");
        assert_eq!((event.lock_name.as_deref(), event.key.as_deref()), (Some("l"), Some("l")), "{kind}");
    }
}

#[test]
fn planted_bugs_fail_the_tables() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::LeaverOvertaken, one_that_leaves_while_an_earlier_round_has_no_answer_leaves_behind_that);
}
