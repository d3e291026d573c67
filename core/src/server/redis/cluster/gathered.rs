//! Gathered: one answer out of the answers to several operations.

use crate::op::Answer;
use crate::server::Completion;
use crate::sync::Mutex;

pub(super) type Gather = Box<dyn FnOnce(Vec<Answer>) -> Answer + Send>;

/// The answers to the parts of one operation.
pub(super) struct Gathered(Mutex<Option<Open>>);

struct Open {
    answers: Vec<Option<Answer>>,
    left: usize,
    completion: Completion,
    gather: Gather,
}

impl Gathered {
    pub(super) fn new(count: usize, completion: Completion, gather: Gather) -> Self {
        let answers = (0..count).map(|_| None).collect();
        Self(Mutex::new(Some(Open { answers, left: count, completion, gather })))
    }

    /// Takes the answer to the part `at`; the last one completes the whole.
    pub(super) fn take(&self, at: usize, answer: Answer) {
        let mut open = self.0.lock();
        let done = open.as_mut().is_some_and(|open| {
            open.answers[at] = Some(answer);
            open.left -= 1;
            open.left == 0
        });
        let Some(Open { answers, completion, gather, .. }) = open.take_if(|_| done) else { return };
        // The completion may take long, and submit more.
        drop(open);
        completion.complete(gather(answers.into_iter().flatten().collect()));
    }
}
