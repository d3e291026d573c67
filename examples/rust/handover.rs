//! A held lock that moves to another process, as from a web request to a background job.
//! LOCKTENDER_URL=redis://localhost cargo run --example handover
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use locktender::{Client, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let request = Client::from_env()?;
    let hold = request.lock("report:2026").acquire().await?;
    println!("the request holds it with fence {}", hold.fence());
    let ticket = hold.hand_over()?; // a string: put it into the job's arguments

    // In another process, with another client. The ticket works once, and until the lock's ttl has passed.
    let job = Client::from_env()?;
    let hold = job.adopt(&ticket).await?;
    println!("the job holds it with fence {}", hold.fence());
    println!("{}", hold.release().await?.outcome.as_str());

    request.close().await?;
    job.close().await
}
