//! The reactor task over a socket whose other end the test has.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use super::*;
use crate::io::reactor::LazyReactor;
use crate::io::runtime::Runtime;
use crate::op::{Answer, Verdict};
use crate::options::ClientOptions;
use crate::server::redis::connection::staged::{HANDSHAKE, release, released};
use crate::server::{Completion, Request};

const LONG: Duration = Duration::from_secs(60);

/// The server's end.
struct Peer(BufReader<TcpStream>);

impl Peer {
    /// The next connection, after its handshake.
    fn accept(listener: &TcpListener) -> Self {
        let mut peer = Self(BufReader::new(listener.accept().unwrap().0));
        (0..6).for_each(|_| _ = peer.command());
        peer.answer(HANDSHAKE);
        peer
    }

    fn number(&mut self) -> usize {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line[1..].trim_end().parse().unwrap()
    }

    /// The words of the next command.
    fn command(&mut self) -> Vec<String> {
        let words = self.number();
        let mut word = || {
            let mut bytes = vec![0; self.number() + 2];
            self.0.read_exact(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..bytes.len() - 2]).into_owned()
        };
        (0..words).map(|_| word()).collect()
    }

    fn answer(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Answers so many releases, after each is there.
    fn release(&mut self, count: usize) {
        for _ in 0..count {
            assert!(self.command()[0].starts_with("EVAL"));
            self.answer(released());
        }
    }
}

fn connection() -> (Arc<Reactor>, Arc<ReactorTask>, TcpListener) {
    let (reactor, listener) = (LazyReactor::default().get().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let settings = Arc::new(Settings::new(&url, &ClientOptions::default(), LONG, None).unwrap());
    let (primary, runtime) = (Arc::new(Primary::of(None, |_| ())), Runtime::current().unwrap());
    let task = ReactorTask::new(&settings, &primary, runtime.handle(), &reactor);
    (reactor, task, listener)
}

fn submit(task: &ReactorTask, owner: &str) -> Receiver<Answer> {
    let (sender, received) = channel();
    let (reactor, thread) = (Arc::clone(&task.reactor), thread::current());
    let completion = Completion::new(move |answer| {
        sender.send(answer).unwrap();
        reactor.wake(&thread);
    });
    let request = Request::new(release(owner, None), Tick::now().after(LONG)).by(&Io::Threads(None));
    task.submit(InFlight::new(request, completion));
    received
}

/// Waits in the reactor for an answer.
fn wait(reactor: &Arc<Reactor>, received: &Receiver<Answer>) -> Answer {
    let answer = std::cell::RefCell::new(None);
    reactor.wait(Instant::now() + LONG, || {
        let mut answer = answer.borrow_mut();
        *answer = answer.take().or_else(|| received.try_recv().ok());
        answer.is_some()
    });
    answer.into_inner().unwrap()
}

#[test]
fn one_waiting_thread_reads_what_others_wait_for_too() {
    let (reactor, task, listener) = connection();
    let server = thread::spawn(move || Peer::accept(&listener).release(8));
    let received: Vec<_> = (0..8).map(|owner| submit(&task, &owner.to_string())).collect();
    assert_eq!(wait(&reactor, &received[7]).unwrap().verdict, Verdict::Ok);
    assert!(received[..7].iter().all(|received| received.try_recv().unwrap().is_ok()));
    server.join().unwrap();
}

#[test]
fn what_the_socket_has_no_room_for_is_written_when_it_has() {
    const MANY: usize = 2_000;
    let (reactor, task, listener) = connection();
    let (sender, may_read) = channel();
    let server = thread::spawn(move || {
        let mut peer = Peer::accept(&listener);
        peer.release(1);
        may_read.recv().unwrap();
        peer.release(MANY);
    });
    wait(&reactor, &submit(&task, "first")).unwrap();
    let owner = "o".repeat(8 * 1024);
    let received: Vec<_> = (0..MANY).map(|_| submit(&task, &owner)).collect();
    let unwritten = task.body.lock().connection.buffers(Role::Operations).map_or(0, |buffers| buffers.unwritten().len());
    assert!(unwritten > 0, "a socket has room for {MANY} times 8 KiB");
    sender.send(()).unwrap();
    assert!(received.iter().all(|received| wait(&reactor, received).is_ok()));
    server.join().unwrap();
}

#[test]
fn a_release_whose_socket_ends_is_sent_again_on_the_next_one() {
    let (reactor, task, listener) = connection();
    let server = thread::spawn(move || {
        let mut first = Peer::accept(&listener);
        let sent = first.command();
        drop(first);
        let mut second = Peer::accept(&listener);
        assert_eq!(second.command(), sent);
        second.answer(released());
    });
    let answer = wait(&reactor, &submit(&task, "ours")).unwrap();
    assert!(answer.verdict == Verdict::Ok && answer.repeated);
    server.join().unwrap();
}
