//! Hints: what a sentinel reports by itself, that a service has a new primary. They cause a look at once, where a command that
//! fails or the look that comes from time to time would find out later. A hint that is lost is no harm.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::connection::failure::{broke_by, no_answer};
use crate::server::redis::connection::primary::Primary;
use crate::server::redis::listening::pub_sub::{Channel, Kind, PubSub, Push};
use crate::server::redis::pauses::Pauses;
use crate::server::redis::sentinel::is_about;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::look::look;
use crate::server::redis::transport::sentinels::Talk;
use crate::server::redis::transport::stream::Limit;
use crate::server::redis::url::Service;

const CHANNEL: &str = "+switch-master";

/// The pauses after a sentinel could not be listened to.
const PAUSES: Pauses = Pauses { first: Duration::from_millis(500), longest: Duration::from_secs(30) };

/// The connection to one sentinel, from the first hold to the end of the client.
#[derive(Default)]
pub(crate) struct Hints(OnceLock<AbortHandle>);

impl Hints {
    /// Listens, if nobody does so far.
    pub(crate) fn listen(&self, settings: &Arc<Settings>, primary: &Arc<Primary>, host: &Handle) {
        self.0.get_or_init(|| host.spawn(follow(Arc::clone(settings), Arc::clone(primary))).abort_handle());
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        if let Some(task) = self.0.get() {
            task.abort();
        }
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.close();
    }
}

/// Listens to one sentinel after the other: the next one when the connection to this one ends.
async fn follow(settings: Arc<Settings>, primary: Arc<Primary>) {
    let Some(service) = settings.target.endpoint.service() else { return };
    let (mut failures, mut is_back) = (1, false);
    for turn in fastrand::usize(..1 << 16).. {
        let begun = Instant::now();
        // A message ends the connection only by its failure, which changes nothing: there are other ways to notice a failover.
        let _ = listen(service, turn, is_back, &settings, &primary).await;
        failures = if begun.elapsed() > PAUSES.longest { 1 } else { failures + 1 };
        is_back = true;
        sleep(PAUSES.spread(failures, fastrand::f64())).await;
    }
}

/// Listens to one sentinel, as long as the connection lasts. A client that `is_back` may have missed a hint, and looks at once.
async fn listen(
    service: &Arc<Service>,
    turn: usize,
    is_back: bool,
    settings: &Arc<Settings>,
    primary: &Arc<Primary>,
) -> Result<(), Failure> {
    let sentinels = service.known.lock().all();
    let limit = Limit::new(settings.connect_timeout);
    let mut talk = Talk::begin(service, &sentinels[turn % sentinels.len()], limit).await?;
    limit.keep(FailureKind::Timeout, "no answer", talk.log_in(service)).await??;
    let Talk { mut socket, buffers, .. } = talk;
    let mut pub_sub = PubSub::new(buffers, settings.response_timeout);
    pub_sub.subscribe(Channel { name: CHANNEL.into(), kind: Kind::Plain }, Tick::now());
    loop {
        let wake_at = Instant::now() + pub_sub.wake_at().since(Tick::now());
        let reply = match timeout_at(wake_at, socket.read(&mut pub_sub.buffers)).await {
            Ok(count) => pub_sub.read(count.map_err(broke_by)?, Tick::now())?,
            Err(_) if pub_sub.wake(Tick::now()) => return Err(no_answer(settings.response_timeout)),
            Err(_) => Vec::new(),
        };
        for reply in reply {
            let is_hint = match reply {
                Push::Subscribed(_) => is_back,
                Push::Message(_, text) => is_about(&text, &service.name),
                Push::Refused(_, failure) => return Err(failure),
                Push::Ended(_) => false,
            };
            if is_hint {
                look(Arc::clone(settings), Arc::clone(primary), None).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::options::ClientOptions;

    #[test]
    fn a_sentinel_that_says_nothing_more_is_left() {
        let sentinel = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis+sentinel://{}/locks", sentinel.local_addr().unwrap());
        let (sender, subscribed) = channel();
        std::thread::spawn(move || {
            // The connections are kept open, and nothing is answered but the subscription.
            let mut kept = Vec::new();
            for stream in sentinel.incoming() {
                let mut stream = stream.unwrap();
                let mut asked = [0; 4_096];
                let count = stream.read(&mut asked).unwrap_or_default();
                if String::from_utf8_lossy(&asked[..count]).contains("SUBSCRIBE") {
                    stream.write_all(b"*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n").unwrap();
                    sender.send(()).unwrap();
                }
                kept.push(stream);
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let host = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        let settings = Settings::new(&url, &ClientOptions::default(), Duration::from_millis(200), None).unwrap();
        let hints = Hints::default();
        hints.listen(&Arc::new(settings), &Arc::new(Primary::new(|_| ())), &host);
        for _ in 0..2 {
            subscribed.recv_timeout(Duration::from_secs(60)).expect("it listens, and then to another one");
        }
    }
}
