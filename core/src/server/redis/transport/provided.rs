//! Provided: the account that the connections to one server or cluster share, and the calls of its provider.
//!
//! User code runs on a thread of the blocking pool, so that it may block. There is one call at a time, which all connections that need
//! its answer wait for. Between the calls a task waits for the time of the next one, and it reports a call that takes too long.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::clock::Tick;
use crate::credentials::{Credentials, CredentialsProvider, SharedProvider};
use crate::error::quoted::quoted;
use crate::event::callback::caught;
use crate::op::{Failure, FailureKind};
use crate::server::redis::account::{Account, Need, late};
use crate::server::redis::login::Login;
use crate::server::redis::transport::stream::Limit;
use crate::sync::Mutex;

/// What happens to the account.
#[derive(Debug)]
pub(crate) enum Change {
    /// There are new credentials.
    Login,
    /// The provider fails, and older credentials are used meanwhile.
    Trouble(Failure),
}

/// The provider of one server or cluster, and the account that it fills. A node is named by its address.
pub(crate) struct Provided {
    provider: Arc<dyn CredentialsProvider>,
    server: String,
    /// The time that a call may take.
    span: Duration,
    host: Handle,
    state: Mutex<State>,
    /// The number of calls that have ended.
    ended: watch::Sender<u64>,
    /// Wakes the task: the server has refused the credentials.
    refused: Notify,
}

#[derive(Default)]
struct State {
    account: Account,
    /// The call that is under way, by the time by which it should have answered; never, once that was reported.
    call: Option<Tick>,
    /// Trouble that was not reported.
    trouble: Option<Failure>,
}

impl Provided {
    /// An account without any credentials so far. Calls run on threads of `host`.
    pub(crate) fn new(provider: &SharedProvider, server: &str, span: Duration, host: &Handle) -> Arc<Self> {
        Arc::new(Self {
            provider: Arc::clone(provider.provider()),
            server: server.to_owned(),
            span,
            host: host.clone(),
            state: Mutex::default(),
            ended: watch::Sender::new(0),
            refused: Notify::new(),
        })
    }

    /// The credentials for a node.
    pub(crate) fn login(&self, node: &str) -> Option<Arc<Login>> {
        self.state.lock().account.login(node).cloned()
    }

    /// A node accepts these.
    pub(crate) fn accepted(&self, node: &str, login: &Arc<Login>) {
        self.state.lock().account.accepted(node, login);
    }

    /// A node refuses these, to a live connection or a new one; returns whether that is news.
    pub(crate) fn refused(&self, node: &str, login: &Arc<Login>, failure: &Failure, is_live: bool, now: Tick) -> bool {
        let is_news = self.state.lock().account.refused(node, login, failure, is_live, now);
        self.refused.notify_one();
        is_news
    }

    /// Waits until there are credentials for a new connection to a node.
    ///
    /// # Errors
    /// `Denied` if the provider failed, `Timeout` if it gives no answer within the limit.
    pub(crate) async fn ready(self: &Arc<Self>, node: &str, limit: Limit) -> Result<(), Failure> {
        let mut ended = self.ended.subscribe();
        let mut need = self.state.lock().account.need(node, Tick::now());
        if matches!(need, Need::Ask) {
            self.ask();
            if tokio::time::timeout_at(limit.at, ended.changed()).await.is_err() {
                return Err(late(self.span));
            }
            need = self.state.lock().account.outcome(node, Tick::now());
        }
        match need {
            Need::Use => Ok(()),
            Need::Rest(failure) => Err(failure),
            Need::Ask => Err(Failure::not_applied(FailureKind::Denied, "`credentials` gave none that are still good")),
        }
    }

    /// Begins a call, unless one is under way.
    fn ask(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.call.is_none() {
            state.call = Some(Tick::now().after(self.span));
            drop(state);
            let provided = Arc::clone(self);
            drop(self.host.spawn_blocking(move || provided.call()));
        }
    }

    /// Calls the provider, on this thread.
    fn call(&self) {
        let called = caught(|| {
            let given = self.host.block_on(timeout(self.span, self.provider.credentials(&self.server)));
            // What an error says of itself is the provider's code, too.
            given.map(|given| given.map_err(|error| (format!("`credentials` failed: {error}"), error)))
        });
        let answer = match called {
            Ok(Ok(Ok(credentials))) => Ok(credentials),
            Ok(Ok(Err((why, error)))) => Err(self.failure(&why).caused_by(error)),
            Ok(Err(_)) => Err(late(self.span)),
            Err(panic) => Err(self.failure(&panic.warning("`credentials`").message.unwrap_or_default())),
        };
        self.take(answer, Tick::now());
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Takes what a call gave.
    pub(crate) fn take(&self, answer: Result<Credentials, Failure>, now: Tick) {
        let mut state = self.state.lock();
        let was_late = state.call.take() == Some(Tick::NEVER);
        match answer {
            Ok(credentials) => state.account.answered(credentials, now),
            // One that was late has failed already.
            Err(failure) if !was_late => state.failed(failure, now),
            Err(_) => {}
        }
    }

    /// The failure of a provider. It may repeat the password that it gave last.
    fn failure(&self, why: &str) -> Failure {
        let is_repeated = self.state.lock().account.newest().is_some_and(|login| login.is_repeated_in(why));
        let hidden = "`credentials` failed, with an error that repeats the password".to_owned();
        Failure::not_applied(FailureKind::Denied, if is_repeated { hidden } else { quoted(why) })
    }

    /// Asks for new credentials in time, and notifies `owner` of each change as long as it lives.
    pub(crate) fn renew<T: Send + Sync + 'static>(self: Arc<Self>, owner: &Arc<T>, notify: fn(&T, Change)) -> Renewal {
        let (owner, host) = (Arc::downgrade(owner), self.host.clone());
        let notify = move |change| {
            if let Some(owner) = owner.upgrade() {
                notify(&owner, change);
            }
        };
        let provided = self;
        let task = async move {
            let mut ended = provided.ended.subscribe();
            let mut known = None;
            loop {
                let (due, login, trouble) = {
                    let mut state = provided.state.lock();
                    state.look(provided.span, Tick::now());
                    let due = state.call.unwrap_or_else(|| state.account.due());
                    (due, state.account.newest().cloned(), state.trouble.take())
                };
                if login.as_ref().map(Arc::as_ptr) != known.as_ref().map(Arc::as_ptr) {
                    known = login;
                    notify(Change::Login);
                }
                trouble.into_iter().map(Change::Trouble).for_each(&notify);
                tokio::select! {
                    // The sender lives as long as this task.
                    _ = ended.changed() => {}
                    () = provided.refused.notified() => {}
                    // Where a call is under way, it is late now.
                    () = sleep_until(Instant::now() + due.since(Tick::now())), if due != Tick::NEVER => provided.ask(),
                }
            }
        };
        Renewal(host.spawn(task).abort_handle())
    }
}

/// The task that asks for new credentials in time. It ends with this value.
#[derive(Debug)]
pub(crate) struct Renewal(AbortHandle);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl State {
    /// A call that takes too long has failed, though it may still give something: user code that blocks can't be ended.
    fn look(&mut self, span: Duration, now: Tick) {
        if self.call.is_some_and(|until| now >= until) {
            self.call = Some(Tick::NEVER);
            self.failed(late(span), now);
        }
    }

    fn failed(&mut self, failure: Failure, now: Tick) {
        if self.account.failed(failure.clone(), now) {
            self.trouble = Some(failure);
        }
    }
}
