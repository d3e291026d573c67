//! Force release: whether the servers ended a hold that is another's.

use crate::error::{Error, ServerFailure};
use crate::op::{Answer, FailureKind, Reply, Verdict};
use crate::protocol::{Quorum, failures};

/// What the servers' answers to the release of another's hold mean: whether the hold existed, and has no majority any more. `None`
/// while a server could still answer: one that is late keeps its key otherwise.
pub(crate) fn force_released(name: &str, servers: &[String], answers: &[Option<Answer>]) -> Option<Result<bool, Error>> {
    if answers.iter().any(Option::is_none) {
        return None;
    }
    let quorum = Quorum::of(answers.len());
    let failed: Vec<ServerFailure> = failures(servers, answers);
    if quorum.blocked_by(failed.len()) {
        let denied = failed.iter().filter(|error| error.kind == FailureKind::Denied).count();
        return Some(Err(match quorum.blocked_by(denied) {
            true => Error::denied(Some(name), failed),
            false => Error::unavailable(Some(name), answers.len(), failed),
        }));
    }
    let is_done = |reply: &Reply| matches!(reply.verdict, Verdict::Ok);
    Some(Ok(answers.iter().flatten().flatten().any(is_done)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Remaining};
    use crate::op::Failure;

    fn ok() -> Option<Answer> {
        Some(Ok(Reply::new(Verdict::Ok, 0, 0)))
    }

    fn no() -> Option<Answer> {
        Some(Ok(Reply::new(Verdict::No { holder: None, remaining: Remaining::Gone }, 0, 0)))
    }

    fn failed(kind: FailureKind) -> Option<Answer> {
        Some(Err(Failure::unknown(kind, "no")))
    }

    #[test]
    fn a_hold_has_ended_where_no_majority_can_have_it() {
        let result = |answers: &[Option<Answer>]| force_released("a", &vec![String::new(); answers.len()], answers);
        let late = || failed(FailureKind::Timeout);
        for (answers, expected) in [
            (vec![ok()], Some(true)),
            (vec![no()], Some(false)),
            (vec![ok(), ok(), None], None),
            (vec![ok(), ok(), late()], Some(true)),
            (vec![ok(), no(), no()], Some(true)),
            (vec![no(), no(), late()], Some(false)),
        ] {
            assert_eq!(result(&answers).map(|result| result.unwrap()), expected, "{answers:?}");
        }
        let denied = || failed(FailureKind::Denied);
        for (answers, code) in [
            (vec![ok(), late(), late()], Code::Unavailable),
            (vec![ok(), late(), denied()], Code::Unavailable),
            (vec![ok(), denied(), denied()], Code::Denied),
            (vec![denied()], Code::Denied),
        ] {
            assert_eq!(result(&answers).unwrap().unwrap_err().code(), code, "{answers:?}");
        }
    }
}
