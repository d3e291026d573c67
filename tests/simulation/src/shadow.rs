//! Shadow: the state machine beside an acquisition on the fast path. It takes the same inputs, and has to give the same commands.
//!
//! It stands in a local queue of its own, so it knows nobody that comes behind it. While the lock is neither granted nor refused that
//! makes no difference, and afterwards only to an acquisition that goes on waiting: that one is left alone then.

use std::sync::Arc;

use locktender::internals::clock::{Now, Tick};
use locktender::internals::protocol::{AcquirePath, Command, Input, Recipe};
use locktender::internals::wait::LocalQueues;
use locktender::op::{LockOp, Op, Verb, Verdict};

/// The state machine, in a local queue of its own.
pub(super) struct Shadow {
    recipe: Arc<Recipe>,
    machine: AcquirePath,
}

impl Shadow {
    /// That of an acquisition on the fast path, which has the same `seed`.
    pub(super) fn new(recipe: &Arc<Recipe>, seed: u64, now: Now) -> Self {
        let mut machine = AcquirePath::full(Arc::clone(recipe), seed, now);
        if recipe.waits_in_queues() {
            let mut queues = LocalQueues::new("shadow", "w", 1);
            machine.take_place(queues.join(&recipe.queue_key(), 0, recipe.mode()));
        }
        Self { recipe: Arc::clone(recipe), machine }
    }

    /// Has both take an input, and compares the commands and what both say of themselves. Gives what differs; or itself, as long as there
    /// is something to compare.
    pub(super) fn handle(
        mut self,
        other: &mut AcquirePath,
        now: Now,
        input: Input,
        commands: &mut Vec<Command>,
    ) -> Result<Option<Self>, String> {
        let is_refusal =
            matches!(&input, Input::Answer { answer: Ok(reply), .. } if matches!(reply.verdict, Verdict::Held { .. }));
        if other.is_asking() && is_refusal {
            other.handle(now, input, commands);
            return Ok(None);
        }
        let mut own = Vec::new();
        other.handle(now, input.clone(), commands);
        self.machine.handle(now, input, &mut own);
        let [ours, theirs] =
            [&own, &*commands].map(|commands| commands.iter().filter_map(|command| self.text(command)).collect::<Vec<_>>());
        let [our_state, their_state] = [&self.machine, &*other].map(|machine| state(machine, now.tick));
        if ours != theirs || our_state != their_state {
            return Err(format!("the fast path gives {theirs:?}, {their_state}\nand the state machine {ours:?}, {our_state}"));
        }
        let (fast, full) = (other.wake_at(), self.machine.wake_at());
        if fast > full {
            return Err(format!("the fast path wakes at {fast:?}, the state machine at {full:?}"));
        }
        let is_granted = other.valid_until() > Tick::default();
        Ok((matches!(other, AcquirePath::Fast(_)) || is_granted).then_some(self))
    }

    /// A command in words; `None` for those about the local queue.
    fn text(&self, command: &Command) -> Option<String> {
        match command {
            Command::Send { tag, request, .. } => {
                let (deadline, value) = (Some(request.deadline), &request.value);
                let (op, deadline) = match &request.op {
                    // A place in the queue is only of use where the lock is not free.
                    Op::Lock(LockOp { by, verb: Verb::Acquire { ttl_ms, proposal, .. }, .. }) => {
                        (format!("acquire {by} {ttl_ms} {proposal}"), deadline)
                    }
                    // It is left by the last of the process in it, and who leaves tries that for longer.
                    Op::Lock(LockOp { by, verb: Verb::Release { kept_ms, .. }, .. }) => {
                        (format!("release {by} {kept_ms}"), deadline.filter(|_| value.is_some()))
                    }
                    other => (format!("{other:?}"), deadline),
                };
                Some(format!("{tag:?} {op} by {deadline:?} of {value:?}"))
            }
            Command::Quit(_) | Command::Listen => None,
            Command::EmitPlain(event) => Some(format!("{:?}", Command::Emit(Box::new(event.clone().of(&self.recipe.keys))))),
            other => Some(format!("{other:?}")),
        }
    }
}

fn state(machine: &AcquirePath, now: Tick) -> String {
    format!("{:?} {:?} {}", machine.valid_until(), machine.check(now), machine.is_finished())
}
