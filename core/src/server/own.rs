//! A server of a user's own: its panics end where it is called, and are told.

use std::sync::Arc;

use crate::event::callback::{Panic, caught};
use crate::event::emitter::Emitter;
use crate::server::{Completion, Listener, Request, Server};

/// The server, with where its panics are told.
pub(crate) struct OwnServer {
    server: Arc<dyn Server>,
    emitter: Emitter,
}

impl OwnServer {
    pub(crate) fn new(server: Arc<dyn Server>, emitter: Emitter) -> Self {
        Self { server, emitter }
    }

    fn panicked(&self, panic: &Panic) {
        let mut warning = panic.warning("the server's own code");
        warning.server = caught(|| self.server.address().to_owned()).ok();
        self.emitter.emit(&warning);
    }
}

/// What the server calls meanwhile (completions, listeners) is the core's, so nothing is called here as a user's callback is.
impl Server for OwnServer {
    fn address(&self) -> &str {
        self.server.address()
    }

    /// An operation whose submission panics has an unknown outcome: its completion is dropped.
    fn submit(&self, request: Request, completion: Completion) {
        if let Err(panic) = caught(|| self.server.submit(request, completion)) {
            self.panicked(&panic);
        }
    }

    fn listen(&self, channel: &str, listener: Listener) -> bool {
        caught(|| self.server.listen(channel, listener)).unwrap_or_else(|panic| {
            self.panicked(&panic);
            false
        })
    }

    #[cfg(feature = "testing")]
    fn moves_with_clock(&self) -> bool {
        caught(|| self.server.moves_with_clock()).unwrap_or(false)
    }

    fn close(&self) {
        if let Err(panic) = caught(|| self.server.close()) {
            self.panicked(&panic);
        }
    }
}
