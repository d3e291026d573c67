//! `locktender doctor`: what the servers guarantee, and what a person should look at.

use clap::Args;
use locktender::host::cli::on_one_line;
use locktender::{Code, FailureKind, ServerReport};
use serde_json::json;

use super::exit;
use super::messages::in_words;
use super::operator::{Asked, print};

/// Checks what the servers guarantee, and what needs attention
///
/// It exits with 1 if there is something to look at, such as a right that its user lacks, and with 69 if a server doesn't answer.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    asked: Asked,
}

pub(super) fn doctor(options: &Doctor) -> u8 {
    options.asked.with_client(|client| {
        let reports = client.check_servers_blocking()?;
        let text: String = reports.iter().map(if options.asked.json { json_line } else { lines }).collect();
        print(&text)?;
        // Locks do without a history. A quorum has none.
        if reports.iter().all(|report| report.failure.is_none())
            && let Err(error) = client.history_blocking(None, 1)
            && error.code() != Code::InvalidArgument
        {
            // Without the history nothing shows whether locks work.
            let is_down = error.code() == Code::Unavailable;
            let what = if is_down { "the history can't be read" } else { "locks work, but without a history" };
            options.asked.messages().note(&format!("{what}: {}", in_words(&error)));
        }
        Ok(verdict(&reports))
    })
}

fn verdict(reports: &[ServerReport]) -> u8 {
    match () {
        () if reports.iter().filter_map(|report| report.failure.as_ref()).any(|error| !is_an_answer(error.kind)) => {
            exit::UNAVAILABLE
        }
        () if reports.iter().any(|report| report.failure.is_some() || !report.warnings.is_empty()) => exit::WORTH_A_LOOK,
        () => 0,
    }
}

/// Whether this is what the server says, and asking it again changes nothing.
fn is_an_answer(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Denied | FailureKind::Mismatch)
}

fn lines(report: &ServerReport) -> String {
    let mut text = format!("{}\n", on_one_line(&report.server));
    let mut line = |what: &str, value: &str| text += &format!("  {what:<12} {}\n", on_one_line(value));
    if let Some(error) = &report.failure {
        line("error", &error.message);
    }
    let version = [report.version.as_deref(), report.role.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let known = [("server", Some(version)), ("persistence", report.persistence.clone()), ("eviction", report.eviction.clone())];
    for (what, value) in known {
        value.filter(|value| !value.is_empty()).into_iter().for_each(|value| line(what, &value));
    }
    if let Some(offset) = report.clock_offset_ms {
        line("clock", &format!("{} ms {} of this machine's", offset.unsigned_abs(), if offset < 0 { "behind" } else { "ahead" }));
    }
    match report.denied.as_deref() {
        Some([]) => line("rights", "all that locks need"),
        Some(denied) => denied.iter().for_each(|right| line("no right to", right)),
        None if report.failure.is_none() => line("rights", "unknown"),
        None => (),
    }
    report.warnings.iter().for_each(|warning| line("warning", warning));
    text
}

fn json_line(report: &ServerReport) -> String {
    let error = report.failure.as_ref().map(|error| json!({ "kind": error.kind.as_str(), "message": error.message }));
    let line = json!({
        "server": report.server, "error": error, "version": report.version, "role": report.role, "persistence": report.persistence,
        "eviction": report.eviction, "clock_offset_ms": report.clock_offset_ms, "denied": report.denied, "warnings": report.warnings,
    });
    format!("{line}\n")
}
