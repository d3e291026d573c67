//! A client whose user's code does something in one place, and another client that has nothing to do with it.

use std::os::unix::process::CommandExt;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use locktender::{Client, Code, EventKind, Hold, LockEvent, LossReason, Outcome, Sink};
use locktender_tests::{Events, PATIENCE, RealServer, TTL, eventually};

use crate::place::{OwnServer, Place};
use crate::subscriber;

/// How a process ends that the code ended.
pub const EXIT_CODE: i32 = 7;

/// What the code does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Every time.
    Panics,
    Blocks,
    Locks,
    SendsOff,
    Closes,
    Drops,
    /// Runs a program, which begins as a copy of the process.
    Forks,
    /// Ends the process.
    Exits,
}

pub struct Scene {
    pub server: Arc<RealServer>,
    pub place: Place,
    act: Act,
    /// Of the lock, and the beginning of others'.
    pub name: String,
    client: OnceLock<Client>,
    /// What the client reported.
    pub events: Mutex<Vec<LockEvent>>,
    calls: AtomicUsize,
    /// A hold of the client, for the code to drop.
    spare: Mutex<Option<Hold>>,
    /// What the code got when it asked for a lock.
    answer: Mutex<Option<Result<(), Code>>>,
    /// How many connections a program had that the code ran.
    inherited: Mutex<Option<String>>,
}

impl Scene {
    pub fn new(server: &Arc<RealServer>, place: Place, act: Act) -> Arc<Self> {
        let scene = Arc::new(Self {
            server: Arc::clone(server),
            place,
            act,
            name: format!("{place:?}:{act:?}"),
            client: OnceLock::new(),
            events: Mutex::default(),
            calls: AtomicUsize::new(0),
            spare: Mutex::default(),
            answer: Mutex::default(),
            inherited: Mutex::default(),
        });
        let builder = if place == Place::Server {
            Client::builder().server(Arc::new(OwnServer::new(&scene)))
        } else {
            Client::builder().url(server.url())
        };
        let client = builder.sink(Arc::new(SceneSink(Arc::clone(&scene)))).build().unwrap();
        subscriber::subscribe(&scene);
        let spare = client.lock(scene.named("spare")).acquire_blocking().unwrap();
        *scene.spare.lock().unwrap() = Some(spare);
        scene.client.set(client).unwrap();
        scene
    }

    pub fn client(&self) -> &Client {
        self.client.get().unwrap()
    }

    /// The name of another lock of this scene.
    pub fn named(&self, what: &str) -> String {
        format!("{}:{what}", self.name)
    }

    /// The user's code.
    pub fn plays(self: &Arc<Self>) {
        let first = self.calls.fetch_add(1, SeqCst) == 0;
        match self.act {
            Act::Panics => panic!("on purpose: {}", self.name),
            _ if !first => (),
            Act::Blocks => thread::sleep(Duration::from_secs(1)),
            Act::Locks => self.answered(self.client().lock(self.named("asked")).acquire_blocking()),
            Act::SendsOff => {
                let scene = Arc::clone(self);
                drop(self.client().lock(self.named("asked")).acquire().then(move |held| scene.answered(held)));
            }
            Act::Closes => {
                let _ = self.client().close_blocking();
            }
            Act::Drops => drop(self.spare.lock().unwrap().take()),
            Act::Forks => self.forks(),
            Act::Exits => process::exit(EXIT_CODE),
        }
    }

    /// Notes how many connections the program inherited.
    fn forks(&self) {
        let mut program = Command::new("/bin/sh");
        // A program of another user is started by a copy of the process, also where it is the same user.
        program.uid(rustix::process::getuid().as_raw()).args(["-c", "ls -l /proc/self/fd | grep -c socket"]);
        let output = program.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap().stdout;
        *self.inherited.lock().unwrap() = Some(String::from_utf8(output).unwrap().trim().to_owned());
    }

    fn answered(&self, held: Result<Hold, locktender::Error>) {
        *self.answer.lock().unwrap() = Some(held.map(drop).map_err(|error| error.code()));
    }

    pub fn was_played(&self) {
        eventually(&format!("{} was called", self.name), PATIENCE, || self.calls.load(SeqCst) > 0);
    }

    pub fn closes(&self) -> bool {
        self.act == Act::Closes
    }

    pub fn panics(&self) -> bool {
        self.act == Act::Panics
    }

    fn count(&self, kind: EventKind, lock: &str) -> usize {
        self.events.lock().unwrap().iter().filter(|event| event.kind == kind && event.lock_name.as_deref() == Some(lock)).count()
    }

    fn warnings(&self) -> usize {
        let is_ours = |event: &&LockEvent| event.message.as_deref().is_some_and(|text| text.contains(&self.purpose()));
        self.events.lock().unwrap().iter().filter(is_ours).count()
    }

    fn purpose(&self) -> String {
        format!("panicked: on purpose: {}", self.name)
    }

    /// What the code did has had its effect, and nothing else has changed.
    pub fn is_over(&self) {
        let (other, events) = Events::of(Client::builder().url(self.server.url()));
        let free = |name: String| {
            // All places play at once: on a busy machine a question may be answered too late.
            eventually(&format!("{name} is free"), PATIENCE, || matches!(other.lock(&*name).inspect_blocking(), Ok(None)));
        };
        match self.act {
            Act::Panics => self.reports(),
            Act::Locks | Act::SendsOff => {
                eventually("the code was answered", PATIENCE, || self.answer.lock().unwrap().is_some());
                let refused = self.act == Act::Locks && self.place.must_not_wait();
                let expected = if refused { Err(Code::InvalidArgument) } else { Ok(()) };
                assert_eq!(*self.answer.lock().unwrap(), Some(expected), "{}", self.name);
                free(self.named("asked"));
            }
            Act::Closes | Act::Drops => free(self.named("spare")),
            Act::Forks => {
                eventually("the program ended", PATIENCE, || self.inherited.lock().unwrap().is_some());
                assert_eq!(self.inherited.lock().unwrap().as_deref(), Some("0"), "{}", self.name);
            }
            Act::Blocks | Act::Exits => (),
        }
        let lives = [other.lock(self.named("lost")), other.lock(self.named("kept"))];
        let [lost, kept] = lives.map(|lock| lock.ttl(TTL).acquire_blocking().unwrap());
        if !self.closes() {
            let held = self.client().lock(self.named("held")).ttl(TTL).acquire_blocking().unwrap();
            eventually("the client renews", PATIENCE, || self.count(EventKind::Renewed, held.name()) > 0);
            assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released, "{}", self.name);
        }
        events.at_least(EventKind::Renewed, 2);
        assert!(self.server.command(&["DEL", lost.name()]).int() == 1 && kept.is_valid(), "{}", self.name);
        assert_eq!(lost.lost().blocking().unwrap().reason, LossReason::Missing, "{}", self.name);
        assert_eq!(kept.release().blocking().unwrap().outcome, Outcome::Released, "{}", self.name);
    }

    /// The other listeners for events got the panic, and once that of a sink or a subscriber that panics every time.
    fn reports(&self) {
        let reports = || match self.place {
            Place::Body | Place::AsyncBody => 1, // the user's own thread reported
            Place::Subscriber | Place::SubscriberOnBeats | Place::Loss | Place::Server => self.warnings(),
            Place::Sink | Place::SinkOnBeats | Place::Callback | Place::Waker => subscriber::count_of(&self.purpose()),
        };
        eventually(&format!("{}: the panic is reported", self.name), PATIENCE, || reports() > 0);
        if self.place != Place::Server {
            assert_eq!(reports(), 1, "{}", self.name);
        }
    }
}

/// The sink of the scene's client.
struct SceneSink(Arc<Scene>);

impl Sink for SceneSink {
    fn event(&self, event: &LockEvent) {
        self.0.events.lock().unwrap().push(event.clone());
        let kind = match self.0.place {
            Place::Sink => EventKind::Acquired,
            Place::SinkOnBeats => EventKind::Renewed,
            _ => return,
        };
        if event.lock_name.as_deref() == Some(&*self.0.name) && event.kind == kind {
            self.0.plays();
        }
    }
}
