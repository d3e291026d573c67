//! The environment's queue and its clients.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use locktender::Error;
use locktender::server::Server;
use napi::bindgen_prelude::{Array, ClassInstance, Either, Function};
use napi::{Env, Result};
use napi_derive::napi;

use crate::error::Failure;
use crate::event::{Forward, LockEvent};
use crate::host::Host;
use crate::held::{Held, LockInfo, Release};
use crate::lock::Lock;
use crate::options::{ClientOptions, LockOptions};
use crate::queue::{Item, Queue, Value};
use crate::report::ServerReport;
use crate::scripted::ScriptedServer;

/// A URL, a text with several, or a scripted server.
type Source<'env> = Either<String, ClassInstance<'env, ScriptedServer>>;

/// What is in the places of a triple that `drain` gives: `[kind, number, value]`.
#[napi]
pub enum Kind {
    /// A call ended well: its number and result.
    Resolved,
    /// A call failed: its number and a `Failure`.
    Rejected,
    /// The hold that is watched under the number ended: by a `Failure`, or `null` without a loss.
    Ended,
    /// A `LockEvent` of the client with the number.
    Event,
}

/// Where results come out; one for each environment.
#[napi]
pub struct CompletionQueue {
    queue: Arc<Queue>,
    clients: AtomicU32,
    host: Option<Rc<Host>>,
}

#[napi]
impl CompletionQueue {
    /// `wake` is called when something is to be drained. `hosted`: this is Node, whose own loop can do the I/O.
    #[napi(constructor)]
    pub fn new(env: Env, wake: Function<'_, (), ()>, hosted: bool) -> Result<Self> {
        let queue = Queue::new(&env, &wake)?;
        let host = if hosted { Host::new(&env, &wake, &queue) } else { None };
        Ok(Self { queue, clients: AtomicU32::new(0), host })
    }

    /// Takes out all that has come together: triples of kind, number and value, in one flat array.
    #[napi]
    pub fn drain<'env>(&self, env: &'env Env) -> Result<Array<'env>> {
        let items = self.queue.drain(env);
        let mut out = env.create_array(0)?;
        for item in items {
            self.put(&mut out, item)?;
        }
        Ok(out)
    }

    fn put(&self, out: &mut Array<'_>, item: Item) -> Result<()> {
        match item {
            Item::Settled(id, Ok(value)) => self.put_value(head(out, Kind::Resolved, id)?, value),
            Item::Settled(id, Err(error)) => head(out, Kind::Rejected, id)?.insert(Failure::from(error)),
            Item::Ended(id, loss) => head(out, Kind::Ended, id)?.insert(loss.map(Failure::from)),
            Item::Garbage(_) => Ok(()),
            Item::Opened(line) => {
                if let Some(host) = &self.host {
                    host.watch(line);
                }
                Ok(())
            }
            Item::Event(client, event) => head(out, Kind::Event, client.into())?.insert(LockEvent::from(*event)),
        }
    }

    fn put_value(&self, out: &mut Array<'_>, value: Value) -> Result<()> {
        match value {
            Value::Nothing => out.insert(()),
            Value::Held(held) => out.insert(Held::new(*held, &self.queue)),
            Value::Released(release) => out.insert(Release::from(release)),
            Value::Info(info) => out.insert(LockInfo::from(info)),
            Value::Reports(reports) => out.insert(reports.into_iter().map(ServerReport::from).collect::<Vec<_>>()),
        }
    }

    /// Cancels a call: its result will not come out.
    #[napi]
    pub fn cancel(&self, env: Env, id: i64) {
        self.queue.cancel(&env, id);
    }

    /// Makes a client of `servers`, or without any of those that the environment variable names.
    #[napi(ts_args_type = "servers: Array<string | ScriptedServer>, options: ClientOptions")]
    pub fn open(&self, servers: Vec<Source<'_>>, options: ClientOptions) -> Either<Client, Failure> {
        let id = self.clients.fetch_add(1, Ordering::Relaxed);
        match Client::open(&self.queue, id, servers, options) {
            Ok(client) => Either::A(client),
            Err(error) => Either::B(error.into()),
        }
    }

    /// Closes every client, and waits for it: the environment ends.
    #[napi]
    pub fn close_clients(&self) {
        self.queue.close_clients();
    }
}

fn head<'a, 'env>(out: &'a mut Array<'env>, kind: Kind, id: i64) -> Result<&'a mut Array<'env>> {
    out.insert(kind as i32)?;
    out.insert(id)?;
    Ok(out)
}

/// See `Client` in lib/client.ts.
#[napi]
pub struct Client {
    core: locktender::Client,
    queue: Arc<Queue>,
    id: u32,
    heard: Arc<AtomicBool>,
}

#[napi]
impl Client {
    fn open(queue: &Arc<Queue>, id: u32, servers: Vec<Source<'_>>, options: ClientOptions) -> std::result::Result<Self, Error> {
        let heard = Arc::new(AtomicBool::new(false));
        let sink = Forward { queue: Arc::downgrade(queue), client: id, heard: Arc::clone(&heard) };
        let builder = locktender::Client::builder().options(options.over(locktender::ClientOptions::default())?);
        let builder = servers.into_iter().fold(builder, |builder, server| match server {
            Either::A(urls) => builder.urls(&urls),
            Either::B(scripted) => builder.server(Arc::clone(&scripted.core) as Arc<dyn Server>),
        });
        let core = builder.sink(Arc::new(sink)).build()?;
        queue.enrol(id, core.clone());
        Ok(Self { core, queue: Arc::clone(queue), id, heard })
    }

    /// The number that comes with its events.
    #[napi(getter)]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether somebody listens to the events of normal life.
    #[napi]
    pub fn hear(&self, heard: bool) {
        self.heard.store(heard, Ordering::Relaxed);
    }

    #[napi]
    pub fn lock(&self, name: String, options: LockOptions) -> Either<Lock, Failure> {
        Lock::make(Ok(self.core.lock(name)), &options, &self.queue)
    }

    /// The lock whose acquire takes over what `handOver` gave.
    #[napi]
    pub fn adoption(&self, ticket: String, options: LockOptions) -> Either<Lock, Failure> {
        Lock::make(self.core.adoption(&ticket), &options, &self.queue)
    }

    #[napi]
    pub fn initialize_quorum(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.initialize_quorum()), |()| Value::Nothing)
    }

    #[napi]
    pub fn check(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.check()), Value::Reports)
    }

    #[napi]
    pub fn close(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.close()), |()| Value::Nothing)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.queue.strike(self.id);
    }
}
