//! Tables of channels that come, move and go.

use std::sync::mpsc;

use super::*;
use crate::server::redis::connection::subscription::Kind;

fn node(port: u16) -> Address {
    Address { host: "h".into(), port }
}

fn channel(name: &str) -> Channel {
    Channel { name: name.into(), kind: Kind::Sharded }
}

fn listener() -> (Listener, mpsc::Receiver<Notice>) {
    let (tell, told) = mpsc::channel();
    (Arc::new(move |notice| tell.send(notice).unwrap()), told)
}

fn carried(out: &mut Vec<Effect>) {
    for effect in out.drain(..) {
        let Effect::Tell(listener, notice) = effect else { panic!("a listener is told, and nothing else") };
        listener(notice);
    }
}

fn failure() -> Failure {
    Failure::not_applied(FailureKind::Refused, "no")
}

#[test]
fn a_channel_is_where_its_slot_is_and_each_new_subscription_counts_as_a_message() {
    let (mut channels, mut out, (listener, told)) = (Channels::default(), Vec::new(), listener());
    channels.listen(channel("a"), &listener, &mut out);
    assert_eq!(channels.place(|_| None, &mut out), [], "nobody knows where");
    assert_eq!(channels.place(|_| Some(node(1)), &mut out), [(node(1), Order::Subscribe(channel("a")))]);
    assert_eq!(channels.place(|_| Some(node(1)), &mut out), []);
    channels.subscribed(&node(1), "a", &mut out);
    channels.message(&node(1), "a", "free".into(), &mut out);
    carried(&mut out);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Notice::Listening, Notice::Message("free".into())]);
    let moved = [(node(1), Order::Unsubscribe(channel("a"))), (node(2), Order::Subscribe(channel("a")))];
    assert_eq!(channels.place(|_| Some(node(2)), &mut out), moved);
    channels.subscribed(&node(1), "a", &mut out);
    channels.message(&node(1), "a", "late".into(), &mut out);
    carried(&mut out);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [], "the other node counts now");
    channels.ended(&node(2), "a", None, &mut out);
    assert_eq!(channels.place(|_| Some(node(3)), &mut out), [(node(3), Order::Subscribe(channel("a")))]);
    channels.subscribed(&node(3), "a", &mut out);
    carried(&mut out);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Notice::Listening]);
    assert_eq!((channels.at(&node(3)), channels.at(&node(2))), (vec![channel("a")], vec![]));
}

#[test]
fn who_listens_again_hears_at_once_that_it_does() {
    let (mut channels, mut out) = (Channels::default(), Vec::new());
    let ((first, _kept), (second, told)) = (listener(), listener());
    channels.listen(channel("a"), &first, &mut out);
    channels.place(|_| Some(node(1)), &mut out);
    channels.subscribed(&node(1), "a", &mut out);
    drop(first);
    out.clear();
    channels.listen(channel("a"), &second, &mut out);
    carried(&mut out);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Notice::Listening]);
}

#[test]
fn a_channel_that_nobody_listens_to_is_kept_for_a_minute() {
    let (mut channels, mut out) = (Channels::default(), Vec::new());
    let at = |seconds: u64| Tick::from_micros(seconds * 1_000_000);
    let (first, _told) = listener();
    channels.listen(channel("a"), &first, &mut out);
    channels.place(|_| Some(node(1)), &mut out);
    assert_eq!(channels.sweep(at(1_000)), []);
    drop(first);
    assert_eq!((channels.sweep(at(1_001)), channels.sweep(at(1_060))), (vec![], vec![]));
    assert_eq!(channels.sweep(at(1_061)), [(node(1), Order::Unsubscribe(channel("a")))]);
    assert_eq!(channels.at(&node(1)), []);
}

#[test]
fn who_can_not_listen_hears_why_once() {
    let (mut channels, mut out, (listener, told)) = (Channels::default(), Vec::new(), listener());
    channels.listen(channel("a"), &listener, &mut out);
    channels.place(|_| Some(node(1)), &mut out);
    channels.ended(&node(1), "a", Some(&failure()), &mut out);
    channels.disconnected(&node(1), &failure(), &mut out);
    channels.disconnected(&node(2), &failure(), &mut out);
    carried(&mut out);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Notice::NotListening(failure())]);
    assert_eq!(channels.at(&node(1)), [channel("a")], "it is asked for again with the next connection");
}

#[test]
fn a_node_has_a_thousand_channels_at_most() {
    let (mut channels, mut out, (listener, told)) = (Channels::default(), Vec::new(), listener());
    for number in 0..=MOST {
        channels.listen(channel(&number.to_string()), &listener, &mut out);
    }
    assert_eq!(channels.place(|_| Some(node(1)), &mut out).len(), MOST);
    carried(&mut out);
    assert!(
        matches!(&told.try_iter().collect::<Vec<_>>()[..], [Notice::NotListening(failure)] if failure.message.contains("1000 channels of h:1"))
    );
}
