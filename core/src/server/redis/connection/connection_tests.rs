use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::name::{Keys, Kind};
use crate::op::Place;
use crate::options::ClientOptions;
use crate::server::redis::transport::socket::Pulse;
use crate::server::redis::transport::url::Target;
use crate::server::{Completion, Request};

const ENTRY: &str = "f:c:1 host=h pid=1";

/// A connection that notes what leaves on it.
struct Wired {
    sent: Sent,
    left: Rc<RefCell<Vec<Op>>>,
}

impl Wire for Wired {
    type Attempt = ();

    fn send(&mut self, job: Job, form: Form, now: Tick) {
        self.left.borrow_mut().push(job.request.op.clone());
        self.sent.push(job, form, now);
    }

    fn sent(&self) -> &Sent {
        &self.sent
    }

    fn sent_mut(&mut self) -> &mut Sent {
        &mut self.sent
    }
}

const TIMEOUT: Duration = Duration::from_secs(1);

fn lane() -> Lane<Wired> {
    let target = Target::parse("redis://localhost", &ClientOptions::default()).unwrap();
    let settings =
        Settings { target, name: "locktender".into(), quorum_config: None, connect_timeout: TIMEOUT, response_timeout: TIMEOUT };
    Lane::new(Arc::new(settings), Arc::new(Health::new(Box::new(|_| ()))), |_| ())
}

/// Connects the lane; what leaves on the connection.
fn connect(lane: &mut Lane<Wired>) -> Rc<RefCell<Vec<Op>>> {
    let left = Rc::<RefCell<Vec<Op>>>::default();
    let sent = Sent::new(Pulse::default(), None, TIMEOUT);
    lane.attempted(Ok(Wired { sent, left: Rc::clone(&left) }));
    left
}

fn keys() -> Arc<Keys> {
    Arc::new(Keys::new(Kind::Exclusive, "", "orders:42", true).unwrap())
}

fn acquire() -> Op {
    let place = Place { entry: ENTRY.into(), arrival: 0, stays: false };
    Op::Acquire {
        keys: keys(),
        owner: "ours".into(),
        ttl_ms: 1_000,
        proposal: 1,
        adopt: None,
        fair: true,
        place: Some(place),
        quorum_config: None,
    }
}

fn release(owner: &str, leave: Option<&str>) -> Op {
    Op::Release { keys: keys(), owner: owner.into(), leave: leave.map(Arc::from), single_server: true }
}

fn job(op: Op) -> Job {
    Job { request: Request::new(op, Tick::NEVER), completion: Completion::new(|_| ()), repeated: false }
}

#[test]
fn a_close_takes_back_what_was_sent_and_not_answered() {
    let mut lane = lane();
    let left = connect(&mut lane);
    let now = Tick::now();
    lane.accept(job(acquire()), now);
    lane.accept(job(Op::Inspect { keys: keys() }), now);
    left.borrow_mut().clear();
    lane.close(now);
    assert_eq!(*left.borrow(), [release("ours", Some(ENTRY))], "behind the acquire, with the waiter that it lined up");
    assert!(!lane.is_over(), "it has a moment to leave");
}

#[test]
fn a_close_takes_back_what_was_given_up_before() {
    let mut lane = lane();
    let left = connect(&mut lane);
    let now = Tick::now();
    lane.accept(job(acquire()), now);
    // Something arrives, or the connection would count as dead.
    let State::Up(link) = &mut lane.state else { panic!("it is connected") };
    let late = link.sent_mut().overdue(now.after(TIMEOUT)).late;
    assert_eq!(late.len(), 1);
    left.borrow_mut().clear();
    lane.close(now.after(TIMEOUT));
    assert_eq!(*left.borrow(), [release("ours", Some(ENTRY))]);
}

#[test]
fn a_release_that_waits_for_a_connection_leaves_after_a_close_too() {
    let now = Tick::now();
    let mut lane = lane();
    // All of it in one go, before anybody has connected.
    lane.accept(job(release("ours", Some(ENTRY))), now);
    lane.close(now);
    assert!(!lane.is_over(), "not before there was an attempt to connect");
    lane.pursue(now);
    assert!(matches!(lane.state, State::Connecting(())));
    let left = connect(&mut lane);
    assert_eq!(*left.borrow(), [release("ours", Some(ENTRY))]);
}

#[test]
fn a_closed_lane_waits_for_nothing_but_releases() {
    let now = Tick::now();
    let mut lane = lane();
    lane.accept(job(acquire()), now);
    lane.close(now);
    lane.pursue(now);
    assert!(lane.is_over() && matches!(lane.state, State::Down), "nobody waits for a connection any more");
}

#[test]
fn a_release_whose_connection_breaks_during_a_close_is_sent_again() {
    let now = Tick::now();
    let mut lane = lane();
    connect(&mut lane);
    lane.accept(job(release("ours", None)), now);
    lane.close(now);
    lane.broken(None);
    assert!(!lane.is_over());
    lane.overdue(Tick::now().after(Duration::from_millis(100)));
    assert!(matches!(lane.state, State::Connecting(())));
    assert_eq!(connect(&mut lane).borrow().len(), 1);
}
