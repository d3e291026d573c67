//! Job status: what a job's record says to people, and whether it was reset. A job has one server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Remaining, ServerFailure};
use crate::op::job::JobRecord;
use crate::op::{Answer, FailureKind, Reply, Verdict};
use crate::protocol::failures;
use crate::wording::words;

words! {
    /// The state of a job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum JobState;
    /// The state's name, the same in every language.
    fn as_str;
    /// No attempt has begun, or all were given back.
    New = "new",
    /// A worker runs it.
    Running = "running",
    /// An attempt failed or its worker died, and another one may begin.
    Retrying = "retrying",
    /// It is done.
    Done = "done",
    /// The last attempt failed, or its worker died: no other one begins.
    Dead = "dead",
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobStatus {
    /// The state.
    pub state: JobState,
    /// How many attempts have begun.
    pub attempts: u32,
    /// How many may begin; `None` before the first one.
    pub max_attempts: Option<u32>,
    /// The owner value of the last attempt. A person can read in it which worker that was.
    pub last_owner: Option<String>,
    /// How long ago the last attempt began, by the server's clock.
    pub began_ago: Option<Duration>,
    /// How long the lease of a running attempt remains if nothing renews it; [`Remaining::Gone`] if none runs.
    pub remaining: Remaining,
    /// When the next attempt may begin, of a job that is retrying.
    pub retry_in: Option<Duration>,
    /// What the last attempt that failed said.
    pub last_error: Option<String>,
    /// The result of a job that is done; `None` if it gave none.
    pub result: Option<String>,
    /// The latest scheduled time that has begun, of a job that runs once per scheduled time.
    pub scheduled_time: Option<SystemTime>,
    /// When the work was done last, by the server's clock. A job that runs once per scheduled time keeps it while later runs fail.
    pub last_done: Option<SystemTime>,
}

impl JobStatus {
    fn of(record: &JobRecord, now_us: u64) -> Self {
        let is_used_up = record.attempts >= record.max_attempts;
        let state = match &*record.state {
            "done" => JobState::Done,
            "dead" => JobState::Dead,
            "running" if record.runs() => JobState::Running,
            // The next client that asks notes that it is dead.
            "running" if is_used_up => JobState::Dead,
            "running" | "retrying" => JobState::Retrying,
            _ => JobState::New,
        };
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let has_died = record.state == "running" && state != JobState::Running;
        let died = || format!("attempt {} of {}: its worker died or lost the lease", record.attempts, record.max_attempts);
        let time = |us: u64| UNIX_EPOCH.checked_add(Duration::from_micros(us)).filter(|_| us > 0);
        Self {
            state,
            attempts: record.attempts,
            max_attempts: Some(record.max_attempts).filter(|max| *max > 0),
            last_owner: text(&record.by),
            began_ago: (record.at_us > 0).then(|| Duration::from_micros(now_us.saturating_sub(record.at_us))),
            remaining: if state == JobState::Running { record.remaining } else { Remaining::Gone },
            retry_in: (state == JobState::Retrying).then(|| record.retry_in(now_us)),
            last_error: if has_died { Some(died()) } else { text(&record.error) },
            result: text(&record.result),
            scheduled_time: time(record.scheduled_time_ms.saturating_mul(1_000)),
            last_done: time(record.done_at_us),
        }
    }
}

/// The status of the job `name` by the server's answer; `None` while there is none.
pub fn job_status(name: &str, servers: &[String], answers: &[Option<Answer>]) -> Option<Result<JobStatus, Error>> {
    Some(answer(name, servers, answers)?.and_then(|reply| match &reply.verdict {
        Verdict::Recorded(record) => Ok(JobStatus::of(record, reply.time_us)),
        _ => Err(Error::internal(Some(name), "a question about a job was answered with something else")),
    }))
}

/// Whether the job `name` was reset, by the server's answer; `None` while there is none.
pub fn job_reset(name: &str, servers: &[String], answers: &[Option<Answer>]) -> Option<Result<bool, Error>> {
    Some(answer(name, servers, answers)?.map(|reply| reply.verdict == Verdict::Ok))
}

fn answer<'a>(name: &str, servers: &[String], answers: &'a [Option<Answer>]) -> Option<Result<&'a Reply, Error>> {
    let failed: Vec<ServerFailure> = failures(servers, answers);
    Some(match answers.first()?.as_ref()? {
        Ok(Reply { verdict: Verdict::Conflict { found }, .. }) => Err(Error::key_conflict(name, found)),
        Ok(reply) => Ok(reply),
        Err(failure) if failure.kind == FailureKind::Mismatch => Err(Error::invalid("servers", servers, failure.message.clone())),
        Err(failure) if failure.kind == FailureKind::Denied => Err(Error::denied(Some(name), failed)),
        Err(_) => Err(Error::unavailable(Some(name), servers.len(), failed)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_job_is_what_its_record_and_its_lock_say_together() {
        let record = |state: &str, attempts, holder: Option<&str>| JobRecord {
            state: state.into(),
            attempts,
            max_attempts: 3,
            by: "w".into(),
            holder: holder.map(str::to_owned),
            ..JobRecord::default()
        };
        for (state, attempts, holder, expected) in [
            ("", 0, None, JobState::New),
            ("new", 0, None, JobState::New),
            ("running", 1, Some("w"), JobState::Running),
            ("running", 3, Some("w"), JobState::Running),
            ("running", 1, None, JobState::Retrying),
            ("running", 1, Some("another"), JobState::Retrying),
            ("running", 3, None, JobState::Dead),
            ("retrying", 1, None, JobState::Retrying),
            ("done", 1, None, JobState::Done),
            ("dead", 3, None, JobState::Dead),
        ] {
            let status = JobStatus::of(&record(state, attempts, holder), 0);
            assert_eq!(status.state, expected, "{state}, {attempts} attempts, held by {holder:?}");
            assert_eq!(status.last_error.is_some(), state == "running" && expected != JobState::Running);
        }
    }
}
