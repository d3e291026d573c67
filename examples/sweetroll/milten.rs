//! Milten fights for the sweetroll in Rust: milten URL FILE TTL END

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use locktender::{Client, ClientOptions, Code, Hold, RunError};

const NAME: &str = "Milten";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, urls, shared, ttl, end] = &arguments[..] else { return Err("milten URL FILE TTL END".into()) };
    let (shared, ttl, end) = (PathBuf::from(shared), Duration::from_secs_f64(ttl.parse()?), end.parse::<f64>()?);
    tell("enters", "");
    let options = |options: &mut ClientOptions| {
        options.app = Some(NAME.into());
        // More than the remaining time of any hold here. A server that was killed does not vote for so long.
        options.max_ttl = 2 * ttl;
        options.lock.ttl = ttl;
    };
    let client = Client::builder().urls(urls.as_str()).configure(options).build()?;
    while let left @ 0.001.. = end - time() {
        tell("waits", "");
        let began = Instant::now();
        let lock = client.lock("sweetroll").ttl(ttl).wait(Duration::from_secs_f64(left));
        let eaten = lock.with_blocking(|held| {
            let (fence, waited) = (held.fence(), began.elapsed().as_secs_f64());
            tell("takes", format_args!(r#", "fence": {fence}, "waited": {waited:.3}"#));
            eat(held, &shared, ttl, time())
        });
        let error: Result<(), Box<dyn Error>> = eaten.map_err(|failed| match failed {
            RunError::Lock(error) => error.into(),
            RunError::Failed(error) => error,
            other => other.to_string().into(),
        });
        match error {
            Ok(()) => tell("leaves", ""),
            Err(error) => match error.downcast_ref::<locktender::Error>().map(locktender::Error::code) {
                Some(Code::AcquireTimeout) => break,
                Some(Code::LockLost) => tell("loses", format_args!(r#", "why": {:?}"#, error.to_string())),
                _ => return Err(error),
            },
        }
        sleep(Duration::from_millis(fastrand::u64(..150)));
    }
    tell("leaves", "");
    client.close_blocking()?;
    Ok(())
}

/// The work that must happen while the lock is held.
fn eat(held: &Hold, shared: &Path, ttl: Duration, since: f64) -> Result<(), Box<dyn Error>> {
    for bite in 0..fastrand::u32(2..=6) {
        if bite == 2 {
            held.extend_by(ttl / 2).blocking()?;
            tell("extends", "");
        }
        let checked = time();
        let until = checked + held.remaining().as_secs_f64();
        held.check()?;
        tell("bites", format_args!(r#", "checked": {checked:.6}"#));
        // The work. If this process is paused here for too long, the check above is outdated. Then only the fence in the
        // line below prevents damage.
        sleep(Duration::from_millis(100));
        write(shared, held, "bites", since, checked, until)?;
    }
    let now = time();
    write(shared, held, "leaves", since, now, now + held.remaining().as_secs_f64())
}

/// Appends a line to the shared file. Its readers refuse a line whose fence is smaller than an earlier one.
fn write(shared: &Path, held: &Hold, event: &str, since: f64, checked: f64, until: f64) -> Result<(), Box<dyn Error>> {
    let line = format!(
        r#"{{"fence": {}, "who": "{NAME}", "event": "{event}", "since": {since:.6}, "checked": {checked:.6}, "until": {until:.6}, "at": {:.6}}}"#,
        held.fence(),
        time()
    );
    OpenOptions::new().append(true).open(shared)?.write_all((line + "\n").as_bytes())?;
    Ok(())
}

/// Sends a notice to the stage, which shows it.
#[allow(clippy::print_stdout, reason = "the stage reads the standard output")]
fn tell(event: &str, details: impl Display) {
    println!(r#"{{"event": "{event}"{details}}}"#);
}

/// The wall clock in seconds.
fn time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
