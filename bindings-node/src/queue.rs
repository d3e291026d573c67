//! The completion queue of one JavaScript environment: the results for the main thread, or for one worker.
//!
//! The thread that completes a call puts its result here. The first result wakes JavaScript, which takes all results that have
//! arrived. So results that come at the same time share one wake-up, which costs more than a call. The wake-up keeps the
//! environment alive only while calls are under way. If Node's own loop reads the answers (see [`crate::host`]), no wake-up is
//! needed: results are taken there. When the environment ends, the queue closes. Locks that are granted later are given back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use locktender::host::sync::Mutex;
use locktender::host::{Driver, EventQueue, Follower};
use locktender::metrics::Metrics;
use locktender::{Call, Cancel, Client, Error, Hold, Loss};
use napi::Env;
use napi::bindgen_prelude::FunctionRef;

use crate::any_hold::AnyHold;
use crate::item::{Item, Value};
use crate::questions::Questions;
use crate::wake::Wake;

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Whether Node's own loop executes the calls of its thread.
    hosted: AtomicBool,
    /// The drivers with something to send, for the host.
    unsent: Mutex<Vec<Driver>>,
    clients: Mutex<HashMap<u32, Client>>,
    /// What clients that are gone have counted. Locked only while `clients` is.
    gone: Mutex<Metrics>,
    /// The holds that JavaScript has not forgotten, by the numbers of the calls that got them.
    holds: Mutex<HashMap<i64, Arc<AnyHold>>>,
    pub(crate) questions: Questions,
    /// The acquires that instrumentations follow.
    pub(crate) follower: Mutex<Follower>,
}

#[derive(Default)]
struct State {
    /// `None` once the environment is gone.
    wake: Option<Wake>,
    items: EventQueue<Item>,
    /// Whether results are taken soon without a wake-up.
    polling: bool,
    /// How many holds are watched whose end has not come out.
    watched: usize,
    /// The calls under way, and how to cancel them.
    pending: HashMap<i64, Cancel>,
    last_id: i64,
}

impl Queue {
    /// `drain` takes the results.
    pub(crate) fn new(drain: FunctionRef<(), ()>) -> Arc<Self> {
        let state = State { wake: Some(Wake::new(drain)), ..State::default() };
        Arc::new(Self { state: Mutex::new(state), ..Self::default() })
    }

    /// Lets other threads wake JavaScript from now on, until there is a [`rest`](Self::rest).
    pub(crate) fn open(&self, env: &Env) {
        self.state.lock().open(env);
    }

    /// Closes the wake-up if no result and no event can come: no client is open, and nothing is under way.
    pub(crate) fn rest(&self) {
        let closed = {
            let mut state = self.state.lock();
            let idle = state.is_idle() && self.clients.lock().values().all(Client::is_closed);
            state.wake.as_mut().filter(|_| idle).and_then(Wake::close)
        };
        drop(closed);
    }

    /// Starts a call, or fails at once; gives the number under which its result will come out.
    pub(crate) fn call<T: Send + 'static>(
        self: &Arc<Self>,
        env: &Env,
        call: Result<Call<T>, Error>,
        value: fn(T) -> Value,
    ) -> i64 {
        let id = self.expect(env);
        let queue = Arc::clone(self);
        let receive = move |result: Result<T, Error>| queue.push(Item::Settled(id, result.map(value)));
        match call {
            Ok(call) => self.keep(id, self.send_off(call, receive)),
            Err(error) => receive(Err(error)),
        }
        id
    }

    /// Lets the end of a hold come out under its own number. This keeps nothing alive.
    pub(crate) fn watch(self: &Arc<Self>, env: &Env, hold: i64, held: &Hold) {
        {
            let mut state = self.state.lock();
            state.open(env);
            state.watched += 1;
        }
        let queue = Arc::clone(self);
        let lost = |(name, loss): (String, Loss)| Error::lost(&name, loss);
        held.ended_of().then(move |ended| queue.push(Item::Ended(hold, ended.ok().flatten().map(lost))));
    }

    /// Sets whether a host executes the calls.
    pub(crate) fn set_hosted(&self, hosted: bool) {
        self.hosted.store(hosted, Ordering::SeqCst);
    }

    /// A single call is sent at once, while JavaScript finishes its work. Of many callers the core sends a part at once, and the host the
    /// rest after it.
    fn send_off<T: Send + 'static>(&self, call: Call<T>, receive: impl FnOnce(Result<T, Error>) + Send + 'static) -> Cancel {
        if !self.hosted.load(Ordering::SeqCst) {
            return call.then(receive);
        }
        let (cancel, driver) = call.then_driven(receive);
        self.has_to_send(driver);
        cancel
    }

    fn has_to_send(&self, driver: Option<Driver>) {
        let mut unsent = self.unsent.lock();
        if let Some(driver) = driver.filter(|driver| unsent.iter().all(|other| other.id() != driver.id())) {
            unsent.push(driver);
        }
    }

    /// The drivers with something to send since the last call.
    pub(crate) fn take_unsent(&self) -> Vec<Driver> {
        std::mem::take(&mut *self.unsent.lock())
    }

    /// Runs `work`, which takes results: no wake-up is needed.
    pub(crate) fn polling(&self, work: impl FnOnce()) {
        self.state.lock().polling = true;
        work();
        let mut state = self.state.lock();
        state.polling = false;
        if let State { wake: Some(wake), items, .. } = &mut *state
            && !items.is_empty()
        {
            wake.call();
        }
    }

    pub(crate) fn has_items(&self) -> bool {
        !self.state.lock().items.is_empty()
    }

    /// A number for a call under way.
    fn expect(&self, env: &Env) -> i64 {
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.pending.insert(id, Cancel::default());
        state.open(env);
        state.keep_alive(env);
        id
    }

    fn keep(&self, id: i64, cancel: Cancel) {
        if let Some(kept) = self.state.lock().pending.get_mut(&id) {
            *kept = cancel;
        }
    }

    /// Puts an item into the queue, on any thread. After the environment's end the item is dropped.
    pub(crate) fn push(&self, item: Item) {
        let mut state = self.state.lock();
        let State { wake, items, polling, .. } = &mut *state;
        let Some(wake) = wake else {
            // Dropping a hold releases it, and that puts its events into this very queue.
            drop(state);
            return item.undo();
        };
        if items.is_empty() && !*polling {
            wake.call();
        }
        items.push(item);
    }

    /// Takes the results that have arrived, in order, up to a limit. Locks that were granted to cancelled calls are given
    /// back.
    pub(crate) fn drain(&self, env: &Env, most: usize) -> Vec<Item> {
        let mut state = self.state.lock();
        let mut items = state.items.take(most);
        state.watched -= items.iter().filter(|item| matches!(item, Item::Ended(..))).count();
        let mut wanted = |item: &mut Item| match item {
            Item::Settled(id, _) => state.pending.remove(id).is_some(),
            Item::Ended(..) | Item::Event(..) | Item::Followed(..) | Item::Asked(..) => true,
        };
        let dropped: Vec<Item> = items.extract_if(.., |item| !wanted(item)).collect();
        state.keep_alive(env);
        drop(state);
        dropped.into_iter().for_each(Item::undo);
        self.rest();
        items
    }

    /// Keeps a hold under the number of the call that got it.
    pub(crate) fn keep_hold(&self, number: i64, hold: AnyHold) {
        self.holds.lock().insert(number, Arc::new(hold));
    }

    pub(crate) fn hold(&self, number: i64) -> Option<Arc<AnyHold>> {
        self.holds.lock().get(&number).cloned()
    }

    /// Forgets a hold that was released.
    pub(crate) fn forget_released(&self, number: i64) -> Option<Arc<AnyHold>> {
        self.hold(number).filter(|held| held.is_released()).inspect(|_| drop(self.forget_hold(number)))
    }

    pub(crate) fn forget_hold(&self, number: i64) -> Option<Arc<AnyHold>> {
        self.holds.lock().remove(&number)
    }

    /// Cancels a call: its result will not come out.
    pub(crate) fn cancel(&self, env: &Env, id: i64) {
        let mut state = self.state.lock();
        let cancel = state.pending.remove(&id);
        state.keep_alive(env);
        drop(state);
        match cancel {
            Some(cancel) if self.hosted.load(Ordering::SeqCst) => self.has_to_send(cancel.cancel_driven()),
            Some(cancel) => cancel.cancel(),
            None => (),
        }
        self.rest();
    }

    /// Notes a client, to be closed when the environment ends.
    pub(crate) fn enrol(&self, id: u32, client: Client) {
        self.clients.lock().insert(id, client);
    }

    pub(crate) fn strike(&self, id: u32) {
        self.questions.forget(|client| client == id);
        let Some(gone) = self.clients.lock().get(&id).map(Client::metrics) else { return };
        // At once, so that no reading finds it in neither or in both.
        let mut clients = self.clients.lock();
        self.gone.lock().keep(gone);
        let struck = clients.remove(&id);
        drop(clients);
        drop(struck);
        self.rest();
    }

    /// The metrics of all clients, also of those that are gone.
    pub(crate) fn metrics(&self) -> Metrics {
        let clients = self.clients.lock();
        let gone = self.gone.lock().clone();
        let alive: Vec<_> = clients.values().cloned().collect();
        drop(clients);
        Metrics::merged(std::iter::once(gone).chain(alive.iter().map(Client::metrics)))
    }

    /// The holds that JavaScript has not forgotten.
    pub(crate) fn holds(&self) -> Vec<Arc<AnyHold>> {
        self.holds.lock().values().cloned().collect()
    }

    /// The clients, to be closed.
    pub(crate) fn take_clients(&self) -> Vec<Client> {
        std::mem::take(&mut *self.clients.lock()).into_values().collect()
    }

    /// The end of the environment: no more results come out.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        let wake = state.wake.take();
        let items = state.items.take(usize::MAX);
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        self.questions.forget(|_| true);
        let holds = std::mem::take(&mut *self.holds.lock());
        pending.into_values().for_each(Cancel::cancel);
        items.into_iter().for_each(Item::undo);
        drop((wake, holds));
    }
}

impl State {
    /// What arrived while nobody could be woken comes out, too.
    fn open(&mut self, env: &Env) {
        if let Some(wake) = &mut self.wake
            && wake.open(env)
            && !self.items.is_empty()
        {
            wake.call();
        }
    }

    /// Keeps the environment alive while calls are under way, and no longer.
    fn keep_alive(&mut self, env: &Env) {
        let wanted = !self.pending.is_empty();
        self.wake.iter_mut().for_each(|wake| wake.keep_alive(env, wanted));
    }

    fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.items.is_empty() && self.watched == 0
    }
}
