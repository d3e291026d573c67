//! One attempt of a job: a command is its work, and what the command writes is the result.

use std::time::Instant;

use locktender::host::begun;
use locktender::{Attempt, Call, Job, JobOutcome};
use serde_json::Value;

use super::end::Ending;
use super::guard::{Environment, Guard};
use super::holder::RELEASE;
use super::output::{Kept, TextLoss};
use super::status::Status;
use crate::exit;
use crate::messages::in_words;

/// The lines of the help for the command's environment.
pub(super) const ENVIRONMENT: &str = "
  LOCKTENDER_ATTEMPT      the number of this attempt; the first is 1
  LOCKTENDER_MAX_ATTEMPTS how many attempts may begin";

/// Begins an attempt and runs the command. Where nothing is to run, `over` gives the exit code.
pub(super) fn attempt(guard: &Guard<'_>, job: &Job, own: Environment, busy: u8, over: impl FnOnce(&JobOutcome) -> u8) -> Ending {
    let began = Instant::now();
    let attempt = match guard.waited(job.begin()).map(begun) {
        Ok(Ok(attempt)) => attempt,
        Ok(Err(outcome)) => return over(&outcome).into(),
        Err(failure) => return guard.on_acquire_failure(&failure, busy),
    };
    let mut environment = own;
    environment.push(("LOCKTENDER_ATTEMPT", attempt.number().to_string()));
    environment.push(("LOCKTENDER_MAX_ATTEMPTS", attempt.max_attempts().to_string()));
    let mut end = match guard.run(&attempt, began, environment, true) {
        Ok(end) => end,
        Err(code) => {
            // The work never began, and so the attempt didn't either.
            given_back(guard, &attempt);
            return code.into();
        }
    };
    let output = end.output.take().unwrap_or_default();
    let written = output.unwritten.as_ref().map_or(0, |error| guard.messages.unwritten(error));
    match (&end.lost, end.status) {
        (Some(why), _) => failed(guard, &attempt, why),
        (None, Status::Code(0)) => return done(guard, &attempt, &output).err().unwrap_or(written).into(),
        // It was asked to end, and reports by its exit code that the work is not done.
        (None, _) if end.was_asked() => given_back(guard, &attempt),
        (None, status) => failed(guard, &attempt, &output.reason(&status.to_string())),
    }
    end.ending(false)
}

fn done(guard: &Guard<'_>, attempt: &Attempt, output: &Kept) -> Result<(), u8> {
    let text = output.text();
    match text.loss {
        Some(TextLoss::Cut(length)) => guard.messages.warning(
            "result_cut",
            &format!("the output is longer than a result may be: only its first {length} bytes are kept as the result"),
        ),
        Some(TextLoss::NotText) => guard
            .messages
            .warning("result_not_text", "the output is not UTF-8: in the result that is kept, what is wrong in it is replaced"),
        None => (),
    }
    attempt.complete(text.json).blocking().map_err(|error| {
        guard.messages.failure(&error);
        exit::code_of(&error)
    })?;
    let (name, number) = (attempt.name(), attempt.number());
    guard.messages.progress("done", &format!("{name:?} is done, by attempt {number}"), &[("attempt", number.into())]);
    Ok(())
}

fn failed(guard: &Guard<'_>, attempt: &Attempt, why: &str) {
    let (name, number, max) = (attempt.name(), attempt.number(), attempt.max_attempts());
    let text = format!("{name:?}: attempt {number} of {max} failed: {why}");
    noted(guard, attempt.fail(why), "failed", &text, &[("attempt", number.into())]);
}

fn given_back(guard: &Guard<'_>, attempt: &Attempt) {
    let text = format!("{:?}: attempt {} is given back, and doesn't count", attempt.name(), attempt.number());
    noted(guard, attempt.leave(), "given_back", &text, &[("attempt", attempt.number().into())]);
}

fn noted(guard: &Guard<'_>, call: Call<()>, event: &str, text: &str, fields: &[(&str, Value)]) {
    let mut call = call;
    match call.wait_for(RELEASE) {
        Some(Ok(())) => guard.messages.progress(event, text, fields),
        Some(Err(error)) => guard.messages.progress(event, &in_words(&error), fields),
        None => guard.messages.progress("unreleased", "no server answers: the attempt counts, and ends with its ttl", fields),
    }
}
