//! A task that one of several replicas runs at each scheduled time: two replicas ask for the same times, and one of them runs each.
//! LOCKTENDER_URL=redis://localhost cargo run --example nightly
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::{Duration, SystemTime};

use locktender::{Client, NotRunReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let planned = SystemTime::now(); // a scheduler says for which time it planned a run, in each replica the same
    for scheduled_time in [planned, planned + Duration::from_secs(60)] {
        for replica in ["Diego", "Milten"] {
            let job = client.cron_job("example:nightly").at(scheduled_time);
            let outcome = job.run(async |attempt| Ok::<_, String>(attempt.fence().to_string())).await?;
            let why = outcome.reason.map_or("ran", NotRunReason::as_str);
            println!("{replica}: {why}, fence {}", outcome.result.unwrap_or_default());
        }
    }
    client.close().await?;
    Ok(())
}
