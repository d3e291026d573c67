//! A resource that refuses the write of a holder that was paused for too long.
//! LOCKTENDER_URL=redis://localhost cargo run --example fencing
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use locktender::{Client, Error};

/// The resource that the lock protects. It remembers the largest fence it has seen, and refuses smaller ones.
#[derive(Default)]
struct Account {
    balance: i64,
    fence: u64,
}

impl Account {
    fn write(&mut self, balance: i64, fence: u64) -> Result<(), String> {
        if fence < self.fence {
            return Err(format!("fence {fence} came after {}: refused", self.fence));
        }
        (self.balance, self.fence) = (balance, fence);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = Client::from_env()?;
    let mut account = Account::default();

    // Without renewal the lock expires, as the lock of a paused process does.
    let slow = client.lock("account:7").ttl(Duration::from_millis(200)).renew(false).acquire().await?;
    println!("the slow holder was lost: {}", slow.lost().await?.reason);

    let quick = client.lock("account:7").acquire().await?;
    println!("the quick holder writes: {:?}", account.write(200, quick.fence()));
    println!("the slow holder writes: {:?}", account.write(100, slow.fence()));
    assert_eq!(account.balance, 200);

    println!("the slow holder's release finds the lock {}", slow.release().await?.outcome.as_str());
    quick.release().await?;
    client.close().await
}
