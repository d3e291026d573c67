//! Hints: what a sentinel says by itself, that a service has a new primary. They cause a look at once, where a command that fails
//! or the look that comes from time to time would find out later. A hint that is lost is no harm.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::Value;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::op::{Failure, FailureKind};
use crate::server::redis::connection::primary::Primary;
use crate::server::redis::sentinel::is_about;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::look::look;
use crate::server::redis::transport::sentinels::Talk;
use crate::server::redis::transport::stream::Limit;
use crate::server::redis::url::Service;

const CHANNEL: &str = "+switch-master";

/// The pause after a sentinel could not be listened to; it doubles up to the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

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
    let (mut pause, mut is_back) = (FIRST, false);
    for turn in fastrand::usize(..1 << 16).. {
        let begun = Instant::now();
        // What is heard ends the connection only by its failure, which changes nothing: there are other ways to notice a failover.
        let _ = hear(service, turn, is_back, &settings, &primary).await;
        pause = if begun.elapsed() > LONGEST { FIRST } else { LONGEST.min(2 * pause) };
        is_back = true;
        sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
    }
}

/// Listens to one sentinel, as long as the connection lasts. A client that `is_back` may have missed a hint, and looks at once.
async fn hear(
    service: &Arc<Service>,
    turn: usize,
    is_back: bool,
    settings: &Arc<Settings>,
    primary: &Arc<Primary>,
) -> Result<(), Failure> {
    let sentinels = service.known.lock().all();
    let limit = Limit::new(settings.connect_timeout);
    let mut talk = Talk::begin(service, &sentinels[turn % sentinels.len()], limit).await?;
    talk.say(&redis::cmd("SUBSCRIBE").arg(CHANNEL).get_packed_command());
    let subscribed = limit.keep(FailureKind::Timeout, "no subscription", async {
        talk.log_in(service).await?;
        Ok::<_, Failure>(talk.next().await.and_then(Value::extract_error).is_ok())
    });
    if !subscribed.await?? {
        return Ok(());
    }
    let look = || look(Arc::clone(settings), Arc::clone(primary), None);
    if is_back {
        look().await;
    }
    while let Ok(value) = talk.next().await {
        let message: Option<(String, String, String)> = redis::from_redis_value(value).ok();
        if message.is_some_and(|(_, _, text)| is_about(&text, &service.name)) {
            look().await;
        }
    }
    Ok(())
}
