//! The fast path beside the state machine: the same inputs, the same commands.

use super::*;
use crate::clock::Tick;
use crate::mutant::{Mutant, assert_each_noticed, assert_noticed};
use crate::name::Kind;
use crate::op::{Answer, Failure, FailureKind, LockOp, Op};
use crate::options::{LockOptions, Wait};
use crate::protocol::Amount;
use crate::protocol::waiting::tests::{at, gone, held, ms, recipe, recipe_of};
use crate::wait::{LocalQueues, Role, Wakeup};

/// An acquisition, with the queue of its process.
struct Shell {
    recipe: Arc<Recipe>,
    path: AcquirePath,
    queues: LocalQueues,
    /// The requests without an answer.
    sent: Vec<Tag>,
    /// Whether it stands in the queue.
    stands: bool,
}

impl Shell {
    fn new(is_fast: bool, recipe: &Arc<Recipe>, now: Now) -> Self {
        let (recipe, queues) = (Arc::clone(recipe), LocalQueues::new("c", "w", 1));
        let path =
            if is_fast { AcquirePath::fast(Arc::clone(&recipe), 7, now) } else { AcquirePath::full(Arc::clone(&recipe), 7, now) };
        let mut shell = Self { recipe, path, queues, sent: Vec::new(), stands: false };
        if !is_fast && shell.recipe.waits_in_queues() {
            shell.join();
        }
        shell
    }

    fn join(&mut self) {
        self.stands = true;
        self.path.take_place(self.queues.join("l", 1, self.recipe.mode()));
    }

    /// Brings an input, and gives what it leads to, in words.
    fn bring(&mut self, now: Now, input: Input) -> Vec<String> {
        if self.path.needs_place(now.tick, &input) {
            self.join();
        }
        let mut out = Vec::new();
        self.path.handle(now, input, &mut out);
        out.iter().filter_map(|command| self.text(command)).collect()
    }

    fn text(&mut self, command: &Command) -> Option<String> {
        match command {
            Command::Send { tag, request, .. } => {
                self.sent.push(*tag);
                let Op::Lock(LockOp { by, verb, .. }) = &request.op else { return Some(format!("{request:?}")) };
                let verb = match verb {
                    // A place in the queue is only of use where the lock is not free.
                    Verb::Acquire { ttl_ms, proposal, .. } => format!("acquire {ttl_ms} {proposal}"),
                    other => format!("{other:?}"),
                };
                Some(format!("{tag:?} {by} {verb} by {:?} of {:?}", request.deadline, request.value))
            }
            Command::Quit(_) => {
                self.stands = false;
                None
            }
            Command::Listen => None,
            Command::EmitPlain(event) => Some(format!("{:?}", Command::emit(event.clone().of(&self.recipe.keys)))),
            other => Some(format!("{other:?}")),
        }
    }

    fn state(&self, now: Tick) -> String {
        let (valid, held) = (self.path.valid_until(), self.path.hold());
        format!("{valid:?} {held:?} {:?} {:?} {}", self.path.check(now), self.path.is_released(), self.path.is_finished())
    }
}

fn vote(is_bare: bool) -> Reply {
    Reply { is_bare, ..Reply::new(Verdict::Vote, 5_000_000, 4_000_000) }
}

fn answer(rng: &mut fastrand::Rng, kind: Kind, step: Step) -> Answer {
    let failure = |maybe_applied| Err(Failure { maybe_applied, ..Failure::unknown(FailureKind::Disconnected, "it broke") });
    match (step, rng.u8(..10)) {
        (_, 0) => failure(false),
        (_, 1) => failure(true),
        (Step::Acquire, 2) => Ok(Reply::new(held(), 0, 3_000_000)),
        (Step::Acquire, 3) => Ok(Reply { queued: Queued::At { rank: 1, arrival: 9 }, ..Reply::new(held(), 0, 3_000_000) }),
        (Step::Acquire, n) => Ok(vote(kind == Kind::Exclusive && n < 8)),
        (Step::Release, 2) => Ok(Reply::new(gone(), 6_000_000, 5_000_000)),
        (Step::Release, 3) => Ok(Reply { queued: Queued::NotNotified("why".into()), ..Reply::new(Verdict::Ok, 6_000_000, 0) }),
        _ => Ok(Reply::new(Verdict::Ok, 6_000_000, 0)),
    }
}

fn input(rng: &mut fastrand::Rng, call: u64) -> Input {
    match rng.u8(..16) {
        0..=5 => Input::Release(call, Manner::Explicit),
        6 => Input::Release(call, Manner::EndOfBody),
        7 => Input::Release(0, Manner::Background),
        8 => Input::Release(0, Manner::Unclaimed),
        9 => Input::Cancel,
        10 => Input::Close,
        11 => Input::FailedOver(0),
        12 => Input::Extend(call, Amount::By(ms(500))),
        13 => Input::HandOver(call),
        14 => Input::Abandon,
        _ => Input::StopRenewing,
    }
}

/// One sequence of inputs.
fn play(seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let wait = [Wait::Forever, Wait::For(Duration::ZERO), Wait::For(ms(3_000))][rng.usize(..3)];
    let options = LockOptions { ttl: ms([300, 10_000][rng.usize(..2)]), wait, renew: rng.bool(), ..LockOptions::default() };
    let kind = if rng.bool() { Kind::Exclusive } else { Kind::Semaphore(5) };
    let recipe = Arc::new(Recipe { options, busy_is_none: rng.bool(), ..recipe_of(kind, 1) });
    assert!(recipe.suits_fast_path());
    let mut now = Now { tick: at(1_000), wall_us: 1_795_227_730_123_000, servers_us: 0 };
    let [mut fast, mut full] = [true, false].map(|is_fast| Shell::new(is_fast, &recipe, now));
    let mut trace = vec![format!("seed {seed}")];
    let mut next = Some(Input::Start);
    for call in 1..12 {
        let input = next.take().unwrap_or_else(|| {
            let is_answer = !full.sent.is_empty() && rng.u8(..4) < 3;
            if is_answer {
                let tag = full.sent.remove(0);
                Input::Answer { server: 0, tag, answer: answer(&mut rng, kind, tag.step) }
            } else if rng.u8(..4) == 0 {
                Input::Wake
            } else {
                input(&mut rng, call)
            }
        });
        trace.push(format!("{:?} {input:?}", now.tick));
        let is_answer = matches!(&input, Input::Answer { .. });
        // The transaction of the fast path finds the lock held before the script does, and who wants a permit has no place at first.
        let is_held = matches!(&input, Input::Answer { answer: Ok(reply), .. } if matches!(reply.verdict, Verdict::Held { .. }));
        let wants_more = kind == Kind::Exclusive || recipe.waits_in_queues();
        if is_held && wants_more && fast.path.is_asking() {
            let Input::Answer { tag, .. } = &input else { unreachable!() };
            let refused = Input::Answer { server: 0, tag: *tag, answer: Ok(Reply::new(held(), 0, 0)) };
            let again = fast.bring(now, refused);
            assert!(again.iter().all(|sent| sent.contains("acquire")) && again.len() == 1, "{trace:#?}: {again:?}");
        }
        if is_answer && matches!(&input, Input::Answer { .. }) {
            fast.sent.clear();
        }
        if rng.u8(..8) == 0 && fast.path.may_take_place() {
            // Another one waits behind it.
            fast.join();
        }
        let (ours, theirs) = (fast.bring(now, input.clone()), full.bring(now, input));
        assert_eq!(ours, theirs, "{trace:#?}");
        assert_eq!(fast.state(now.tick), full.state(now.tick), "{trace:#?}");
        assert!(fast.path.wake_at() <= full.path.wake_at(), "{trace:#?}");
        trace.extend(ours);
        let span = [0, 1, 1, 1, 12, 40, 200, 600, 1_100, 4_000][rng.usize(..10)];
        now.tick = now.tick.after(ms(span));
        if rng.bool() && full.path.wake_at() <= now.tick {
            next = Some(Input::Wake);
        }
    }
}

fn the_fast_path_does_as_the_state_machine() {
    (0..6_000).for_each(play);
}

#[test]
fn it_does_as_the_state_machine() {
    the_fast_path_does_as_the_state_machine();
}

#[test]
fn the_comparison_notices_mistakes() {
    let of_holds = [Mutant::FastHoldNotConfirmed, Mutant::FastHoldNotClosed, Mutant::FastReleaseForgotten];
    assert_each_noticed(
        of_holds.into_iter().chain([Mutant::ReplayedLater, Mutant::FastAcquireKept]),
        the_fast_path_does_as_the_state_machine,
    );
}

fn who_came_behind_a_request_without_a_place_asks_at_once() {
    let recipe = Arc::new(Recipe { options: LockOptions { wait: Wait::Forever, ..LockOptions::default() }, ..recipe(1) });
    let now = Now { tick: at(1_000), wall_us: 1_795_227_730_123_000, servers_us: 0 };
    let mut shell = Shell::new(true, &recipe, now);
    shell.bring(now, Input::Start);
    shell.join();
    shell.queues.join("l", 2, recipe.mode());
    let (tag, mut out) = (shell.sent.remove(0), Vec::new());
    shell.path.handle(now, Input::Answer { server: 0, tag, answer: Ok(vote(true)) }, &mut out);
    let reason = out.iter().find_map(|command| if let Command::Quit(reason) = command { Some(*reason) } else { None });
    let woken = shell.queues.quit("l", 1, reason.unwrap());
    assert_eq!(woken, [Wakeup { waiter: 2, role: Role::First, at: None }], "it stands in no queue");
}

#[test]
fn who_comes_behind_it_is_in_the_queue() {
    who_came_behind_a_request_without_a_place_asks_at_once();
    assert_noticed(Mutant::FastPlaceBelieved, who_came_behind_a_request_without_a_place_asks_at_once);
}

#[test]
fn it_knows_plain_locks_and_permits_of_one_server() {
    let suits = |change: fn(&mut Recipe)| {
        let mut recipe = recipe(1);
        change(&mut recipe);
        recipe.suits_fast_path()
    };
    assert!(suits(|_| ()));
    assert!(!suits(|recipe| recipe.options.fair = true));
    assert!(!suits(|recipe| recipe.options.min_hold = ms(1)));
    assert!(!suits(|recipe| recipe.options.max_hold = Some(ms(1))));
    assert!(!recipe_of_several_servers().suits_fast_path());
    assert!(recipe_of(Kind::Semaphore(5), 1).suits_fast_path());
    assert!(!recipe_of(Kind::Read, 1).suits_fast_path());
}

fn recipe_of_several_servers() -> Recipe {
    recipe(3)
}
