//! A lock that is held around some work. LOCKTENDER_URL=redis://localhost cargo run --example hello
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use locktender::{Client, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = Client::from_env()?;
    let orders = client.lock("orders:42").ttl(Duration::from_secs(10)).wait(Duration::from_secs(5));

    // Renewed in the background until the body ends; ACQUIRE_TIMEOUT after 5 s.
    let total = orders
        .with(async |hold| {
            println!("{} is held with fence {}", hold.name(), hold.fence());
            let second = client.lock("orders:42").try_acquire().await?;
            println!("another caller gets {second:?}");
            Ok::<_, Error>(42)
        })
        .await?;
    println!("done: {total}");
    client.close().await
}
