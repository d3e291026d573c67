//! `locktender quorum`: whether a server belongs to a quorum.

use std::time::{Duration, UNIX_EPOCH};

use clap::{Args, Subcommand};
use locktender::host::cli::{Markers, on_one_line, read_marker};
use locktender::{Error, FailureKind};
use serde_json::json;

use super::exit;
use super::operator::{Asked, Stop, print};
use super::span::span;

/// Shows and changes whether the servers belong to a quorum
///
/// Several servers that a client knows are a quorum: a majority of them decides. Each of them has a marker, which says to which quorum it
/// belongs, and since when. A server that is new to its quorum votes when every hold that it may have forgotten has ended.
#[derive(Debug, Args)]
pub(super) struct Quorum {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Init(Init),
    /// Shows to which quorum each server belongs
    ///
    /// It exits with 1 if none belongs to one.
    Show(Asked),
    /// Takes the servers out of their quorum, as for clients with one server
    ///
    /// Their locks stay. A client of a quorum that asks such a server for a lock makes it a member again, which votes after the longest ttl.
    /// So end these clients first. It exits with 1 if no server belongs to a quorum.
    Remove(Asked),
}

/// Lets the servers of a new quorum vote at once, while no lock may be held
#[derive(Debug, Args)]
struct Init {
    #[command(flatten)]
    asked: Asked,

    /// The longest ttl that clients of this quorum may have, as all of them say it [default: 1m]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    max_ttl: Option<Duration>,
}

pub(super) fn quorum(options: &Quorum) -> u8 {
    match &options.action {
        Action::Init(init) => initialize(init),
        Action::Show(asked) => asked.with(asked.servers.members(), |client| {
            let markers = client.markers(false).blocking()?;
            report(asked, &markers, lines)
        }),
        Action::Remove(asked) => asked.with(asked.servers.members(), |client| {
            let before = client.markers(false).blocking()?;
            let after = client.markers(true).blocking()?;
            let markers: Markers =
                before.into_iter().zip(after).map(|((server, text), (_, gone))| (server, gone.and(text))).collect();
            report(asked, &markers, |server, text| match text {
                Some(text) => format!("{server} belongs to no quorum any more; its marker was {text}\n"),
                None => format!("{server} belonged to no quorum\n"),
            })
        }),
    }
}

fn initialize(options: &Init) -> u8 {
    options.asked.with(options.asked.servers.quorum(options.max_ttl), |client| {
        if client.addresses().len() < 2 {
            return Err(Error::invalid(
                "servers",
                client.addresses(),
                "one server is no quorum: name all of them, each by --server",
            )
            .into());
        }
        client.initialize_quorum_blocking()?;
        options.asked.messages().note("they vote from now on");
        Ok(0)
    })
}

/// Writes what is known of each server; gives the exit code.
fn report(asked: &Asked, markers: &Markers, text: impl Fn(&str, Option<&str>) -> String) -> Result<u8, Stop> {
    let shown = markers.iter().map(|(server, marker)| match marker {
        _ if asked.json => {
            let error = marker.as_ref().err().map(|error| json!({ "kind": error.kind.as_str(), "message": error.message }));
            format!("{}\n", json!({ "server": server, "marker": marker.as_ref().ok(), "error": error }))
        }
        Ok(marker) => text(&on_one_line(server), marker.as_deref().map(on_one_line).as_deref()),
        Err(error) => format!("{}\n  error  {}\n", on_one_line(server), on_one_line(&error.message)),
    });
    print(&shown.collect::<String>())?;
    let failed = markers.iter().filter_map(|(_, marker)| marker.as_ref().err()).map(|error| error.kind);
    Ok(match failed.max_by_key(|kind| *kind != FailureKind::Denied) {
        Some(FailureKind::Denied) => exit::CONFIGURATION,
        Some(_) => exit::UNAVAILABLE,
        None if markers.iter().all(|(_, marker)| matches!(marker, Ok(None))) => exit::NOTHING,
        None => 0,
    })
}

/// A marker as lines.
fn lines(server: &str, marker: Option<&str>) -> String {
    let Some(text) = marker else { return format!("{server}\n  quorum  none\n") };
    let Some(read) = read_marker(text) else { return format!("{server}\n  quorum  unknown: {text}\n") };
    let (servers, max_ttl) = read.quorum;
    let max_ttl = Duration::from_millis(max_ttl);
    let votes = match read.since_us {
        0 => "yes".to_owned(),
        since => {
            let from = UNIX_EPOCH + Duration::from_micros(since) + max_ttl;
            format!("from {} on, by its clock", humantime::format_rfc3339_seconds(from))
        }
    };
    format!("{server}\n  quorum  {servers} servers, max_ttl {}\n  votes   {votes}\n", humantime::format_duration(max_ttl))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_shown_whatever_it_says() {
        for (marker, shown) in [
            (None, "a\n  quorum  none\n"),
            (Some("n=3 max_ttl=60000 run=x since=0"), "a\n  quorum  3 servers, max_ttl 1m\n  votes   yes\n"),
            (
                Some("n=3 max_ttl=60000 run=x since=1795222800000000 more=1"),
                "a\n  quorum  3 servers, max_ttl 1m\n  votes   from 2026-11-21T01:01:00Z on, by its clock\n",
            ),
            (Some("n=3"), "a\n  quorum  unknown: n=3\n"),
        ] {
            assert_eq!(lines("a", marker), shown);
        }
    }
}
