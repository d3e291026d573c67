//! Work: bodies, and the work of jobs and leaders, that play steps of the case.

use locktender::{Attempt, Election, Error, Job, Lock, RunError};
use serde_json::{Value, json};

use super::Scene;
use super::hold::Body;
use crate::seen::{describe, outcome};

/// The work of a job as a case says it: what it gives, or why it fails.
type Work = Result<Option<String>, Box<dyn std::error::Error>>;

impl Scene<'_> {
    /// Runs a job whose work is to play the steps.
    pub(super) fn run(&mut self, job: &Job, step: &Value, keep: &str) -> Result<Result<Value, Error>, String> {
        let mut inside = Ok(());
        let work = |attempt: &Attempt| -> Work {
            self.variables.set(&format!("{keep}.owner"), attempt.owner());
            self.variables.set(&format!("{keep}.fence"), attempt.fence());
            inside = self.steps(&step["steps"], Some(Body::Attempt(attempt)));
            if step["checks"] == true {
                attempt.check()?;
            }
            match step["raises"].as_str() {
                Some(error) => Err(error.into()),
                None => Ok(step.get("returns").map(Value::to_string)),
            }
        };
        let result = job.run_blocking(work);
        inside?;
        Ok(match result {
            Ok(found) => Ok(outcome(&found)),
            Err(RunError::Failed(error)) => match error.downcast::<Error>() {
                Ok(error) => Err(*error),
                Err(error) => Ok(json!({ "error": "BODY", "message": error.to_string() })),
            },
            Err(RunError::Lock(error)) => Err(error),
            Err(other) => panic!("{other}"),
        })
    }

    /// Leads, and plays the steps of a term each time; stops in the last one.
    pub(super) fn lead(&mut self, election: &Election, terms: &[Value]) -> Result<Result<Value, Error>, String> {
        let (mut inside, mut rest) = (Ok(()), terms.iter());
        let result = election.lead_blocking(|leadership| {
            let term = rest.next().expect("a term more than the case has");
            let keep = term["as"].as_str().unwrap();
            self.variables.set(&format!("{keep}.owner"), leadership.owner());
            self.variables.set(&format!("{keep}.fence"), leadership.fence());
            inside = self.steps(&term["steps"], Some(Body::Leadership(leadership)));
            if rest.len() == 0 || inside.is_err() {
                election.stop();
            }
            if term["checks"] == true {
                leadership.check().map_err(|error| error.to_string())?;
            }
            term["raises"].as_str().map_or(Ok(()), |error| Err(error.to_owned()))
        });
        inside?;
        Ok(match result {
            Ok(()) => Ok(json!({ "stopped": true })),
            Err(RunError::Failed(error)) => Ok(json!({ "error": "BODY", "message": error })),
            Err(RunError::Lock(error)) => Err(error),
            Err(other) => panic!("{other}"),
        })
    }

    pub(super) fn body(&mut self, lock: &Lock, step: &Value, keep: &str) -> Result<Result<Value, Error>, String> {
        // What a body returns is its caller's, whose lock was lost.
        let (mut inside, mut returned) = (Ok(()), Value::Null);
        let left = lock.with_blocking(|held| {
            self.variables.set(&format!("{keep}.owner"), held.owner());
            self.variables.set(&format!("{keep}.fence"), held.fence());
            inside = self.steps(&step["steps"], Some(Body::Lock(held)));
            returned = step["returns"].clone();
            Ok::<_, Error>(())
        });
        inside?;
        let mut seen = left.map_or_else(|failed| describe(&failed.into()), |()| json!({}));
        seen["result"] = returned;
        Ok(Ok(seen))
    }
}
