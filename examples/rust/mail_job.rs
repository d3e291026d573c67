//! Work that must be done once: two workers ask for it, and when one of them fails, the next attempt follows.
//! LOCKTENDER_URL=redis://localhost cargo run --example mail_job
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use locktender::{Attempt, Client, RunError};

/// A stand-in for a mail server, which is down during the first attempt. The result is JSON, for programs in every language.
async fn send(attempt: &Attempt) -> Result<&'static str, &'static str> {
    println!("attempt {} of {}, fence {}", attempt.number(), attempt.max_attempts(), attempt.fence());
    if attempt.number() == 1 { Err("the mail server is down") } else { Ok(r#"{"sent":3}"#) }
}

async fn work(client: &Client, worker: &str) -> Result<(), Box<dyn Error>> {
    let job = client.job("example:mail").retry_delay(Duration::from_millis(200));
    let job = job.retention(Duration::from_secs(60)); // a process that asks a minute later sends the mail again
    loop {
        // Waits while the other worker runs the job.
        match job.run(async |attempt| send(attempt).await).await {
            Ok(outcome) => {
                let how = if outcome.ran { "done by me" } else { "done before" };
                println!("{worker}: {how}, {}", outcome.result.unwrap_or_default());
                return Ok(());
            }
            Err(RunError::Failed(error)) => println!("{worker} failed, and asks again: {error}"),
            Err(error) => return Err(error.into()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    tokio::try_join!(work(&client, "Diego"), work(&client, "Milten"))?;
    let status = client.job("example:mail").status().await?;
    println!("{} after {} attempts, by {}", status.state.as_str(), status.attempts, status.last_owner.unwrap_or_default());
    client.close().await?;
    Ok(())
}
