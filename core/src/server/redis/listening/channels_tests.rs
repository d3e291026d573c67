//! Tables of channels that come, move and go.

use std::sync::mpsc;

use super::*;

fn node(port: u16) -> Address {
    Address { host: "h".into(), port }
}

fn channel(name: &str) -> Channel {
    Channel { name: name.into(), kind: Kind::Sharded }
}

fn listener() -> (Listener, mpsc::Receiver<Notice>) {
    let (notify, received) = mpsc::channel();
    (Arc::new(move |notice| notify.send(notice).unwrap()), received)
}

fn carried(out: &mut Notices) {
    out.drain(..).for_each(|(listener, notice)| listener(notice));
}

fn failure() -> Failure {
    Failure::not_applied(FailureKind::Refused, "no")
}

#[test]
fn a_channel_is_where_its_slot_is_and_each_new_subscription_counts_as_a_message() {
    let (mut channels, mut out, (listener, received)) = (Channels::default(), Vec::new(), listener());
    channels.listen(channel("a"), &listener, &mut out);
    assert_eq!(channels.place(Moved::Map, |_| None, &mut out), [], "nobody knows where");
    assert_eq!(channels.place(Moved::Map, |_| Some(node(1)), &mut out), [(node(1), Order::Subscribe(channel("a")))]);
    assert_eq!(channels.place(Moved::Map, |_| Some(node(1)), &mut out), []);
    channels.subscribed(&node(1), "a", &mut out);
    channels.message(&node(1), "a", "free".into(), &mut out);
    carried(&mut out);
    assert_eq!(received.try_iter().collect::<Vec<_>>(), [Notice::Listening, Notice::Message("free".into())]);
    let moved = [(node(1), Order::Unsubscribe(channel("a"))), (node(2), Order::Subscribe(channel("a")))];
    assert_eq!(channels.place(Moved::Map, |_| Some(node(2)), &mut out), moved);
    channels.subscribed(&node(1), "a", &mut out);
    channels.message(&node(1), "a", "late".into(), &mut out);
    carried(&mut out);
    assert_eq!(received.try_iter().collect::<Vec<_>>(), [], "the other node counts now");
    channels.ended(&node(2), "a");
    assert_eq!(channels.place(Moved::Map, |_| Some(node(3)), &mut out), [(node(3), Order::Subscribe(channel("a")))]);
    channels.subscribed(&node(3), "a", &mut out);
    carried(&mut out);
    assert_eq!(received.try_iter().collect::<Vec<_>>(), [Notice::Listening]);
    assert_eq!((channels.at(&node(3)), channels.at(&node(2))), (vec![channel("a")], vec![]));
}

#[test]
fn a_repeated_subscription_is_confirmed_at_once() {
    let (mut channels, mut out) = (Channels::default(), Vec::new());
    let ((first, _kept), (second, received)) = (listener(), listener());
    channels.listen(channel("a"), &first, &mut out);
    channels.place(Moved::Map, |_| Some(node(1)), &mut out);
    channels.subscribed(&node(1), "a", &mut out);
    drop(first);
    out.clear();
    channels.listen(channel("a"), &second, &mut out);
    carried(&mut out);
    assert_eq!(received.try_iter().collect::<Vec<_>>(), [Notice::Listening]);
}

#[test]
fn a_channel_that_nobody_listens_to_is_kept_for_a_minute() {
    let (mut channels, mut out) = (Channels::default(), Vec::new());
    let at = |seconds: u64| Tick::from_micros(seconds * 1_000_000);
    let (first, _received) = listener();
    channels.listen(channel("a"), &first, &mut out);
    channels.place(Moved::Map, |_| Some(node(1)), &mut out);
    assert_eq!(channels.sweep(at(1_000)), []);
    drop(first);
    assert_eq!((channels.sweep(at(1_001)), channels.sweep(at(1_060))), (vec![], vec![]));
    assert_eq!(channels.sweep(at(1_061)), [(node(1), Order::Unsubscribe(channel("a")))]);
    assert_eq!(channels.at(&node(1)), []);
}

#[test]
fn a_listener_that_can_not_listen_learns_why_once() {
    let (mut channels, mut out, (listener, received)) = (Channels::default(), Vec::new(), listener());
    channels.listen(channel("a"), &listener, &mut out);
    channels.place(Moved::Map, |_| Some(node(1)), &mut out);
    channels.refused(&node(1), "a", &failure(), Tick::from_micros(0), &mut out);
    channels.disconnected(&node(1), &failure(), &mut out);
    channels.disconnected(&node(2), &failure(), &mut out);
    carried(&mut out);
    assert_eq!(received.try_iter().collect::<Vec<_>>(), [Notice::NotListening(failure())]);
    assert_eq!(channels.at(&node(1)), [channel("a")], "it is asked for again with the next connection");
}

#[test]
fn a_node_has_so_many_channels_at_most() {
    let (mut channels, mut out, (listener, received)) = (Channels::default(), Vec::new(), listener());
    for number in 0..=MOST {
        channels.listen(channel(&number.to_string()), &listener, &mut out);
    }
    assert_eq!(channels.place(Moved::Nothing, |_| Some(node(1)), &mut out).len(), MOST);
    carried(&mut out);
    assert!(
        matches!(&received.try_iter().collect::<Vec<_>>()[..], [Notice::NotListening(failure)] if failure.message.contains("4096 channels of h:1"))
    );
}

#[test]
fn who_needs_a_channel_gets_the_place_of_one_to_which_nobody_listens() {
    let (mut channels, mut out) = (Channels::default(), Vec::new());
    let ((first, _), (others, _kept), (last, received)) = (listener(), listener(), listener());
    channels.listen(channel("idle"), &first, &mut out);
    for number in 1..MOST {
        channels.listen(channel(&number.to_string()), &others, &mut out);
    }
    channels.place(Moved::Nothing, |_| Some(node(1)), &mut out);
    channels.listen(channel("last"), &last, &mut out);
    assert_eq!(channels.place(Moved::Nothing, |_| Some(node(1)), &mut out), [], "each has a listener");
    carried(&mut out);
    assert!(matches!(received.try_recv(), Ok(Notice::NotListening(_))));
    drop(first);
    assert_eq!(channels.sweep(Tick::from_micros(1)), [], "it is kept for a minute");
    let orders = channels.place(Moved::Nothing, |_| Some(node(1)), &mut out);
    assert_eq!(orders, [(node(1), Order::Unsubscribe(channel("idle"))), (node(1), Order::Subscribe(channel("last")))]);
    assert_eq!(channels.at(&node(1)).len(), MOST);
}

#[test]
fn only_what_may_have_moved_is_looked_at() {
    let (mut channels, mut out, (listener, _received)) = (Channels::default(), Vec::new(), listener());
    let names = ["a", "b", "{a}c"];
    names.iter().for_each(|name| channels.listen(channel(name), &listener, &mut out));
    channels.place(Moved::Nothing, |_| Some(node(1)), &mut out);
    let subscribed = |orders: Vec<(Address, Order)>| {
        let names = orders.into_iter().filter_map(|(at, order)| match order {
            Order::Subscribe(channel) => Some((at, channel.name.to_string())),
            _ => None,
        });
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(channels.place(Moved::Nothing, |_| Some(node(2)), &mut out), []);
    let two = |name: &str| (node(2), name.to_owned());
    assert_eq!(subscribed(channels.place(Moved::Slot(slot_of("a")), |_| Some(node(2)), &mut out)), [two("a"), two("{a}c")]);
    assert_eq!(subscribed(channels.place(Moved::Map, |_| Some(node(2)), &mut out)), [two("b")]);
    // One that its node has ended needs no other sign.
    channels.ended(&node(2), "b");
    assert_eq!(subscribed(channels.place(Moved::Nothing, |_| Some(node(2)), &mut out)), [two("b")]);
    assert!(!channels.is_at(&node(1)) && channels.is_at(&node(2)));
}

#[test]
fn a_refused_channel_is_asked_for_again_and_one_of_an_election_is_not_kept() {
    let (mut channels, mut out, (listener, received)) = (Channels::default(), Vec::new(), listener());
    let plain = Channel { name: "lead".into(), kind: Kind::Plain };
    channels.listen(plain.clone(), &listener, &mut out);
    channels.place(Moved::Nothing, |_| Some(node(1)), &mut out);
    channels.refused(&node(1), "lead", &failure(), Tick::from_micros(0), &mut out);
    carried(&mut out);
    assert_eq!(received.try_iter().count(), 1);
    assert_eq!(channels.sweep(Tick::from_micros(0).after(REFUSED / 2)), []);
    assert_eq!(channels.sweep(Tick::from_micros(0).after(REFUSED)), [(node(1), Order::Subscribe(plain.clone()))]);
    assert_eq!(channels.sweep(Tick::from_micros(0).after(2 * REFUSED)), [], "it was asked");
    drop(listener);
    assert_eq!(channels.sweep(Tick::from_micros(0).after(2 * REFUSED)), [(node(1), Order::Unsubscribe(plain))]);
    assert!(!channels.is_at(&node(1)));
}

#[test]
fn each_listener_of_a_channel_gets_its_messages() {
    let (mut channels, mut out, (first, received_first), (second, received_second)) =
        (Channels::default(), Vec::new(), listener(), listener());
    for listener in [&first, &second, &second] {
        channels.listen(channel("a"), listener, &mut out);
    }
    channels.place(Moved::Nothing, |_| Some(node(1)), &mut out);
    channels.subscribed(&node(1), "a", &mut out);
    channels.message(&node(1), "a", "lead".into(), &mut out);
    carried(&mut out);
    for received in [&received_first, &received_second] {
        assert_eq!(received.try_iter().collect::<Vec<_>>(), [Notice::Listening, Notice::Message("lead".into())]);
    }
    drop(first);
    channels.message(&node(1), "a", "lead none".into(), &mut out);
    carried(&mut out);
    assert_eq!((received_first.try_iter().count(), received_second.try_iter().count()), (0, 1));
    assert_eq!(channels.sweep(Tick::NEVER), [], "one is left");
}
