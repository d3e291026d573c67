//! The successor of a second connection: it listens before it takes the place of the present one.

use std::sync::atomic::AtomicBool;

use tokio::runtime::Builder;

use super::*;
use crate::credentials::{Credentials, SharedProvider};
use crate::options::ClientOptions;
use crate::server::redis::transport::provided::Provided;
use crate::server::redis::url::Target;
use crate::server::{Listener, Notice};

const START: Tick = Tick::from_micros(1_000_000);
const GREETED: &str = "+OK\r\n+OK\r\n";
const SUBSCRIBED: &str = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*3\r\n$10\r\nssubscribe\r\n$4\r\nnews\r\n:1\r\n";

struct Test {
    provided: Arc<Provided>,
    second: Second,
    listener: ChannelListener,
    out: Vec<Effect>,
    _kept: Listener,
}

impl Test {
    /// A second connection that listens, by the password `one`.
    fn listening() -> Self {
        let provider = SharedProvider::new(|| async { Ok::<_, std::io::Error>(Credentials::new("never")) });
        let runtime = Builder::new_current_thread().build().unwrap();
        let provided = Provided::new(&provider, "redis://localhost", Duration::from_secs(1), runtime.handle());
        let settings = Arc::new(Settings {
            target: Target::parse("redis://localhost", &ClientOptions::default()).unwrap(),
            name: "locktender".into(),
            quorum_config: None,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            replicas: None,
            answered: AtomicBool::default(),
            has_no_transactions: AtomicBool::default(),
            provided: Some(Arc::clone(&provided)),
            in_cluster: false,
            callers_runtime: true,
        });
        let kept: Listener = Arc::new(|_| ());
        let (listener, mut out) = (ChannelListener::new("news", &kept), Vec::new());
        let second = Second::open(&settings, START, &mut out);
        let mut test = Self { provided, second, listener, out, _kept: kept };
        test.give("one");
        test.subscribe(Role::Listening);
        assert_eq!(test.shown(), ["Open(Listening)", "Tell(Listening)"]);
        test
    }

    fn give(&mut self, password: &str) {
        self.provided.take(Ok(Credentials::new(password)), START);
        self.second.renew(START, &mut self.out);
    }

    fn says(&mut self, role: Role, bytes: &str) -> Option<Ending> {
        let buffers = self.second.buffers(role).unwrap();
        buffers.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
        self.second.read((role, bytes.len()), &mut self.listener, START, &mut self.out)
    }

    fn subscribe(&mut self, role: Role) {
        assert!(self.second.opened(role, 0));
        assert!(self.says(role, GREETED).is_none());
        assert!(self.says(role, SUBSCRIBED).is_none());
    }

    fn shown(&mut self) -> Vec<String> {
        self.out.drain(..).map(|effect| format!("{effect:?}")).collect()
    }
}

#[test]
fn a_successor_listens_first_and_its_listener_looks_again() {
    let mut test = Test::listening();
    test.give("two");
    assert_eq!(test.shown(), ["Open(Successor)"]);
    // Meanwhile a message comes on the present one.
    assert!(test.says(Role::Listening, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n").is_none());
    assert_eq!(test.shown(), [format!("Tell({:?})", Notice::Message("x".into()))]);
    test.subscribe(Role::Successor);
    assert_eq!(test.shown(), ["Tell(Listening)", "Succeed"]);
    assert!(test.second.buffers(Role::Successor).is_none());
    test.second.renew(START, &mut test.out);
    assert_eq!(test.shown(), [""; 0], "the server knows the newest credentials");
}

#[test]
fn newer_credentials_that_come_meanwhile_have_a_successor_of_their_own() {
    let mut test = Test::listening();
    test.give("two");
    assert!(test.second.opened(Role::Successor, 0));
    test.give("three");
    assert!(test.says(Role::Successor, GREETED).is_none());
    assert!(test.says(Role::Successor, SUBSCRIBED).is_none());
    assert_eq!(test.shown(), ["Open(Successor)", "Tell(Listening)", "Succeed", "Open(Successor)"]);
}

#[test]
fn a_successor_that_fails_changes_nothing_and_comes_again_later() {
    let mut test = Test::listening();
    test.give("two");
    assert!(test.second.opened(Role::Successor, 0));
    assert!(test.says(Role::Successor, "-WRONGPASS no\r\n-NOAUTH\r\n").is_none());
    assert_eq!(test.shown(), ["Open(Successor)", "Drop(Successor)"]);
    assert!(test.second.buffers(Role::Listening).is_some());
    assert_eq!(test.second.wake_at(), START.after(PAUSE));
    assert!(test.second.wake(&test.listener, START.after(PAUSE), &mut test.out).is_none());
    assert_eq!(test.shown(), ["Open(Successor)"]);
    // The end of the present one ends both.
    assert!(test.second.closed(Role::Listening, None, START, &mut test.out).is_some());
    test.second.give_up(&mut test.out);
    assert_eq!(test.shown(), ["Drop(Listening)", "Drop(Successor)"]);
}
