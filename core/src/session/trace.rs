//! Trace: the number by which a binding follows one acquire and its hold, through all their events.

use std::cell::Cell;

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// The next acquire that begins on this thread has `number` in its events; 0 is none. Gives the number that was set before, if no
/// acquire has begun since.
pub fn trace_next(number: u64) -> u64 {
    NEXT.replace(number)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sync::Mutex;
    use crate::{Client, LockEvent};

    #[test]
    fn all_events_of_one_acquire_and_its_hold_have_its_number_and_those_of_others_have_none() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reported);
        let sink = move |event: &LockEvent| noted.lock().push((event.kind.as_str(), event.trace()));
        let client = Client::builder().url("memory://trace").sink(Arc::new(sink)).build().unwrap();
        let (orders, mails) = (client.lock("orders:42"), client.lock("mails:7"));
        assert_eq!(trace_next(7), 0);
        let held = orders.acquire_blocking().unwrap();
        assert_eq!(trace_next(0), 0, "an acquire takes its number");
        mails.acquire_blocking().unwrap().release_blocking().unwrap();
        held.release_blocking().unwrap();
        let mails = [("round", 0), ("acquired", 0), ("released", 0)];
        let expected = [vec![("round", 7), ("acquired", 7)], mails.to_vec(), vec![("released", 7)]].concat();
        assert_eq!(*reported.lock(), expected);
    }

    #[test]
    fn of_a_refused_acquire_only_its_followers_are_notified() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reported);
        let sink = move |event: &LockEvent| noted.lock().push((event.kind.as_str(), event.trace(), event.is_refusal()));
        let client = Client::builder().url("memory://trace-refused").sink(Arc::new(sink)).build().unwrap();
        client.close_blocking().unwrap();
        let orders = client.lock("orders:42");
        orders.acquire_blocking().unwrap_err();
        trace_next(7);
        orders.acquire_blocking().unwrap_err();
        assert_eq!((reported.lock().clone(), trace_next(0)), (vec![("acquire_failed", 7, true)], 0));
    }
}
