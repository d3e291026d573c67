//! `locktender watch --web`: a local page that shows who holds what, as it changes.

mod client_events;
mod feed;
mod gate;
mod held;
mod history;
mod http;
mod line;
mod page;
mod report;
mod server_snapshot;
mod spans;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::exit;
use super::messages::Messages;
use super::operator::{Stop, print};
use super::system::{Ending, ended};
use gate::Gate;
use history::{History, Shared};
use http::Site;
use locktender::host::cli::{HISTORY_LENGTH, host_name, quoted};
use locktender::host::sync::Mutex;
use locktender::{Client, Code, Error};
use report::Report;

/// How often changes are sent to pages.
const PUSH_EVERY: Duration = Duration::from_millis(250);

/// A look takes at most this part of the time: servers with many keys are asked more rarely.
const PART: u32 = 10;

/// After so many pauses without a look, nobody knows what was in between.
const GAP: u32 = 4;

/// The options of the page.
#[derive(Debug, Args)]
pub(super) struct Web {
    /// Show the locks on a page for a browser of this machine, and print its address
    #[arg(long)]
    pub(super) web: bool,

    /// With --web: the page's port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "NUMBER", requires = "web")]
    port: Option<u16>,

    /// With --web: show the events of applications, too. The file has their events as lines of JSON, and may grow; - is standard input
    #[arg(long, value_name = "FILE", requires = "web")]
    events: Option<PathBuf>,

    /// With --web: write the page to this file at the end (Ctrl-C). A browser opens it without a server
    #[arg(long, value_name = "FILE", requires = "web")]
    report: Option<PathBuf>,
}

/// What is looked at, and how often.
pub(super) struct Look<'a> {
    pub(super) pattern: &'a str,
    pub(super) limit: usize,
    pub(super) interval: Duration,
    pub(super) is_json: bool,
}

impl Web {
    /// Serves the page until a signal ends the process. An error of the first look ends it at once.
    pub(super) fn serve(&self, client: &Client, look: &Look<'_>) -> Result<u8, Stop> {
        let feed = if self.events.is_some() { "open" } else { "nowhere" };
        let source = json!({
            "pattern": look.pattern, "servers": client.addresses(), "every": look.interval.as_millis() as u64,
            "version": env!("CARGO_PKG_VERSION"), "host": quoted(&host_name()), "prefix": quoted(client.prefix()), "began": line::now(),
        });
        let history = Shared::new(Mutex::new(History::new(look.pattern, source, feed, gap(look.interval))));
        let messages = Messages::for_operators(look.is_json);
        let unwritten = |error: io::Error| {
            let path = self.report.as_deref().unwrap_or(Path::new("")).display();
            fail(&messages, "CANNOT_WRITE", &format!("can't write {path}: {error}"), exit::UNWRITTEN)
        };
        let report =
            self.report.as_deref().map(|path| Report::check(path, self.events.as_deref())).transpose().map_err(unwritten)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Stop::Unwritten)?;
        // Without a page there is nothing to report: an older report stays.
        let end = runtime.block_on(self.shown(client, look, &history))?;
        if let Some(report) = report {
            report.write(&history.lock().all(line::now())).map_err(unwritten)?;
        }
        // As if nobody had caught it: a shell sees which signal it was.
        Ok(end?.carry_out())
    }

    /// Shows the page, unless it can't; gives what ends it, or the error after which it makes no sense.
    async fn shown(&self, client: &Client, look: &Look<'_>, history: &Shared) -> Result<Result<Ending, Error>, Stop> {
        let first = seen(client, look, history).await?;
        // A quorum has none, and the page does without.
        if let Ok(grants) = client.history(None, HISTORY_LENGTH).await {
            history.lock().noted(&grants, line::now());
        }
        let messages = Messages::for_operators(look.is_json);
        let wanted = self.port.unwrap_or(0);
        let busy =
            |error| fail(&messages, "CANNOT_LISTEN", &format!("can't listen on 127.0.0.1:{wanted}: {error}"), exit::UNAVAILABLE);
        let (listener, port) = listen(wanted).map_err(busy)?;
        if let Some(path) = &self.events {
            let unread = |error| fail(&messages, "CANNOT_READ", &format!("can't read {}: {error}", path.display()), exit::USAGE);
            feed::read(path, Arc::clone(history)).map_err(unread)?;
        }
        let ended = ended().map_err(Stop::Unwritten)?;
        let gate = Gate { token: page::random(), port };
        let url = format!("http://127.0.0.1:{port}/{}/", gate.token);
        print(&if look.is_json { format!("{}\n", json!({ "url": url })) } else { format!("{url}\n") })?;
        let site = Arc::new(Site::new(gate, Arc::clone(history)));
        tokio::spawn(Arc::clone(&site).serve(listener));
        tokio::spawn(push_changes(site));
        Ok(tokio::select! {
            error = looks(client, look, history, first) => Err(error),
            by = ended => Ok(by),
        })
    }
}

/// Prints why the page can't be shown.
fn fail(messages: &Messages, code: &str, text: &str, exit: u8) -> Stop {
    messages.error(code, text);
    Stop::Reported(exit)
}

fn listen(port: u16) -> io::Result<(TcpListener, u16)> {
    let listener = http::listen(port)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Sends changes to the pages, again and again.
async fn push_changes(site: Arc<Site>) {
    let mut moments = interval(PUSH_EVERY);
    moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        moments.tick().await;
        site.push_changes();
    }
}

/// Looks again and again; gives the error after which that makes no sense. `took` is the time of the look before.
async fn looks(client: &Client, look: &Look<'_>, history: &Shared, mut took: Duration) -> Error {
    loop {
        sleep(pause(look, took)).await;
        match seen(client, look, history).await {
            Ok(time) => took = time,
            // An outage passes, and the person still looks.
            Err(error) if error.code() == Code::Unavailable => history.lock().unseen(&error.to_string()),
            Err(error) => return error,
        }
    }
}

/// Looks at the locks; gives the time that it took.
async fn seen(client: &Client, look: &Look<'_>, history: &Shared) -> Result<Duration, Error> {
    let began = Instant::now();
    let locks = client.locks(look.pattern, look.limit).await?;
    let took = began.elapsed();
    let mut history = history.lock();
    history.seen(&locks, locks.len() >= look.limit, line::now());
    history.gap = gap(pause(look, took));
    Ok(took)
}

/// The time to the next look.
fn pause(look: &Look<'_>, took: Duration) -> Duration {
    look.interval.max(took * (PART - 1))
}

/// So many milliseconds after a look one is missing.
fn gap(pause: Duration) -> u64 {
    (pause * GAP).as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_take_long_are_rare_and_then_none_is_missing() {
        for (took, pause_ms, gap_ms) in [(1, 250, 1_000), (27, 250, 1_000), (300, 2_700, 10_800)] {
            let look = Look { pattern: "*", limit: 1, interval: Duration::from_millis(250), is_json: false };
            let pause = pause(&look, Duration::from_millis(took));
            assert_eq!((pause.as_millis(), gap(pause)), (pause_ms, gap_ms), "{took}");
        }
    }
}
