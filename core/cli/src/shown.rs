//! Shown: what an operator sees of a lock, as text and as JSON.

use std::time::{Duration, SystemTime};

use comfy_table::{Table, presets};
use locktender::host::cli::on_one_line;
use locktender::{Grant, JobState, JobStatus, LockInfo, OwnerFields, Remaining};
use serde_json::{Value, json};

/// The longest value of another library, or error, in a table.
const LONGEST: usize = 48;

/// A table of locks, with a line for each.
pub(super) fn table(locks: &[LockInfo]) -> String {
    let row = |lock: &LockInfo| [on_one_line(&lock.name), holder(lock), age(lock), remaining(lock), lock.waiters.to_string()];
    laid_out(["NAME", "HOLDER", "AGE", "REMAINING", "WAITERS"], locks.iter().map(row))
}

/// A lock as lines.
pub(super) fn lines(lock: &LockInfo) -> String {
    let since = lock.fields.as_ref().and_then(|fields| fields.at).map_or_else(|| "unknown".to_owned(), at);
    let mut lines = vec![
        ("holder", holder(lock)),
        ("since", format!("{since} ({} ago, by the holder's clock)", age(lock))),
        ("remaining", format!("{}, unless it is renewed", remaining(lock))),
        ("fence", lock.fence.map_or_else(|| "not shown".to_owned(), |fence| fence.to_string())),
        ("owner", on_one_line(&lock.owner)),
    ];
    let others = lock.holders.iter().filter(|owner| **owner != lock.owner);
    lines.extend(others.map(|owner| ("", on_one_line(owner))));
    lines.extend(lock.available.map(|permits| ("available", format!("{permits} more may hold it"))));
    lines.push(("waiters", lock.waiters.to_string()));
    // Behind the number of a waiter is its process.
    let process = |waiter: &str| on_one_line(waiter.split_once(' ').map_or(waiter, |(_, process)| process));
    lines.extend(lock.queue.iter().map(|waiter| ("", process(waiter))));
    lines.into_iter().map(|(what, text)| format!("{what:<10} {text}\n")).collect()
}

/// A table of jobs, with a line for each.
pub(super) fn jobs_table(jobs: &[(String, JobStatus)]) -> String {
    let row = |(name, job): &(String, JobStatus)| {
        let ago = |time: Option<Duration>| time.map(|time| format!("{} ago", short(time))).unwrap_or_default();
        let done = job.last_done.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        let error = job.last_error.as_deref().filter(|_| job.state != JobState::Done).map(on_one_line).unwrap_or_default();
        let attempt = format!("{}{}", job.attempts, of_max(job));
        [on_one_line(name), job.state.as_str().to_owned(), attempt, ago(job.began_ago), ago(done), cut(&error)]
    };
    laid_out(["NAME", "STATE", "ATTEMPT", "BEGAN", "LAST DONE", "ERROR"], jobs.iter().map(row))
}

/// A table of the history, with a line for each hold.
pub(super) fn history_table(grants: &[Grant]) -> String {
    let row = |grant: &Grant| {
        let began = humantime::format_rfc3339_seconds(grant.began).to_string();
        let lasted = match lasted(grant) {
            Some(time) => short(time),
            // The end is before the begin: the clock was ahead.
            None if grant.ended.is_some() => "?".to_owned(),
            None => String::new(),
        };
        let who = who(grant.fields.as_ref(), &grant.owner) + if grant.is_shared { " and others" } else { "" };
        [began, on_one_line(&grant.name), who, grant.fence.to_string(), grant.state.as_str().to_owned(), lasted]
    };
    laid_out(["BEGAN", "NAME", "HOLDER", "FENCE", "STATE", "LASTED"], grants.iter().map(row))
}

/// A hold of the history as a line of JSON.
pub(super) fn grant_json(grant: &Grant) -> String {
    let fields = grant.fields.clone().unwrap_or_default();
    let line = json!({
        "name": grant.name, "owner": grant.owner, "app": fields.app, "host": fields.host, "pid": fields.pid, "fence": grant.fence,
        "state": grant.state.as_str(), "is_shared": grant.is_shared, "began": at(grant.began), "ended": grant.ended.map(at),
        "lasted_ms": lasted(grant).map(ms),
    });
    format!("{line}\n")
}

/// How long a hold lasted, if both times are known and true.
fn lasted(grant: &Grant) -> Option<Duration> {
    grant.ended?.duration_since(grant.began).ok()
}

/// A table with two spaces between columns, and none before the first.
fn laid_out<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

fn of_max(job: &JobStatus) -> String {
    job.max_attempts.map(|max| format!(" of {max}")).unwrap_or_default()
}

/// What is known of a job, as lines.
pub(super) fn job_lines(job: &JobStatus) -> String {
    let mut lines = vec![("job", format!("{}, attempt {}{}", job.state.as_str(), job.attempts, of_max(job)))];
    lines.extend(job.began_ago.map(|ago| ("began", format!("{} ago", short(ago)))));
    lines.extend(job.retry_in.map(|left| ("next in", short(left))));
    lines.extend(job.scheduled_time.map(|at| ("scheduled time", humantime::format_rfc3339_seconds(at).to_string())));
    lines.extend(job.last_done.map(|at| ("last done", humantime::format_rfc3339_seconds(at).to_string())));
    lines.extend(job.last_owner.as_ref().map(|worker| ("last by", on_one_line(worker))));
    lines.extend(job.last_error.as_ref().map(|error| ("error", on_one_line(error))));
    lines.extend(job.result.as_ref().map(|result| ("result", on_one_line(result))));
    lines.into_iter().map(|(what, text)| format!("{what:<10} {text}\n")).collect()
}

/// A lock and its job as a line of JSON.
pub(super) fn json(name: &str, lock: Option<&LockInfo>, job: Option<&JobStatus>) -> String {
    let mut line = lock.map_or_else(|| json!({ "name": name, "owner": null }), of_lock);
    line["job"] = job.map_or(Value::Null, of_job);
    format!("{line}\n")
}

/// A job as a line of JSON.
pub(super) fn job_json(name: &str, job: &JobStatus) -> String {
    let mut line = of_job(job);
    line["name"] = name.into();
    format!("{line}\n")
}

fn of_job(job: &JobStatus) -> Value {
    json!({
        "state": job.state.as_str(), "attempts": job.attempts, "max_attempts": job.max_attempts, "last_owner": job.last_owner,
        "began_ago_ms": job.began_ago.map(ms), "retry_in_ms": job.retry_in.map(ms), "scheduled_time": job.scheduled_time.map(at),
        "last_done": job.last_done.map(at), "last_error": job.last_error, "result": job.result,
    })
}

fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}

fn at(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// A lock as a line of JSON.
pub(super) fn lock_json(lock: &LockInfo) -> String {
    format!("{}\n", of_lock(lock))
}

fn of_lock(lock: &LockInfo) -> Value {
    let fields = lock.fields.clone().unwrap_or_default();
    let remaining_ms = match lock.remaining {
        Remaining::For(left) => json!(ms(left)),
        _ => Value::Null,
    };
    json!({
        "name": lock.name, "owner": lock.owner, "app": fields.app, "host": fields.host, "pid": fields.pid, "since": fields.at.map(at),
        "remaining_ms": remaining_ms, "fence": lock.fence, "waiters": lock.waiters, "queue": lock.queue,
        "holder_count": lock.holder_count, "holders": lock.holders, "available": lock.available,
    })
}

/// Who holds a lock, in short: `billing@web-3:4711`, and the number of others that hold it at once.
pub(super) fn holder(lock: &LockInfo) -> String {
    let one = who(lock.fields.as_ref(), &lock.owner);
    match lock.holder_count.saturating_sub(1) {
        0 => one,
        1 => format!("{one} and 1 other"),
        others => format!("{one} and {others} others"),
    }
}

pub(super) fn who(fields: Option<&OwnerFields>, owner: &str) -> String {
    fields.map_or_else(|| cut(&on_one_line(owner)), |fields| on_one_line(&process(fields)))
}

/// A process with its application, as it stands in an owner value.
pub(super) fn process(fields: &OwnerFields) -> String {
    let app = fields.app.as_ref().map(|app| format!("{app}@")).unwrap_or_default();
    let pid = fields.pid.map(|pid| format!(":{pid}")).unwrap_or_default();
    format!("{app}{}{pid}", fields.host.as_deref().unwrap_or("?"))
}

/// A text that fits into a table.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How long ago the holder asked for the lock, by its clock and ours.
pub(super) fn age(lock: &LockInfo) -> String {
    let at = lock.fields.as_ref().and_then(|fields| fields.at);
    at.map_or_else(|| "?".to_owned(), |at| short(SystemTime::now().duration_since(at).unwrap_or_default()))
}

fn remaining(lock: &LockInfo) -> String {
    match lock.remaining {
        Remaining::For(left) => short(left),
        Remaining::Forever => "no expiry".to_owned(),
        _ => "0s".to_owned(),
    }
}

/// A time in whole seconds.
fn short(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

#[cfg(test)]
mod tests {
    use locktender::HoldState;

    use super::*;
    use crate::samples::{grant, lock_info};

    fn lock(owner: &str, remaining: Remaining) -> LockInfo {
        let mut lock = lock_info("orders:42", owner, 7, remaining, &["host=web-4 pid=8"]);
        lock.waiters = 2;
        lock
    }

    #[test]
    fn a_holder_is_shown_in_short_and_a_foreign_value_as_it_is() {
        let at = "at=2026-11-21T02:22:10.123Z id=x";
        for (owner, shown) in [
            (format!("app=billing host=web-3 pid=4711 {at}"), "billing@web-3:4711"),
            (format!("host=web-3 {at}"), "web-3"),
            ("0123456789abcdef".to_owned(), "0123456789abcdef"),
            ("a\u{1b}[31m".to_owned(), "a\\u{1b}[31m"),
            ("x".repeat(60), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"),
        ] {
            assert_eq!(holder(&lock(&owner, Remaining::Forever)), shown);
        }
    }

    #[test]
    fn a_table_has_a_line_for_each_lock() {
        let locks = [lock("y", Remaining::For(Duration::from_millis(61_900))), lock("x", Remaining::Forever)];
        let table = table(&locks);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["NAME", "HOLDER", "AGE", "REMAINING", "WAITERS"]);
        assert_eq!(rows[1], ["orders:42", "y", "?", "1m", "1s", "2"]);
        assert_eq!(rows[2], ["orders:42", "x", "?", "no", "expiry", "2"]);
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn the_history_has_a_line_for_each_hold_also_if_the_clock_was_ahead() {
        let grant =
            |began, ended, state| grant("orders:42", "app=billing host=web-3 pid=4711 at=x id=y", 7, (began, ended), state);
        let grants = [
            grant(1_795_222_800_000, None, HoldState::Holds),
            grant(1_795_222_800_900, Some(1_795_222_925_000), HoldState::Released),
            grant(1_795_222_926_000, Some(1_795_222_925_000), HoldState::Lost),
        ];
        let text = history_table(&grants);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let of = |began, rest: &[&'static str]| [&[began, "orders:42", "billing@web-3:4711", "7"], rest].concat();
        assert_eq!(rows[1], of("2026-11-21T01:00:00Z", &["holds"]));
        assert_eq!(rows[2], of("2026-11-21T01:00:00Z", &["released", "2m", "4s"]));
        assert_eq!(rows[3], of("2026-11-21T01:02:06Z", &["lost", "?"]));
        let lines: Vec<Value> = grants.iter().map(|grant| serde_json::from_str(&grant_json(grant)).unwrap()).collect();
        assert_eq!(
            (&lines[0]["ended"], &lines[0]["pid"], &lines[0]["began"]),
            (&Value::Null, &json!(4711), &json!("2026-11-21T01:00:00.000Z"))
        );
        assert_eq!((&lines[1]["lasted_ms"], &lines[2]["lasted_ms"]), (&json!(124_100), &Value::Null));
    }

    #[test]
    fn json_is_one_line_whatever_the_values_are() {
        let line = lock_json(&lock("a\n\u{1b}b", Remaining::Forever));
        assert_eq!(line.matches('\n').count(), 1);
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (read["owner"].as_str(), &read["remaining_ms"], &read["app"]),
            (Some("a\n\u{1b}b"), &Value::Null, &Value::Null)
        );
    }
}
