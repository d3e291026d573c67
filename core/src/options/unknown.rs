//! Unknown options: the option that a user probably meant by an unknown name.
//!
//! For names of other lock libraries, the answer is our name. For a typing error, the answer is the nearest name.

use super::value::{Options, ValueKind};
use super::{ClientOptions, JobOverrides, LockOverrides};
use crate::wording::{Language, Part, Text, plain};

/// The call that got an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A client, which takes the options of its locks, too.
    Client,
    /// A lock.
    Lock,
    /// An acquire, which takes no option of a lock.
    Acquire,
    /// A job, which takes the options of its lock, too.
    Job,
    /// A job that runs once per scheduled time, which takes the options of its lock, too.
    CronJob,
    /// The begin of an attempt, which takes no option of a job.
    Begin,
    /// The failure of an attempt.
    Fail,
    /// An election, which takes the options of its lock.
    Election,
    /// A campaign, which takes no option of an election.
    Campaign,
}

/// The option names of other libraries, without `_`, case and unit, and the answer for each.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["timeout"], "what redis-py calls timeout is {ttl} here; how long an acquire waits is {wait}"),
    (
        &["blockingtimeout", "acquiretimeout", "waittimeout", "waittime"],
        "here it is {wait}: how long an acquire waits; {forever} is without end",
    ),
    (&["blocking"], "an attempt that doesn't wait is {try_acquire}(), or {wait} 0"),
    (
        &["expire", "expires", "expiry", "expiration", "duration", "locktimeout", "lease", "leasetime", "ex", "px"],
        "here it is {ttl}: how long the key lives without a renewal",
    ),
    (
        &["sleep", "retrydelay", "retryjitter", "retryinterval"],
        "leave it out: a waiter is notified when its turn comes; {wait} says how long it waits",
    ),
    (
        &["retrycount", "retries", "retry", "maxretries", "attempts", "acquireattemptslimit"],
        "here a limit is a time, not a count: {wait} says how long an acquire waits; {wait} 0 is one attempt",
    ),
    (
        &["autorenewal", "autorenew", "autoextend", "automaticextensionthreshold", "refreshinterval"],
        "here it is {renew}, on by default: a hold is renewed in the background, first at a third of its {ttl}",
    ),
    (&["lockclass", "strict"], "leave it out: there is one kind of lock"),
    (&["threadlocal"], "leave it out: who holds the lock is the object that an acquire gives, on any thread"),
    (&["raiseonreleaseerror"], "leave it out: release() says by its outcome what it found"),
    (&["signalexpire"], "leave it out: a release notifies the next waiter"),
    (&["driftfactor"], "leave it out: a hold always ends 1 % and 2 ms before its key, to allow for clocks"),
    (
        &["id", "identifier", "identifiersuffix", "token"],
        "leave it out: every acquire makes an owner value; {app} names the application in it, and {hand_over}() moves a hold \
         to another process",
    ),
    (
        &["externallyacquiredidentifier", "acquiredexternally"],
        "a hold of another process is taken over by {adopt}(), with the text that its {hand_over}() gave",
    ),
    (&["onlocklost", "onlost"], "a loss is reported by {lost}"),
    (&["reentrant"], "there is no such option: a lock that is held already is busy for its own holder, too"),
    (&["permits", "limit", "maxconcurrency"], "it is an option of {semaphore}(): how many may hold the lock at once"),
    (&["shared", "read", "readonly"], "readers have {read_lock}(), and the writer is {lock}() of the same name"),
    (&["family", "group"], "here it is {category}: under what metrics and events count the lock"),
    (&["replicas"], "here it is the client's {min_replicas}"),
    (&["keyprefix", "namespace"], "here it is the client's {prefix}"),
    (&["sockettimeout", "commandtimeout"], "here it is the client's {response_timeout}"),
    (&["socketconnecttimeout"], "here it is the client's {connect_timeout}"),
    (&["credentialprovider", "credentialsprovider"], "here it is the client's {credentials}"),
    (&["sslcacerts"], "here it is the client's {tls_ca}"),
    (&["sslcertfile"], "here it is the client's {tls_cert}"),
    (&["servername", "sslserverhostname"], "here it is the client's {tls_name}"),
    (&["natmap", "addressremap"], "here it is the client's {address_map}"),
    (&["sslkeyfile"], "here it is the client's {tls_key}"),
    (
        &["host", "port", "db", "database", "username", "user", "password", "path", "url", "urls"],
        "a server is a URL, the client's first argument: redis://user:password@host:6379/0",
    ),
    (
        &["sentinels", "sentinelkwargs", "sentinelusername", "sentinelpassword", "servicename", "mastername"],
        "a service of Sentinel is a URL, the client's first argument: redis+sentinel://host,host/service?sentinel_password=…",
    ),
    (&["ssl", "tls"], "a server with TLS is a URL that begins with rediss://; {tls_ca} names its authority"),
];

/// The same for a job, where they mean something else than for a lock.
const FOREIGN_TO_JOBS: &[(&[&str], &str)] = &[
    (
        &["retrycount", "retries", "retry", "maxretries", "attempts", "tries"],
        "here it is {max_attempts}: how many attempts may begin, the first one included",
    ),
    (&["backoff", "delay"], "here it is {retry_delay}: it doubles with each attempt that failed, up to an hour"),
    (&["removeoncomplete", "keep", "keepresult"], "here it is {retention}: how long a job that is over is remembered"),
    (
        &["date", "time", "firetime", "scheduledtime", "scheduledat", "planned", "nominal"],
        "here it is {at}, of {cron_job}(): the time for which the scheduler planned this run",
    ),
    (&["cron", "crontab", "schedule"], NO_SCHEDULE),
    (&["interval", "period", "minutes"], "here it is {every}, of {cron_job}(): how far the scheduled times are apart"),
    (
        &["misfiregracetime", "misfire", "grace", "late"],
        "here it is {max_lateness}, of {cron_job}(): how long ago a scheduled time may be and still run",
    ),
    (&["overlap"], "here it is {on_overlap}: what a scheduled time does while the work of an earlier one runs"),
    (
        &["coalesce", "nooverlap", "maxinstances"],
        "leave it out: missed scheduled times are coalesced, and {on_overlap} says what overlaps do",
    ),
    (&["lockatmostfor"], "here it is {ttl}: how long a dead worker blocks the next one"),
    (&["jobid", "id", "key", "idempotencykey"], "leave it out: the job's name is its identity"),
];

/// The answer for what only a scheduler understands.
pub(crate) const NO_SCHEDULE: &str = "locktender runs no schedule: call this from your scheduler, and give {at}";

/// The answer for the unknown option `name`: a sentence that says what to write.
///
/// ```
/// use locktender::host::{Place, instead_of};
/// use locktender::host::Language;
///
/// let said = instead_of("retryCount", Place::Lock, Language::Node);
/// assert!(said.in_words_of(Language::Node).contains("waitMs"));
/// let said = instead_of("tll", Place::Lock, Language::Python);
/// assert_eq!(said.in_words_of(Language::Python), "there is no option of this name; did you mean ttl?");
/// ```
#[must_use]
pub fn instead_of(name: &str, place: Place, language: Language) -> Text {
    let asked = plain(name);
    let options = names(options_of(place, language));
    if let Some(ours) = options.iter().find(|ours| plain(ours) == asked) {
        return Text::new("there is no option of this name; did you mean {}? Times are {units}", [named(ours)]);
    }
    if let Some(text) = elsewhere(&asked, place, language) {
        return text;
    }
    let known = if matches!(place, Place::Job | Place::CronJob) { FOREIGN_TO_JOBS } else { &[] };
    if let Some((_, advice)) = known.iter().chain(FOREIGN).find(|(words, _)| words.contains(&asked.as_str())) {
        return Text::new(advice, []);
    }
    match nearest(&asked, &options) {
        Some(ours) => Text::new("there is no option of this name; did you mean {}?", [named(ours)]),
        None => Text::new("there is no option of this name; there are {}", [listed(&options, language)]),
    }
}

/// A known option in the wrong call.
fn elsewhere(asked: &str, place: Place, language: Language) -> Option<Text> {
    let named_here = |of: Vec<(&'static str, ValueKind)>| names(of).into_iter().find(|ours| plain(ours) == asked).map(named);
    match place {
        Place::Client if asked == "name" && language == Language::Python => {
            Some(Text::new("here it is {}: the name by which the client pickles", [named("pickle_name")]))
        }
        Place::Client => None,
        Place::Lock if asked == "signal" && language == Language::Node => {
            Some(Text::new("give it to the acquire that it ends: {}", [Part::Words("lock.acquire({ signal })".into())]))
        }
        Place::Job | Place::CronJob if asked == "signal" && language == Language::Node => {
            Some(Text::new("give it to what it ends: {}", [Part::Words("job.run(work, { signal })".into())]))
        }
        Place::CronJob if asked == "retention" => {
            Some(Text::new("leave it out: what is known of a scheduled time is kept for a day longer than {max_lateness}", []))
        }
        Place::Election if asked == "signal" && language == Language::Node => {
            let calls = "election.campaign({ signal }), election.lead(work, { signal })";
            Some(Text::new("give it to what it ends: {}", [Part::Words(calls.into())]))
        }
        Place::Lock | Place::Job | Place::CronJob | Place::Election => {
            named_here(of_client(language)).map(|name| Text::new("{} is an option of the client", [name]))
        }
        Place::Acquire => {
            named_here(of_lock(language)).map(|name| Text::new("{} is an option of the lock: give it to lock()", [name]))
        }
        Place::Begin => named_here([of_job(false), of_lock(language)].concat())
            .map(|name| Text::new("{} is an option of the job: give it to job()", [name])),
        Place::Campaign => {
            named_here(of_lock(language)).map(|name| Text::new("{} is an option of the election: give it to election()", [name]))
        }
        Place::Fail => None,
    }
}

/// The options of a call in this language, with the kinds of their values. What only its binding understands has the
/// kind of a function.
#[must_use]
pub fn options_of(place: Place, language: Language) -> Vec<(&'static str, ValueKind)> {
    match place {
        Place::Client => [of_client(language), of_lock(language)].concat(),
        Place::Lock | Place::Election => of_lock(language),
        Place::Acquire | Place::Begin | Place::Campaign if language == Language::Node => vec![("signal", ValueKind::Function)],
        Place::Acquire | Place::Begin | Place::Campaign => Vec::new(),
        Place::Job => [of_job(false), of_lock(language)].concat(),
        Place::CronJob => [of_job(true), of_lock(language)].concat(),
        Place::Fail => vec![("retry_in", ValueKind::Time), ("retry", ValueKind::Switch)],
    }
}

fn rows<T: Options>() -> Vec<(&'static str, ValueKind)> {
    T::ROWS.iter().map(|row| (row.name, row.kind)).collect()
}

fn of_lock(language: Language) -> Vec<(&'static str, ValueKind)> {
    let mut options = rows::<LockOverrides>();
    options.extend((language == Language::Python).then_some(("on_lost", ValueKind::Function)));
    options
}

fn of_job(is_cron_job: bool) -> Vec<(&'static str, ValueKind)> {
    let mut options = rows::<JobOverrides>();
    options.retain(|(name, _)| JobOverrides::has(name, is_cron_job));
    options
}

fn of_client(language: Language) -> Vec<(&'static str, ValueKind)> {
    let mut options = rows::<ClientOptions>();
    options.retain(|(name, _)| language != Language::Node || *name != "log_holds");
    if language == Language::Python {
        options.extend([("pickle_name", ValueKind::Text), ("on_event", ValueKind::Function)]);
    }
    options
}

fn names(options: Vec<(&'static str, ValueKind)>) -> Vec<&'static str> {
    options.into_iter().map(|(name, _)| name).collect()
}

fn named(option: &'static str) -> Part {
    Part::Name(option.into())
}

fn listed(options: &[&'static str], language: Language) -> Part {
    let spelled: Vec<_> = options.iter().map(|option| language.spell(option)).collect();
    Part::Words(if spelled.is_empty() { "none".to_owned() } else { spelled.join(", ") })
}

/// The nearest option. One letter in three may be wrong, missing, too many, or exchanged with its neighbor.
pub(super) fn nearest(asked: &str, options: &[&'static str]) -> Option<&'static str> {
    let slips = options.iter().map(|ours| (distance(asked, &plain(ours)), *ours));
    let (distance, ours) = slips.min_by_key(|(distance, _)| *distance)?;
    (distance <= (plain(ours).len() / 3).max(1)).then_some(ours)
}

/// The number of typing errors that make `a` of `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(letter != other)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == b[j - 1] && a[i - 1] == *other {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(name: &str, place: Place, language: Language) -> String {
        instead_of(name, place, language).in_words_of(language)
    }

    #[test]
    fn the_words_of_other_libraries_are_answered_with_ours() {
        for (name, python, node) in [
            ("timeout", "ttl", "ttlMs"),
            ("sleep", "wait", "waitMs"),
            ("blocking", "try_acquire()", "tryAcquire()"),
            ("blocking_timeout", "wait", "waitMs"),
            ("lock_class", "leave it out", "leave it out"),
            ("thread_local", "leave it out", "leave it out"),
            ("expire", "ttl", "ttlMs"),
            ("auto_renewal", "renew", "renew"),
            ("credential_provider", "credentials", "credentials"),
            ("id", "app", "app"),
            ("retryCount", "wait", "waitMs"),
            ("retryDelay", "wait", "waitMs"),
            ("retryJitter", "wait", "waitMs"),
            ("driftFactor", "leave it out", "leave it out"),
            ("automaticExtensionThreshold", "renew", "renew"),
            ("lockTimeout", "ttl", "ttlMs"),
            ("acquireTimeout", "wait", "waitMs"),
            ("acquireAttemptsLimit", "wait", "waitMs"),
            ("retryInterval", "wait", "waitMs"),
            ("refreshInterval", "renew", "renew"),
            ("identifier", "app", "app"),
            ("externallyAcquiredIdentifier", "adopt()", "adopt()"),
            ("onLockLost", "on_lost", "hold.signal"),
            ("retry_count", "wait", "waitMs"),
            ("retry_delay", "wait", "waitMs"),
        ] {
            for (language, ours) in [(Language::Python, python), (Language::Node, node)] {
                for place in [Place::Lock, Place::Client] {
                    let advice = advice(name, place, language);
                    assert!(advice.contains(ours) && !advice.contains("of this name"), "{name}: {advice}");
                    assert!(language == Language::Node || !advice.contains("Ms"), "{advice}");
                }
            }
        }
    }

    #[test]
    fn a_slip_is_answered_with_the_nearest_name() {
        for (name, place, language, meant) in [
            ("tll", Place::Lock, Language::Python, "did you mean ttl?"),
            ("wiat", Place::Lock, Language::Python, "did you mean wait?"),
            ("waitms", Place::Lock, Language::Node, "did you mean waitMs?"),
            ("ttl", Place::Lock, Language::Node, "did you mean ttlMs? Times are milliseconds"),
            ("ttl_ms", Place::Lock, Language::Python, "did you mean ttl? Times are seconds"),
            ("maxHold", Place::Client, Language::Node, "did you mean maxHoldMs?"),
            ("maxhold", Place::Lock, Language::Python, "did you mean max_hold?"),
            ("prefx", Place::Client, Language::Python, "did you mean prefix?"),
            ("conect_timeout", Place::Client, Language::Python, "did you mean connect_timeout?"),
            ("onEvent", Place::Client, Language::Python, "did you mean on_event?"),
        ] {
            let advice = advice(name, place, language);
            assert!(advice.contains(meant), "{name}: {advice}");
        }
    }

    #[test]
    fn an_option_in_the_wrong_place_is_sent_to_the_right_one() {
        assert_eq!(advice("prefix", Place::Lock, Language::Python), "prefix is an option of the client");
        assert_eq!(advice("maxTtlMs", Place::Lock, Language::Node), "maxTtlMs is an option of the client");
        assert_eq!(advice("ttlMs", Place::Acquire, Language::Node), "ttlMs is an option of the lock: give it to lock()");
        assert!(advice("signal", Place::Lock, Language::Node).contains("lock.acquire({ signal })"));
    }

    #[test]
    fn an_unknown_option_of_a_job_or_an_election_is_answered_with_its_own() {
        for (name, place, answer) in [
            ("retries", Place::Job, "here it is maxAttempts"),
            ("retryDelay", Place::Job, "did you mean retryDelayMs?"),
            ("backoff", Place::Job, "here it is retryDelayMs"),
            ("maxAttempt", Place::Job, "did you mean maxAttempts?"),
            ("ttl", Place::Job, "did you mean ttlMs?"),
            ("keep", Place::Job, "here it is retentionMs"),
            ("late", Place::CronJob, "here it is maxLatenessMs"),
            ("overlap", Place::CronJob, "here it is onOverlap"),
            ("crontab", Place::CronJob, "locktender runs no schedule: call this from your scheduler, and give at"),
            ("timeout", Place::Job, "is ttlMs here"),
            ("signal", Place::Job, "job.run(work, { signal })"),
            ("prefix", Place::Job, "prefix is an option of the client"),
            ("maxAttempts", Place::Begin, "maxAttempts is an option of the job: give it to job()"),
            ("ttlMs", Place::Begin, "ttlMs is an option of the job"),
            ("retryIn", Place::Fail, "did you mean retryInMs?"),
            ("colour", Place::Fail, "there are retryInMs, retry"),
            ("waitMs", Place::Campaign, "waitMs is an option of the election: give it to election()"),
            ("signal", Place::Election, "election.lead(work, { signal })"),
            ("prefix", Place::Election, "prefix is an option of the client"),
        ] {
            let advice = advice(name, place, Language::Node);
            assert!(advice.contains(answer), "{name}: {advice}");
        }
    }

    #[test]
    fn a_name_that_is_like_none_gets_the_list() {
        assert_eq!(
            advice("colour", Place::Lock, Language::Node),
            "there is no option of this name; there are ttlMs, waitMs, renew, maxHoldMs, fair, minHoldMs, graceMs, category"
        );
        assert!(advice("", Place::Lock, Language::Python).contains("there are ttl, wait"));
        assert!(advice(&"x".repeat(100_000), Place::Client, Language::Python).contains("there are prefix"));
    }
}
