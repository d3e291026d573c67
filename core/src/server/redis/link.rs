//! One live connection of a lane that runs as a task.

use std::pin::Pin;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value};
use tokio::task::{JoinHandle, unconstrained};

use super::codec::{self, Form};
use super::ear::Word;
use super::lane::Wire;
use super::sent::{Job, Sent};
use crate::clock::Tick;
use crate::server::Failure;

/// What happens on a connection.
pub(super) enum Event {
    /// The command with this number has its answer, or never will.
    Landed(u64, RedisResult<Value>),
    /// The connection is closed; nothing is in flight any more.
    Broken,
}

type Flight = Pin<Box<dyn Future<Output = (u64, RedisResult<Value>)> + Send>>;

/// One connection.
pub(super) struct Link {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    driver_ended: bool,
    flights: FuturesUnordered<Flight>,
    sent: Sent,
}

impl Link {
    pub(super) fn new(connection: MultiplexedConnection, driver: JoinHandle<()>, sent: Sent) -> Self {
        Self { connection, driver, driver_ended: false, flights: FuturesUnordered::new(), sent }
    }

    /// The write happens when the lane waits next, together with those of others.
    ///
    /// A command takes its place in the writer's queue when its flight is polled first, so that is done here, and outside
    /// tokio's budget, which would let it yield without a place.
    fn launch(&mut self, command: Cmd) {
        let number = self.sent.next();
        let mut connection = self.connection.clone();
        let mut flight: Flight = Box::pin(async move { (number, connection.send_packed_command(&command).await) });
        self.flights.push(match unconstrained(&mut flight).now_or_never() {
            Some(landed) => Box::pin(std::future::ready(landed)),
            None => flight,
        });
    }

    /// Waits for the next event. Cancel safe.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                biased;
                // Without a budget, which would bring answers out of order.
                Some((number, result)) = unconstrained(self.flights.next()), if !self.flights.is_empty() => return Event::Landed(number, result),
                _ = &mut self.driver, if !self.driver_ended => self.driver_ended = true,
                // Without a driver every flight lands: first those, so that no answer that came is lost.
                () = std::future::ready(()), if self.driver_ended && self.flights.is_empty() => return Event::Broken,
            }
        }
    }
}

impl Wire for Link {
    type Attempt = Pin<Box<dyn Future<Output = Result<Self, Failure>> + Send>>;

    fn send(&mut self, job: Job, form: Form, now: Tick) {
        self.launch(codec::command(&job.request.op, self.sent.run_id(), form));
        self.sent.push(job, now);
    }

    fn say(&mut self, word: Word, channel: &str, now: Tick) {
        self.launch(word.command(channel));
        self.sent.push_word(word, now);
    }

    fn sent(&self) -> &Sent {
        &self.sent
    }

    fn sent_mut(&mut self) -> &mut Sent {
        &mut self.sent
    }
}

/// The crate's driver outlives the connection until every answer came, which on a half-open one is never.
impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
