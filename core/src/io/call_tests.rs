use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

type Kept = Arc<Mutex<Option<Responder<u8>>>>;

fn pending() -> (Call<u8>, Kept, Arc<AtomicBool>) {
    let held = Arc::new(Mutex::new(None));
    let cancelled = Arc::new(AtomicBool::new(false));
    let (keep, flag) = (Arc::clone(&held), Arc::clone(&cancelled));
    let call = Call::new(move |responder| {
        *keep.lock() = Some(responder);
        Some(Canceller::by(move |_| flag.store(true, Ordering::SeqCst)))
    });
    (call, held, cancelled)
}

#[test]
fn a_call_starts_when_a_caller_waits_and_can_be_waited_for_in_slices() {
    let (mut call, held, cancelled) = pending();
    assert!(held.lock().is_none());
    assert!(call.wait_for(Duration::from_millis(1)).is_none());
    held.lock().take().unwrap().respond(Ok(7));
    assert_eq!(call.blocking().unwrap(), 7);
    assert!(!cancelled.load(Ordering::SeqCst), "a call that ended isn't cancelled");
}

#[test]
fn dropping_a_call_cancels_it() {
    let (mut call, _held, cancelled) = pending();
    assert!(call.wait_for(Duration::ZERO).is_none());
    drop(call);
    assert!(cancelled.load(Ordering::SeqCst));
}

#[test]
fn a_wait_may_be_as_long_as_any() {
    assert_eq!(Call::started(|responder| responder.respond(Ok(7))).wait_for(Duration::MAX).unwrap().unwrap(), 7);
}

#[test]
fn a_result_that_comes_too_late_for_its_caller_is_undone() {
    static UNDONE: AtomicBool = AtomicBool::new(false);
    let call = |kept: &Kept| {
        let keep = Arc::clone(kept);
        Call::undoing(
            |_: u8| UNDONE.store(true, Ordering::SeqCst),
            move |responder| {
                *keep.lock() = Some(responder);
                None
            },
        )
    };
    let kept = Kept::default();
    let mut late = call(&kept);
    assert!(late.wait_for(Duration::ZERO).is_none());
    drop(late);
    kept.lock().take().unwrap().respond(Ok(7));
    assert!(UNDONE.swap(false, Ordering::SeqCst));
    let mut in_time = call(&kept);
    assert!(in_time.wait_for(Duration::ZERO).is_none());
    kept.lock().take().unwrap().respond(Ok(7));
    assert_eq!(in_time.blocking().unwrap(), 7);
    assert!(!UNDONE.load(Ordering::SeqCst));
}

#[test]
fn a_callback_gets_the_result_and_a_lost_responder_is_an_error() {
    let (call, held, cancelled) = pending();
    let got = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&got);
    let cancel = call.then(move |result| *keep.lock() = Some(result));
    drop(cancel);
    assert!(!cancelled.load(Ordering::SeqCst), "dropping the means to cancel cancels nothing");
    drop(held.lock().take());
    assert_eq!(got.lock().take().unwrap().unwrap_err().code(), crate::error::Code::Internal);
}
