//! Split: an operation in parts, each on one of the lock's keys, while their slot moves to another node. Pure: answers in, the next part
//! out.
//!
//! An acquire takes the lock's key first and asks the clock for a fence then. So only the holder of the key has it, before its grant. A
//! holder that has lost the key meanwhile asks in vain: its grant is past its validity, which counts from before the first part.
//! A leader then notes its term in the lock's key.

use std::sync::Arc;

use crate::error::Remaining;
use crate::name::{Kind, LockKind};
use crate::op::job::{Ending, JobRecord};
use crate::op::{Answer, Failure, LockOp, Op, Part, PartOp, Reply, Verb, Verdict};

/// An operation in parts.
pub(super) struct Split {
    whole: LockOp,
    stage: Stage,
}

/// What was sent last.
enum Stage {
    Take,
    Tick,
    Count {
        ticked: Reply,
    },
    /// The term is noted behind the leader's owner value.
    Note {
        ticked: Reply,
    },
    /// The lock that was taken is given back, and this is the answer.
    GiveBack {
        answer: Answer,
    },
    Only,
    /// The end of an attempt is noted; the lock is released.
    Noted,
    ReleaseBehind {
        noted: Reply,
    },
    Status,
    Holder {
        record: Box<JobRecord>,
        time_us: u64,
    },
    LookAhead,
    /// The record is forgotten; this remains of the lock.
    Forget {
        remaining: Remaining,
    },
}

/// What to do next.
pub(super) enum Next {
    /// Send this part.
    Send(Op),
    /// This is the answer to the whole.
    Done(Answer),
}

impl Split {
    /// Begins an operation: gives its first part. An operation on several servers has no parts: none of them is in a cluster.
    /// On a lock that several hold at once only a release has one, without the queue: the others wait until the slot is whole, and so does
    /// what is about several locks.
    pub(super) fn begin(whole: &LockOp) -> Option<(Self, Op)> {
        let is_shared = whole.keys.kind().is_shared();
        let (stage, part) = match &whole.verb {
            _ if whole.keys.kind() == Kind::Several => return None,
            verb if is_shared && !matches!(verb, Verb::Release { .. } | Verb::Leave) => return None,
            Verb::Acquire { .. } => (Stage::Take, Part::Take),
            Verb::Extend { .. } => (Stage::Only, Part::Extend),
            Verb::Release { .. } | Verb::Leave => (Stage::Only, Part::Release),
            Verb::EndAttempt { .. } => (Stage::Noted, Part::EndAttempt),
            Verb::Inspect => (Stage::Only, Part::Look),
            Verb::JobStatus => (Stage::Status, Part::Status),
            Verb::Reset => (Stage::LookAhead, Part::Look),
            Verb::Confirm { .. } | Verb::Heal { .. } => return None,
        };
        let split = Self { whole: whole.clone(), stage };
        let first = split.part(part);
        Some((split, first))
    }

    /// A part. What only looks is a part of an inspect, and what releases one of a release, whatever the whole is.
    fn part(&self, part: Part) -> Op {
        let mut whole = self.whole.clone();
        match (&part, &whole.verb) {
            (Part::Look, _) => whole = LockOp { by: "".into(), verb: Verb::Inspect, ..whole },
            (Part::Release, Verb::Acquire { .. }) => whole.verb = release(None),
            (Part::Release, Verb::EndAttempt { leave, .. }) => whole.verb = release(leave.clone()),
            _ => {}
        }
        Op::Part(Box::new(PartOp { whole, part }))
    }

    fn send(&mut self, stage: Stage, part: Part) -> Next {
        self.stage = stage;
        Next::Send(self.part(part))
    }

    /// Takes the answer to the part that was sent last.
    pub(super) fn next(&mut self, answer: Answer) -> Next {
        match (std::mem::replace(&mut self.stage, Stage::Only), answer) {
            // What was given back may be refused: the answer is known.
            (Stage::GiveBack { answer }, _) => Next::Done(answer),
            // The first renewal notes the term, too.
            (Stage::Note { ticked }, _) => Next::Done(Ok(ticked)),
            (Stage::Take, Ok(Reply { verdict: Verdict::Vote, .. })) => self.send(Stage::Tick, Part::Tick),
            (Stage::Tick, Ok(ticked @ Reply { verdict: Verdict::Vote, .. })) if self.begins_attempt() => {
                let fence = ticked.fence;
                self.send(Stage::Count { ticked }, Part::CountAttempt { fence })
            }
            (Stage::Tick, Ok(ticked @ Reply { verdict: Verdict::Vote, .. })) if self.begins_term() => self.note_term(ticked),
            (Stage::Count { ticked }, Ok(Reply { verdict: Verdict::Vote, attempt, earlier, .. })) => {
                Next::Done(Ok(Reply { attempt, earlier, ..ticked }))
            }
            (Stage::Tick, Ok(Reply { verdict: Verdict::Vote, fence, time_us, .. })) => {
                Next::Done(Ok(Reply::new(Verdict::Vote, time_us, fence)))
            }
            // No vote: the lock that was taken is free again.
            (Stage::Tick | Stage::Count { .. }, Ok(refusal)) => self.send(Stage::GiveBack { answer: Ok(refusal) }, Part::Release),
            (Stage::Noted, Ok(noted)) => self.send(Stage::ReleaseBehind { noted }, Part::Release),
            (Stage::ReleaseBehind { noted }, Ok(released)) => {
                let is_given_back = matches!(self.whole.verb, Verb::EndAttempt { ending: Ending::GivenBack, .. });
                Next::Done(Ok(if is_given_back { released } else { noted }))
            }
            (Stage::Status, Ok(Reply { verdict: Verdict::Recorded(record), time_us, .. })) => {
                self.send(Stage::Holder { record, time_us }, Part::Look)
            }
            (Stage::Holder { mut record, time_us }, Ok(Reply { verdict: Verdict::Seen { holder, remaining, .. }, .. })) => {
                (record.holder, record.remaining) = (holder, remaining);
                Next::Done(Ok(Reply::new(Verdict::Recorded(record), time_us, 0)))
            }
            (Stage::LookAhead, Ok(Reply { verdict: Verdict::Seen { holder, remaining, .. }, .. })) => {
                self.send(Stage::Forget { remaining }, Part::Reset { holder })
            }
            (Stage::Forget { remaining }, Ok(Reply { verdict: Verdict::No { holder, .. }, time_us, .. })) => {
                Next::Done(Ok(Reply::new(Verdict::No { holder, remaining }, time_us, 0)))
            }
            // An earlier part may have written something.
            (Stage::Tick | Stage::Count { .. } | Stage::ReleaseBehind { .. }, Err(failure)) => {
                Next::Done(Err(Failure { maybe_applied: true, ..failure }))
            }
            (_, answer) => Next::Done(answer),
        }
    }

    /// Observers look for the term of a leader behind its owner value, where an extension writes it.
    fn note_term(&mut self, ticked: Reply) -> Next {
        let Verb::Acquire { ttl_ms, .. } = self.whole.verb else { return Next::Done(Ok(ticked)) };
        let whole = LockOp { verb: Verb::Extend { ttl_ms, fence: ticked.fence }, ..self.whole.clone() };
        self.stage = Stage::Note { ticked };
        Next::Send(Op::Part(Box::new(PartOp { whole, part: Part::Extend })))
    }

    fn begins_term(&self) -> bool {
        matches!(self.whole.verb, Verb::Acquire { .. }) && self.whole.keys.label().kind == LockKind::Election
    }

    fn begins_attempt(&self) -> bool {
        matches!(self.whole.verb, Verb::Acquire { job: Some(_), .. })
    }
}

fn release(leave: Option<Arc<str>>) -> Verb {
    Verb::Release { leave, kept_ms: 0 }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
