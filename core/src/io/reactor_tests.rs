//! The reactor: one thread drives, the others are parked, and no answer stays in a socket.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use mio::Interest;
use mio::net::UdpSocket;

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// A handler with a socket, into which the test sends.
struct Plug {
    socket: UdpSocket,
    busy: AtomicBool,
    due: AtomicU64,
    polled: Mutex<Vec<ThreadId>>,
    panics: AtomicBool,
    /// The number of times that the I/O thread has asked whether it is busy.
    asked: AtomicUsize,
}

impl Plug {
    fn new(reactor: &Reactor) -> Arc<Self> {
        reactor.add(|token| {
            let mut socket = UdpSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
            reactor.registry().register(&mut socket, token, Interest::READABLE).unwrap();
            Arc::new(Self {
                socket,
                busy: AtomicBool::new(true),
                due: AtomicU64::new(u64::MAX),
                polled: Mutex::default(),
                panics: AtomicBool::new(false),
                asked: AtomicUsize::new(0),
            })
        })
    }

    /// Makes the socket readable.
    fn poke(&self) {
        let address = self.socket.local_addr().unwrap();
        std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"!", address).unwrap();
    }

    fn set_due(&self, reactor: &Reactor, at: Tick) {
        self.due.store(at.as_micros(), Ordering::SeqCst);
        reactor.is_due(at);
    }

    fn polled(&self) -> usize {
        self.polled.lock().len()
    }
}

impl Handler for Plug {
    fn notice(&self, _: &mio::event::Event) {}

    fn poll(&self, _: &Io) {
        self.due.store(u64::MAX, Ordering::SeqCst);
        while self.socket.recv(&mut [0; 8]).is_ok() {}
        self.polled.lock().push(thread::current().id());
        assert!(!self.panics.load(Ordering::SeqCst), "the test asked for it");
    }

    fn due(&self) -> Tick {
        Tick::from_micros(self.due.load(Ordering::SeqCst))
    }

    fn is_busy(&self) -> bool {
        if thread::current().name() == Some("locktender-io") {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        self.busy.load(Ordering::SeqCst)
    }
}

fn reactor() -> (Arc<Reactor>, Arc<Plug>) {
    let reactor = Reactor::new(Runtime::current().unwrap()).unwrap();
    let plug = Plug::new(&reactor);
    (reactor, plug)
}

/// A thread that waits in the reactor until its flag is set.
struct Waiter {
    ended: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Waiter {
    fn new(reactor: &Arc<Reactor>) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (reactor, flag) = (Arc::clone(reactor), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            while !flag.load(Ordering::SeqCst) {
                reactor.wait(Instant::now() + LONG, || flag.load(Ordering::SeqCst));
            }
        });
        Self { ended, thread }
    }

    fn id(&self) -> ThreadId {
        self.thread.thread().id()
    }

    /// Gives the thread its result, and waits until the thread has gone.
    fn end(self, reactor: &Reactor) {
        self.ended.store(true, Ordering::SeqCst);
        reactor.wake(self.thread.thread());
        self.thread.join().unwrap();
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::yield_now();
    }
}

fn driver(reactor: &Reactor) -> Option<ThreadId> {
    reactor.waiting.lock().driver
}

#[test]
fn one_thread_drives_for_all_and_another_takes_over_when_it_leaves() {
    let (reactor, plug) = reactor();
    let mut waiters: Vec<Waiter> = Vec::new();
    for count in 1..=3 {
        waiters.push(Waiter::new(&reactor));
        until("it waits", || {
            let waiting = reactor.waiting.lock();
            usize::from(waiting.driver.is_some()) + waiting.parked.len() == count
        });
    }
    while !waiters.is_empty() {
        let mut at = None;
        until("a waiter drives", || {
            at = waiters.iter().position(|waiter| Some(waiter.id()) == driver(&reactor));
            at.is_some()
        });
        let leaves = waiters.remove(at.unwrap());
        let id = leaves.id();
        let before = plug.polled();
        plug.poke();
        until("the driver polls what is readable", || plug.polled() > before);
        assert_eq!(plug.polled.lock().last(), Some(&id));
        leaves.end(&reactor);
    }
    until("nobody drives", || driver(&reactor).is_none());
}

#[test]
fn a_parked_thread_is_woken_by_its_own_result_alone() {
    let (reactor, _plug) = reactor();
    let first = Waiter::new(&reactor);
    until("it drives", || driver(&reactor) == Some(first.id()));
    let second = Waiter::new(&reactor);
    until("it is parked", || reactor.waiting.lock().parked.len() == 1);
    second.end(&reactor);
    assert_eq!(driver(&reactor), Some(first.id()));
    assert!(reactor.waiting.lock().parked.is_empty());
    first.end(&reactor);
}

#[test]
fn a_handler_is_polled_when_it_is_due_and_a_sleeping_driver_wakes_for_an_earlier_time() {
    let (reactor, plug) = reactor();
    let waiter = Waiter::new(&reactor);
    until("the driver sleeps", || reactor.asleep_until.load(Ordering::SeqCst) != 0);
    let at = Tick::now().after(Duration::from_millis(5));
    plug.set_due(&reactor, at);
    until("it is polled", || plug.polled() > 0);
    assert!(Tick::now() >= at);
    waiter.end(&reactor);
}

#[test]
fn an_answer_that_nobody_waits_for_any_more_is_read_by_the_io_thread() {
    let (reactor, plug) = reactor();
    plug.poke();
    reactor.promote_next();
    until("a thread reads it", || plug.polled() > 0);
    plug.busy.store(false, Ordering::SeqCst);
    assert_ne!(plug.polled.lock()[0], thread::current().id());
}

#[test]
fn the_io_thread_polls_once_in_a_pause_however_often_it_was_to_poll_earlier() {
    let (reactor, plug) = reactor();
    reactor.count_watch(true);
    let begun = Instant::now();
    for earlier in 1..=20 {
        plug.due.store(Tick::now().after(POLL_PAUSE_ON_LOOPS - Duration::from_millis(earlier)).as_micros(), Ordering::SeqCst);
        reactor.promote_next();
    }
    let pauses = |count: u32| POLL_PAUSE_ON_LOOPS * count;
    until("it polls", || plug.polled() > 0 && begun.elapsed() > pauses(6));
    let polls = plug.asked.load(Ordering::SeqCst) / 2;
    plug.busy.store(false, Ordering::SeqCst);
    let most = begun.elapsed().div_duration_f64(POLL_PAUSE_ON_LOOPS).ceil() as usize + 1;
    assert!(polls >= 1 && polls <= most, "{polls} polls, at most {most} were expected");
}

#[test]
fn a_thread_that_nothing_can_be_driven_for_is_parked_until_its_time_is_over() {
    let (reactor, plug) = reactor();
    plug.busy.store(false, Ordering::SeqCst);
    let begun = Instant::now();
    reactor.wait(begun + Duration::from_millis(20), || false);
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert!(reactor.waiting.lock().parked.is_empty() && driver(&reactor).is_none());
    assert_eq!(plug.polled(), 0);
}

#[test]
fn a_driver_that_panics_leaves_its_place_to_another() {
    let (reactor, plug) = reactor();
    plug.panics.store(true, Ordering::SeqCst);
    plug.poke();
    let panicked = catch_unwind(AssertUnwindSafe(|| reactor.wait(Instant::now() + LONG, || false)));
    assert!(panicked.is_err());
    assert_eq!(driver(&reactor), None);
    plug.panics.store(false, Ordering::SeqCst);
    let (sender, received) = mpsc::channel();
    let (next, ended) = (Arc::clone(&reactor), Arc::clone(&plug));
    let thread = thread::spawn(move || {
        let before = ended.polled();
        ended.poke();
        next.wait(Instant::now() + LONG, || ended.polled() > before);
        sender.send(()).unwrap();
    });
    received.recv_timeout(LONG).expect("another thread drives");
    thread.join().unwrap();
}

#[test]
fn a_reactor_is_over_with_its_last_handler() {
    let (reactor, plug) = reactor();
    assert!(!reactor.is_over());
    drop(plug);
    assert!(reactor.is_over());
}
