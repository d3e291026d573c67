//! A fair lock, whose waiters are served in the order in which they came, across all processes.
//! LOCKTENDER_URL=redis://localhost cargo run --example fair
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use locktender::{Client, Error, Hold};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = Client::from_env()?;
    let counter = client.lock("example:counter").fair(true);
    let hold = counter.acquire().await?;

    let mut customers = tokio::task::JoinSet::new();
    for number in 1..=3 {
        let counter = counter.clone();
        let served = async move |_: &Hold| {
            println!("customer {number} is served");
            Ok::<_, Error>(())
        };
        customers.spawn(async move { counter.with(served).await });
        // Let each customer take a place before the next one comes.
        while counter_line(&client).await?.len() < number {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    println!("in line: {:#?}", counter_line(&client).await?);
    hold.release().await?;
    customers.join_all().await;
    client.close().await
}

async fn counter_line(client: &Client) -> Result<Vec<String>, Error> {
    Ok(client.lock("example:counter").inspect().await?.map(|info| info.queue).unwrap_or_default())
}
