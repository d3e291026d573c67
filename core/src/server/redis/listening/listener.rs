//! Listener of a channel: the notices that it gets, and whether the same notice went before.

use crate::op::Failure;
use crate::server::{Listener, Notice, WeakListener};

/// Notices, and the listeners that get them.
pub(super) type Notices = Vec<(Listener, Notice)>;

/// The listener belongs to the code that listens.
pub(super) struct ChannelListener {
    listener: WeakListener,
    not_listening: bool,
}

impl ChannelListener {
    /// A listener without any notice so far.
    pub(super) fn new(listener: &Listener) -> Self {
        Self { listener: std::sync::Arc::downgrade(listener), not_listening: false }
    }

    /// The subscription was made, or made again.
    pub(super) fn listening(&mut self, out: &mut Notices) {
        self.not_listening = false;
        self.notify(Notice::Listening, out);
    }

    /// There is no subscription. The listener gets one notice of that, until there was a subscription again.
    pub(super) fn not_listening(&mut self, failure: &Failure, out: &mut Notices) {
        if !std::mem::replace(&mut self.not_listening, true) {
            self.notify(Notice::NotListening(failure.clone()), out);
        }
    }

    /// Whether this is the listener.
    pub(super) fn is(&self, listener: &Listener) -> bool {
        std::ptr::addr_eq(self.listener.as_ptr(), std::sync::Arc::as_ptr(listener))
    }

    /// Whether the code that listens has ended.
    pub(super) fn is_over(&self) -> bool {
        self.listener.strong_count() == 0
    }

    pub(super) fn notify(&self, notice: Notice, out: &mut Notices) {
        out.extend(self.listener.upgrade().map(|listener| (listener, notice)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::server::FailureKind;

    #[test]
    fn a_missing_subscription_is_notified_once_and_listening_every_time() {
        let listener: Listener = Arc::new(|_| ());
        let mut channel = ChannelListener::new(&listener);
        let failure = Failure::not_applied(FailureKind::Refused, "no");
        let mut out = Vec::new();
        for _ in 0..2 {
            channel.not_listening(&failure, &mut out);
            channel.not_listening(&failure, &mut out);
            channel.listening(&mut out);
        }
        channel.listening(&mut out);
        let notices: Vec<_> = out.drain(..).map(|(_, notice)| notice).collect();
        let not_listening = Notice::NotListening(failure);
        assert_eq!(notices, [not_listening.clone(), Notice::Listening, not_listening, Notice::Listening, Notice::Listening]);
        drop(listener);
        assert!(channel.is_over());
        channel.notify(Notice::Message("late".into()), &mut out);
        assert!(out.is_empty());
    }
}
