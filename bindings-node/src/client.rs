//! Client: a client of an environment, and the environment's queue.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use locktender::host::sync::Mutex;
use locktender::{Error, Outcome};
use napi::bindgen_prelude::{Array, ClassInstance, Either, Float64Array, Function, FunctionRef, Object, ToNapiValue};
use napi::{Env, Result};
use napi_derive::napi;

use crate::any_hold::AnyHold;
use crate::credentials::Provider;
use crate::election::Election;
use crate::error::{Failure, ms, or_failure};
use crate::event::{self, Forward};
use crate::exit::{exit, gone};
use crate::host::Host;
use crate::item::{Item, Value};
use crate::job::{BegunAttempt, Job, JobOutcome};
use crate::lock::{Lock, checked};
use crate::metrics::Metrics;
use crate::options::client_options;
use crate::queue::Queue;
use crate::record::Recorded;
use crate::results::{Grant, HoldInfo, LockInfo, Release, ServerReport};
use crate::scripted::ScriptedServer;

/// A server: a URL, a text with several URLs, or a scripted server.
type Source<'env> = Either<String, ClassInstance<'env, ScriptedServer>>;

/// The numbers of one item that `drain` gives are `[kind, number, value]`. Results that are no numbers are in the array that it
/// returns.
#[napi]
pub enum Kind {
    /// A call succeeded, without a result.
    Done,
    /// A call got a hold, under the call's number; the value is its fence.
    Held,
    /// A call released a lock with the outcome `released`; the value is the overrun.
    Released,
    /// A call succeeded; its result is in the array.
    Resolved,
    /// A call failed; its `Failure` is in the array.
    Rejected,
    /// The hold with this number ended, if it is watched: its loss, a `Failure` or `null`, is in the array.
    Ended,
    /// The client with this number has an event; it is in the array. The value is 1 for the warning of an acquire that waits for its
    /// own client, else 0.
    Event,
    /// The record of an acquire that is followed is in the array.
    Followed,
    /// The client with this number is asked for credentials; the value is the number of the question, and the server's address is in
    /// the array.
    Asked,
}

/// The count of numbers per item, after the first number, which counts the items.
const NUMBERS: usize = 3;

/// The exit of results; one for each environment.
#[napi]
pub struct CompletionQueue {
    pub(crate) queue: Arc<Queue>,
    clients: AtomicU32,
    /// The function to call for a new result, until the first client is opened in Node.
    unhosted: Mutex<Option<FunctionRef<(), ()>>>,
    host: OnceCell<Rc<Host>>,
}

#[napi]
impl CompletionQueue {
    /// `wake` is called when there is a result to drain. `hosted`: this is Node, whose own loop can do the I/O.
    #[napi(constructor)]
    pub fn new(env: Env, wake: Function<'_, (), ()>, hosted: bool) -> Result<Self> {
        let queue = Queue::new(wake.create_ref()?);
        env.add_env_cleanup_hook(Arc::clone(&queue), |queue| gone(&queue))?;
        let unhosted = if hosted { Some(wake.create_ref()?) } else { None };
        Ok(Self { queue, clients: AtomicU32::new(0), unhosted: Mutex::new(unhosted), host: OnceCell::new() })
    }

    /// Takes the results that have arrived, as many as `numbers` holds: first the count, then three numbers for each item.
    #[napi]
    pub fn drain<'env>(&self, env: &'env Env, mut numbers: Float64Array) -> Result<Option<Array<'env>>> {
        // SAFETY: JavaScript waits for the return of this call.
        let numbers = unsafe { numbers.as_mut() };
        let items = self.queue.drain(env, numbers.len().saturating_sub(1) / NUMBERS);
        let mut rich = None;
        let mut count = 0;
        for item in items {
            let (kind, number, value) = self.put(env, &mut rich, item)?;
            let at = 1 + count * NUMBERS;
            numbers[at..at + NUMBERS].copy_from_slice(&[f64::from(kind as i32), number as f64, value]);
            count += 1;
        }
        numbers[0] = count as f64;
        Ok(rich)
    }

    /// The numbers of an item; other results go to `rich`.
    fn put<'env>(&self, env: &'env Env, rich: &mut Option<Array<'env>>, item: Item) -> Result<(Kind, i64, f64)> {
        let mut rich = Rich { env, array: rich };
        Ok(match item {
            Item::Settled(id, Ok(Value::Nothing)) => (Kind::Done, id, 0.0),
            Item::Settled(id, Ok(Value::Closed)) => {
                self.host.get().into_iter().for_each(|host| host.forget_what_is_over());
                (Kind::Done, id, 0.0)
            }
            Item::Settled(id, Ok(Value::Held(held))) => {
                let fence = held.fence();
                self.queue.keep_hold(id, *held);
                (Kind::Held, id, fence as f64)
            }
            Item::Settled(id, Ok(Value::Begun(begun))) => match locktender::host::begun(*begun) {
                Ok(attempt) => {
                    let begun = BegunAttempt::new(id, &attempt);
                    self.queue.keep_hold(id, AnyHold::Attempt(attempt));
                    rich.with(Kind::Resolved, id, begun)?
                }
                Err(outcome) => rich.with(Kind::Resolved, id, JobOutcome::from(outcome))?,
            },
            Item::Settled(id, Ok(Value::Released(release))) if release.outcome == Outcome::Released && release.kept.is_zero() => {
                (Kind::Released, id, ms(release.overrun))
            }
            Item::Settled(id, Ok(Value::Released(release))) => rich.with(Kind::Resolved, id, Release::from(release))?,
            Item::Settled(id, Ok(Value::Data(put))) => {
                put(rich.array()?)?;
                (Kind::Resolved, id, 0.0)
            }
            Item::Settled(id, Err(error)) => rich.with(Kind::Rejected, id, Failure::from(error))?,
            Item::Ended(id, loss) => rich.with(Kind::Ended, id, loss.map(Failure::from))?,
            Item::Event(client, event, at, _) => {
                let about = f64::from(u8::from(event.is_self_wait()));
                let (kind, number, _) = rich.with(Kind::Event, client.into(), event::object(env, &event, at)?)?;
                (kind, number, about)
            }
            Item::Followed(record, _) => rich.with(Kind::Followed, 0, Recorded::from(*record))?,
            Item::Asked(client, question, server) => {
                let (kind, number, _) = rich.with(Kind::Asked, client.into(), server)?;
                (kind, number, question as f64)
            }
        })
    }

    /// Cancels a call: its result will not come out.
    #[napi]
    pub fn cancel(&self, env: Env, id: i64) {
        self.queue.cancel(&env, id);
    }

    /// Answers a question for credentials. Gives a failure if they can't be used: then the question is still open.
    #[napi]
    pub fn give_credentials(
        &self,
        question: i64,
        user: Option<String>,
        password: String,
        expires_in_ms: Option<f64>,
    ) -> Option<Failure> {
        self.queue.questions.give(question, user, password, expires_in_ms).err().map(Failure::from)
    }

    /// Answers a question for credentials: there are none, and why.
    #[napi]
    pub fn fail_credentials(&self, question: i64, text: String) {
        self.queue.questions.fail(question, text);
    }

    /// Makes a client of `servers`. Without servers the environment variable names them. If they are `provided`, JavaScript is asked
    /// for the credentials.
    #[napi(ts_args_type = "servers: Array<string | ScriptedServer>, options: object, provided: boolean")]
    pub fn open(&self, env: Env, servers: Vec<Source<'_>>, options: Object<'_>, provided: bool) -> Either<Client, Failure> {
        let unhosted = self.unhosted.lock().take();
        // Without a host the core's I/O thread does all I/O.
        if let Some(host) = unhosted.and_then(|drain| Host::start(&env, &drain, &self.queue)) {
            let _ = self.host.set(host);
        }
        let id = self.clients.fetch_add(1, Ordering::Relaxed);
        self.queue.open(&env);
        or_failure(Client::open(&self.queue, id, servers, (options, provided)).inspect_err(|_| self.queue.rest()))
    }

    /// The metrics of all clients.
    #[napi]
    pub fn metrics(&self) -> Metrics {
        Metrics { core: self.queue.metrics() }
    }

    /// Closes every client, and waits until they are closed: the environment ends. By a `crash`, attempts that are open have failed;
    /// one of the main thread ends the workers, too.
    #[napi]
    pub fn close_clients(&self, crash: Option<String>, is_main: bool) {
        exit(&self.queue, crash, is_main);
    }
}

/// The array for results that are no numbers, made when it is first needed.
struct Rich<'a, 'env> {
    env: &'env Env,
    array: &'a mut Option<Array<'env>>,
}

impl<'env> Rich<'_, 'env> {
    fn array(&mut self) -> Result<&mut Array<'env>> {
        Ok(match self.array.take() {
            Some(array) => self.array.insert(array),
            None => self.array.insert(self.env.create_array(0)?),
        })
    }

    fn with<T: ToNapiValue>(&mut self, kind: Kind, number: i64, value: T) -> Result<(Kind, i64, f64)> {
        self.array()?.insert(value)?;
        Ok((kind, number, 0.0))
    }
}

/// What is shown of a client: its servers without credentials, and its prefix.
#[napi(object, object_from_js = false)]
pub struct Shown {
    pub servers: Vec<String>,
    pub prefix: String,
    pub closed: bool,
}

/// See `Client` in lib/client.ts.
#[napi]
pub struct Client {
    pub(crate) core: locktender::Client,
    pub(crate) queue: Arc<Queue>,
    id: u32,
    has_listener: Arc<AtomicBool>,
}

#[napi]
impl Client {
    fn open(
        queue: &Arc<Queue>,
        id: u32,
        servers: Vec<Source<'_>>,
        (options, provided): (Object<'_>, bool),
    ) -> std::result::Result<Self, Error> {
        let dropped = Arc::<AtomicU64>::default();
        let options = client_options(&options)?;
        let (has_listener, app) = (Arc::new(AtomicBool::new(false)), options.app_name().unwrap_or_default());
        let (weak, counter) = (Arc::downgrade(queue), Arc::clone(&dropped));
        let sink = Forward { queue: weak, client: id, app, has_listener: Arc::clone(&has_listener), dropped: counter };
        let builder = locktender::Client::builder().options(options);
        let builder = servers.into_iter().fold(builder, |builder, server| match server {
            Either::A(urls) => builder.urls(urls),
            Either::B(scripted) => builder.server(Arc::clone(&scripted.core)),
        });
        let provider = provided.then(|| Provider { queue: Arc::downgrade(queue), client: id });
        let builder = provider.into_iter().fold(builder, locktender::ClientBuilder::credentials);
        let core = builder.sink(Arc::new(sink)).dropped_events(dropped).build()?;
        queue.enrol(id, core.clone());
        Ok(Self { core, queue: Arc::clone(queue), id, has_listener })
    }

    /// The number that comes with its events.
    #[napi(getter)]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether there are listeners to the events of a normal hold.
    #[napi]
    pub fn hear(&self) {
        self.has_listener.store(true, Ordering::Relaxed);
    }

    /// Emits an event of kind `warning`.
    #[napi]
    pub fn warn(&self, lock_name: Option<String>, message: String) {
        self.core.warn(lock_name.as_deref(), message);
    }

    #[napi]
    pub fn multi_lock(&self, names: Vec<String>, options: Object<'_>) -> Either<Lock, Failure> {
        Lock::make(checked(self.core.multi_lock(names).into_lock(), Some(&options)), &self.queue)
    }

    #[napi]
    pub fn job(&self, name: String, options: Object<'_>) -> Either<Job, Failure> {
        Job::make(self.core.job(name), &options, &self.queue)
    }

    #[napi]
    pub fn cron_job(&self, name: String, options: Object<'_>) -> Either<Job, Failure> {
        Job::make(self.core.cron_job(name), &options, &self.queue)
    }

    #[napi]
    pub fn election(&self, name: String, options: Object<'_>) -> Either<Election, Failure> {
        Election::make(self.core.election(name), &options, &self.queue)
    }

    /// The lock whose acquire adopts the hold of a `handOver` text.
    #[napi]
    pub fn adoption(&self, ticket: String, or_acquire: Option<bool>, options: Object<'_>) -> Either<Lock, Failure> {
        let adoption = self.core.adoption(&ticket);
        let adoption = if let Some(given) = or_acquire { adoption.map(|lock| lock.or_acquire(given)) } else { adoption };
        Lock::make(adoption.and_then(|lock| checked(lock, Some(&options))), &self.queue)
    }

    /// What is shown of it.
    #[napi]
    pub fn shown(&self) -> Shown {
        Shown { servers: self.core.addresses(), prefix: self.core.prefix().to_owned(), closed: self.core.is_closed() }
    }

    #[napi]
    pub fn initialize_quorum(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.initialize_quorum()), |()| Value::Nothing)
    }

    #[napi]
    pub fn check_servers(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.check_servers()), Value::list::<_, ServerReport>)
    }

    #[napi]
    pub fn locks(&self, env: Env, pattern: String, limit: Option<u32>) -> i64 {
        self.queue.call(&env, Ok(self.core.locks(pattern, limit.map(|limit| limit as usize))), Value::list::<_, LockInfo>)
    }

    #[napi]
    pub fn history(&self, env: Env, name: Option<String>, limit: Option<u32>) -> i64 {
        self.queue.call(&env, Ok(self.core.history(name.as_deref(), limit.map(|limit| limit as usize))), Value::list::<_, Grant>)
    }

    #[napi]
    pub fn holds(&self) -> Vec<HoldInfo> {
        self.core.holds().into_iter().map(HoldInfo::from).collect()
    }

    #[napi]
    pub fn metrics(&self) -> Metrics {
        Metrics { core: self.core.metrics() }
    }

    #[napi]
    pub fn close(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.close()), |()| Value::Closed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.queue.strike(self.id);
    }
}
