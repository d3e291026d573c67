//! Own servers: a server that a user wrote, whose panics end where it is called, and are reported.

use std::sync::Arc;

use crate::clock::Tick;
use crate::event::callback::caught;
use crate::event::emitter::Emitter;
use crate::server::{Completion, Listener, Request, Server};

/// The server, and the emitter that reports its panics.
pub(crate) struct OwnServer {
    server: Arc<dyn Server>,
    emitter: Emitter,
}

impl OwnServer {
    pub(crate) fn new(server: Arc<dyn Server>, emitter: Emitter) -> Self {
        Self { server, emitter }
    }

    /// Does what may panic, and reports that.
    fn guarded<T: Default>(&self, act: impl FnOnce() -> T) -> T {
        caught(act).unwrap_or_else(|panic| {
            let mut warning = panic.warning("the server's own code");
            warning.server = caught(|| self.server.address().to_owned()).ok();
            self.emitter.emit(&warning);
            T::default()
        })
    }
}

/// The server calls completions and listeners, which are code of the core. So it is not called as a user's callback is.
impl Server for OwnServer {
    fn address(&self) -> &str {
        self.server.address()
    }

    /// An operation whose submission panics has an unknown outcome: its completion is dropped.
    fn submit(&self, request: Request, completion: Completion) {
        self.guarded(|| self.server.submit(request, completion));
    }

    fn clock(&self, at: Tick) -> Option<u64> {
        self.guarded(|| self.server.clock(at))
    }

    fn keep_warm(&self) {
        self.guarded(|| self.server.keep_warm());
    }

    fn listen(&self, channel: &str, listener: Listener) -> bool {
        self.guarded(|| self.server.listen(channel, listener))
    }

    #[cfg(feature = "testing")]
    fn moves_with_clock(&self) -> bool {
        caught(|| self.server.moves_with_clock()).unwrap_or(false)
    }

    fn cancel(&self) {
        self.guarded(|| self.server.cancel());
    }

    fn close(&self) {
        self.guarded(|| self.server.close());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;

    #[derive(Default)]
    struct Noting(Mutex<Vec<&'static str>>);

    impl Server for Noting {
        fn address(&self) -> &str {
            "noting://"
        }

        fn submit(&self, _: Request, _: Completion) {}

        fn keep_warm(&self) {
            self.0.lock().push("warm");
        }

        fn cancel(&self) {
            self.0.lock().push("cancel");
            panic!("a fault of the server's own code");
        }

        fn close(&self) {
            self.0.lock().push("close");
        }
    }

    #[test]
    fn a_server_of_a_users_own_is_notified_of_a_renewal_to_come_and_of_a_close() {
        let noting = Arc::new(Noting::default());
        let own = OwnServer::new(Arc::clone(&noting) as Arc<dyn Server>, Emitter::default());
        own.keep_warm();
        own.cancel();
        own.close();
        assert_eq!(*noting.0.lock(), ["warm", "cancel", "close"]);
    }
}
