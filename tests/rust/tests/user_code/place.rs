//! Places: where the core calls code of a user.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use locktender::op::{LockOp, Op, Verb};
use locktender::server::{Completion, Listener, Request, Server};
use locktender::testing::MemoryServer;
use locktender_tests::TTL;

use crate::scene::Scene;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Called by the thread that acquires.
    Sink,
    /// Called by the I/O thread.
    SinkOnBeats,
    Subscriber,
    SubscriberOnBeats,
    /// `on_lost`.
    Loss,
    /// `Call::then`.
    Callback,
    Waker,
    Body,
    AsyncBody,
    /// A server of the user's own.
    Server,
}

impl Place {
    pub const ALL: [Self; 10] = [
        Self::Sink,
        Self::SinkOnBeats,
        Self::Subscriber,
        Self::SubscriberOnBeats,
        Self::Loss,
        Self::Callback,
        Self::Waker,
        Self::Body,
        Self::AsyncBody,
        Self::Server,
    ];

    /// Whether a wait there would be one for the very thread that waits.
    pub fn must_not_wait(self) -> bool {
        !matches!(self, Self::Body | Self::AsyncBody | Self::Server)
    }

    /// Has the core call the code.
    pub fn calls(self, scene: &Arc<Scene>) {
        let lock = scene.client().lock(&*scene.name).ttl(TTL);
        let code = Arc::clone(scene);
        match self {
            Self::Sink | Self::SinkOnBeats | Self::Subscriber | Self::SubscriberOnBeats | Self::Server => {
                // It may be closed by the code.
                let held = lock.acquire_blocking();
                scene.was_played();
                drop(held);
            }
            Self::Loss => {
                let held = lock.acquire_blocking().unwrap();
                held.on_lost(move |_| code.plays());
                scene.server.command(&["DEL", &scene.name]);
                scene.was_played();
                assert!(!held.is_valid());
            }
            Self::Callback => {
                drop(lock.acquire().then(move |held| {
                    code.plays();
                    drop(held);
                }));
                scene.was_played();
            }
            Self::Waker => {
                let held = lock.acquire_blocking().unwrap();
                // It can't end before it has the waker: the lock is held.
                let mut call = lock.acquire();
                let waker = Waker::from(Arc::new(Plays(code)));
                let polled = Future::poll(std::pin::Pin::new(&mut call), &mut Context::from_waker(&waker));
                assert!(matches!(polled, Poll::Pending));
                held.release_blocking().unwrap();
                scene.was_played();
                drop(call);
            }
            Self::Body => own_panic(scene, || drop(lock.with_blocking(|_| played(&code)))),
            Self::AsyncBody => own_panic(scene, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                drop(runtime.block_on(lock.with(async |_| played(&code))));
            }),
        }
    }
}

fn played(code: &Arc<Scene>) -> Result<(), locktender::Error> {
    code.plays();
    Ok(())
}

/// The code runs on its caller's thread, and its panic is the caller's.
fn own_panic(scene: &Arc<Scene>, run: impl FnOnce()) {
    assert_eq!(catch_unwind(AssertUnwindSafe(run)).is_err(), scene.panics());
}

struct Plays(Arc<Scene>);

impl Wake for Plays {
    fn wake(self: Arc<Self>) {
        self.0.plays();
    }
}

/// A server in memory that does something when the scene's lock is asked for.
pub struct OwnServer {
    memory: Arc<MemoryServer>,
    scene: Weak<Scene>,
}

impl OwnServer {
    pub fn new(scene: &Arc<Scene>) -> Self {
        Self { memory: MemoryServer::named(&scene.name), scene: Arc::downgrade(scene) }
    }
}

impl Server for OwnServer {
    fn address(&self) -> &str {
        self.memory.address()
    }

    fn submit(&self, request: Request, completion: Completion) {
        if let Op::Lock(LockOp { keys, verb: Verb::Acquire { .. }, .. }) = &request.op
            && let Some(scene) = self.scene.upgrade().filter(|scene| scene.name == keys.name())
        {
            scene.plays();
        }
        self.memory.submit(request, completion);
    }

    fn listen(&self, channel: &str, listener: Listener) -> bool {
        self.memory.listen(channel, listener)
    }
}
