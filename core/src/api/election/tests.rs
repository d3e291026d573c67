//! Elections, on a server in memory and on scripted ones.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::*;
use crate::api::client::Client;
use crate::error::Code;

fn client(name: &str) -> Client {
    Client::open(format!("memory://election-{name}").as_str()).unwrap()
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn wait_for_a_candidate(client: &Client) {
    while client.lock("x").inspect_blocking().unwrap().unwrap().waiters == 0 {
        thread::yield_now();
    }
}

#[test]
fn terms_rise_and_the_end_of_the_work_is_no_end_of_leading() {
    let election = client("terms").election("x");
    let mut terms = Vec::new();
    let led = election.lead_blocking(|leadership| {
        terms.push(leadership.term());
        if terms.len() == 2 { Err("enough") } else { Ok(()) }
    });
    assert!(matches!(led, Err(RunError::Failed("enough"))));
    assert!(terms.is_sorted_by(|a, b| a < b) && terms.len() == 2, "{terms:?}");
    assert!(election.try_campaign_blocking().unwrap().is_some(), "it has resigned");
}

#[test]
fn after_work_that_returned_at_once_the_next_campaign_waits_for_the_rest_of_a_second() {
    let (sender, warned) = channel();
    let sink = move |event: &crate::LockEvent| {
        if event.kind == crate::EventKind::Warning {
            sender.send(event.message.clone().unwrap_or_default()).unwrap();
        }
    };
    let client = Client::builder().url("memory://election-short").sink(std::sync::Arc::new(sink)).build().unwrap();
    let election = client.election("x");
    let (began, mut terms) = (std::time::Instant::now(), 0);
    let led = election.lead_blocking(|_| {
        terms += 1;
        if terms == 3 { Err("enough") } else { Ok(()) }
    });
    assert!(matches!(led, Err(RunError::Failed("enough"))));
    // However slow the machine is: the third term begins no sooner than two seconds after the first.
    assert!(began.elapsed() >= ms(2_000), "{:?}", began.elapsed());
    drop((election, client));
    assert_eq!(warned.iter().filter(|message| message.contains("returned within a second")).count(), 1);
}

#[test]
fn a_campaign_that_waits_for_the_rest_of_a_second_is_stopped_at_once() {
    let election = client("stopped").election("x");
    let led = election.lead_blocking(|_| {
        let election = election.clone();
        // It comes while the next campaign waits, or before; either ends the call.
        thread::spawn(move || election.stop());
        Ok::<_, ()>(())
    });
    assert!(led.is_ok());
}

#[test]
fn one_call_leads_at_a_time_and_another_one_after_its_end() {
    let election = client("twice").election("x");
    let led = election.lead_blocking(|_| {
        let again = election.clone().lead_blocking(|_| Ok::<_, ()>(()));
        let Err(RunError::Lock(error)) = again else { panic!("{again:?}") };
        assert_eq!((error.code(), error.argument()), (Code::InvalidArgument, Some("lead")));
        Err("enough")
    });
    assert!(matches!(led, Err(RunError::Failed("enough"))));
    assert!(matches!(election.lead_blocking(|_| Err(7)), Err(RunError::Failed(7))));
}

#[test]
fn a_loss_ends_the_term_and_the_next_campaign_begins() {
    let election = client("loss").election("x").ttl(ms(20)).renew(false);
    let (mut terms, mut checks) = (Vec::new(), Vec::new());
    let led = election.lead_blocking(|leadership| {
        terms.push(leadership.term());
        if terms.len() == 2 {
            return Err(None);
        }
        leadership.ended().blocking().unwrap();
        let error = leadership.check().unwrap_err();
        checks.push(error.code());
        Err(Some(error))
    });
    assert!(matches!(led, Err(RunError::Failed(None))), "{led:?}");
    assert_eq!((terms.len(), checks), (2, vec![Code::LockLost]));
}

#[test]
fn a_loss_drops_the_work_of_a_future_before_the_next_work_begins() {
    struct Noted<'a>(&'a std::cell::RefCell<Vec<&'static str>>);
    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().push("dropped");
        }
    }
    let election = client("dropped").election("x").ttl(ms(20)).renew(false);
    let seen = std::cell::RefCell::new(Vec::new());
    let led = async {
        let mut number = 0;
        election
            .lead(async |_| {
                number += 1;
                seen.borrow_mut().push("begun");
                if number == 2 {
                    return Err("enough");
                }
                let _noted = Noted(&seen);
                std::future::pending().await
            })
            .await
    };
    let led = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(led);
    assert!(matches!(led, Err(RunError::Failed("enough"))));
    assert_eq!(*seen.borrow(), ["begun", "dropped", "begun"]);
}

#[test]
fn a_future_that_is_dropped_resigns_and_another_call_may_lead() {
    let election = client("future").election("x");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut leads = Box::pin(election.lead(async |_| std::future::pending::<Result<(), ()>>().await));
        let begun = poll_fn(|context| {
            assert!(leads.as_mut().poll(context).is_pending());
            Poll::Ready(election.leading().is_err())
        });
        assert!(begun.await, "it leads");
        drop(leads);
        election.campaign().await.unwrap();
        assert!(election.leading().is_ok());
    });
}

#[test]
fn stop_ends_a_campaign_notifies_the_work_and_lasts() {
    let client = client("stop");
    let leader = client.election("x").campaign_blocking().unwrap();
    let election = client.election("x");
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        scope.spawn(|| sender.send(election.lead_blocking(|_| Ok::<_, ()>(())).is_ok()).unwrap());
        wait_for_a_candidate(&client);
        election.stop();
        assert_eq!(receiver.recv(), Ok(true));
    });
    leader.resign_blocking().unwrap();
    assert!(client.election("x").try_campaign_blocking().unwrap().is_some(), "the campaign left nothing");
    assert!(election.lead_blocking(|_| Err("led")).is_ok(), "it is stopped for good");

    let other = client.election("y");
    let ended = other.lead_blocking(|leadership| {
        assert!(!leadership.is_stopping());
        other.stop();
        assert!(leadership.is_stopping() && leadership.is_valid());
        Ok::<_, ()>(())
    });
    assert!(ended.is_ok());
}

#[test]
fn leading_waits_without_end_unless_the_election_itself_says_how_long() {
    let client = client("wait");
    let busy = Client::builder().url("memory://election-wait").wait(ms(1)).build().unwrap();
    let leader = client.election("x").campaign_blocking().unwrap();
    let led = busy.election("x").wait(ms(1)).lead_blocking(|_| Err("led"));
    assert!(matches!(&led, Err(RunError::Lock(error)) if error.code() == Code::AcquireTimeout), "{led:?}");
    assert_eq!(busy.election("x").campaign_blocking().unwrap_err().code(), Code::AcquireTimeout);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        scope.spawn(|| sender.send(busy.election("x").lead_blocking(|_| Err("led"))).unwrap());
        wait_for_a_candidate(&client);
        leader.resign_blocking().unwrap();
    });
    assert!(matches!(receiver.recv(), Ok(Err(RunError::Failed("led")))));
}

#[test]
fn an_observer_sees_the_leader_and_each_change_and_ends_with_its_client() {
    let client = client("observer");
    let election = client.election("x");
    let mut observer = election.observe();
    let nobody = observer.next_blocking().unwrap();
    assert_eq!((nobody.leader, nobody.unknown), (None, false));
    let leadership = election.campaign_blocking().unwrap();
    let leader = observer.next_blocking().unwrap().leader.expect("there is a leader");
    assert_eq!((leader.term, &*leader.owner), (leadership.term(), leadership.owner()));
    assert!(leader.since.is_some() && leader.remaining <= crate::Remaining::For(ms(10_000)));
    let mut cancelled = observer.next();
    assert!(cancelled.wait_for(Duration::ZERO).is_none());
    let waiting = observer.next();
    drop(cancelled);
    leadership.resign_blocking().unwrap();
    assert_eq!(waiting.blocking().unwrap().leader, None);
    let mut waiting = observer.next();
    assert!(waiting.wait_for(Duration::ZERO).is_none());
    client.close_blocking().unwrap();
    assert_eq!(waiting.blocking().unwrap_err().code(), Code::Closed);
}

#[test]
fn an_observer_sees_the_end_of_a_leader_that_dies_when_its_term_ends() {
    let client = client("death");
    let leadership = client.election("x").ttl(ms(300)).renew(false).campaign_blocking().unwrap();
    let mut observer = client.election("x").observe();
    assert_eq!(observer.next_blocking().unwrap().leader.map(|leader| leader.term), Some(leadership.term()));
    assert_eq!(observer.next_blocking().unwrap().leader, None);
    assert!(!leadership.is_valid());
}

#[test]
fn a_closed_client_ends_leading() {
    let client = client("closed");
    let ended = client.election("x").lead_blocking(|_| {
        client.close_blocking().unwrap();
        Ok::<_, ()>(())
    });
    assert!(matches!(&ended, Err(RunError::Lock(error)) if error.code() == Code::Closed), "{ended:?}");
}
