//! Replicated: what counts only when replicas have confirmed it.
//!
//! `WAIT` blocks its connection until enough replicas have confirmed what that connection wrote, or for all of its timeout. So
//! grants, extensions and the ends of attempts have a connection of their own, on which one `WAIT` follows behind each batch of
//! them. What comes meanwhile is the next batch. A script can't wait, and a `WAIT` of another connection is about that connection's
//! writes alone.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use crate::clock::Tick;
use crate::op::job::Ending;
use crate::op::{Answer, Failure, FailureKind, Op, Reply, Verb, Verdict};
use crate::server::redis::connection::failure::closed;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::input::Input;
use crate::server::redis::settings::ReplicaTerms;
use crate::server::{Completion, Request};
use crate::sync::Mutex;

/// The connection for what replicas have to confirm.
pub(crate) struct Replicated {
    pub(crate) inbox: UnboundedSender<Input>,
    terms: ReplicaTerms,
    response_timeout: Duration,
    batch: Mutex<Batch>,
}

#[derive(Default)]
struct Batch {
    /// Whether a `WAIT` has no answer yet.
    is_awaited: bool,
    /// What came since that `WAIT` was sent.
    gathered: Vec<InFlight>,
    /// What the server has done, and replicas have not confirmed so far.
    done: Vec<Done>,
}

struct Done {
    request: Request,
    completion: Completion,
    reply: Reply,
}

impl Replicated {
    pub(crate) fn new(inbox: UnboundedSender<Input>, terms: ReplicaTerms, response_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { inbox, terms, response_timeout, batch: Mutex::default() })
    }

    /// Whether an operation is one that replicas have to confirm.
    pub(crate) fn concerns(op: &Op) -> bool {
        use Verb::{Acquire, Confirm, EndAttempt, Extend, Heal};
        match op.verb() {
            Some(Acquire { .. } | Confirm { .. } | Extend { .. } | Heal { .. }) => true,
            // A record that forgets it has the work done once more. That an attempt was given back may be forgotten.
            Some(EndAttempt { ending, .. }) => *ending != Ending::GivenBack,
            _ => false,
        }
    }

    pub(crate) fn submit(self: &Arc<Self>, pending: InFlight) {
        let mut batch = self.batch.lock();
        if batch.is_awaited {
            return batch.gathered.push(pending);
        }
        batch.is_awaited = true;
        drop(batch);
        self.send([pending]);
    }

    /// Sends operations, and a `WAIT` behind them.
    fn send(self: &Arc<Self>, operations: impl IntoIterator<Item = InFlight>) {
        for InFlight { request, completion, asking, .. } in operations {
            let (this, kept) = (Arc::clone(self), request.clone());
            let completion = Completion::new(move |answer| this.answered(kept, completion, answer));
            self.enqueue(InFlight { asking, ..InFlight::new(request, completion) });
        }
        let this = Arc::clone(self);
        let timeout_ms = u64::try_from(self.terms.timeout.as_millis()).unwrap_or(u64::MAX);
        let op = Op::AwaitReplicas { replicas: self.terms.replicas, timeout_ms };
        self.send_one(Request::new(op, Tick::NEVER), Completion::new(move |answer| this.wait_answered(&answer)));
    }

    fn send_one(&self, request: Request, completion: Completion) {
        self.enqueue(InFlight::new(request, completion));
    }

    fn enqueue(&self, pending: InFlight) {
        if let Err(refused) = self.inbox.send(Input::Submit(pending))
            && let Input::Submit(pending) = refused.0
        {
            pending.completion.complete(Err(closed(false)));
        }
    }

    /// Takes the server's answer to an operation. What it has done is kept until replicas have confirmed it.
    fn answered(self: &Arc<Self>, request: Request, completion: Completion, answer: Answer) {
        match answer {
            Ok(reply) if matches!(reply.verdict, Verdict::Vote | Verdict::Ok) => {
                let mut batch = self.batch.lock();
                batch.done.push(Done { request, completion, reply });
                // It was sent twice, as a script that the server did not know is: the answer to its `WAIT` was there before.
                if !std::mem::replace(&mut batch.is_awaited, true) {
                    drop(batch);
                    self.send([]);
                }
            }
            // Nothing was written that has to be kept.
            other => completion.complete(other),
        }
    }

    /// Takes the answer to `WAIT`. The next batch begins before the answers of this one are passed on.
    fn wait_answered(self: &Arc<Self>, waited: &Answer) {
        let mut batch = self.batch.lock();
        let (done, gathered) = (std::mem::take(&mut batch.done), std::mem::take(&mut batch.gathered));
        batch.is_awaited = !gathered.is_empty();
        drop(batch);
        if !gathered.is_empty() {
            self.send(gathered);
        }
        for Done { request, completion, reply } in done {
            let assessed = assess(waited, reply.socket, self.terms);
            if assessed.as_ref().is_err_and(|failure| failure.kind == FailureKind::Closed)
                && let Some(undo) = request.op.undo()
            {
                // Nobody else undoes a grant that is answered while the client closes.
                self.send_one(Request::new(undo, Tick::now().after(self.response_timeout)), Completion::new(|_| ()));
            }
            completion.complete(assessed.map(|()| reply));
        }
    }
}

/// Whether enough replicas have confirmed what was done on this socket before the answer to a `WAIT` came. An answer that came on
/// another socket shows nothing: there the connection had written nothing yet.
fn assess(waited: &Answer, socket: u8, terms: ReplicaTerms) -> Result<(), Failure> {
    match waited {
        Ok(Reply { verdict: Verdict::Replicated { .. }, socket: other, .. }) if *other != socket => {
            Err(Failure::unknown(FailureKind::Disconnected, "the connection broke before replicas had confirmed the write"))
        }
        Ok(Reply { verdict: Verdict::Replicated { count }, .. }) if *count >= u64::from(terms.replicas) => Ok(()),
        Ok(Reply { verdict: Verdict::Replicated { count }, .. }) => {
            let (replicas, timeout) = (terms.replicas, terms.timeout.as_millis());
            let why = format!("{count} of {replicas} replicas confirmed the write within {timeout} ms");
            Err(Failure::unknown(FailureKind::NotReplicated, why))
        }
        Ok(_) => Err(Failure::unknown(FailureKind::Protocol, "WAIT was answered with no number")),
        Err(failure) => Err(Failure { maybe_applied: true, ..failure.clone() }),
    }
}

#[cfg(test)]
#[path = "replicated_tests.rs"]
mod tests;
