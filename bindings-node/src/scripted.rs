//! The scripted server: a server for users' own tests.

use std::sync::Arc;

use locktender::Error;
use locktender::testing as scripted;
use napi_derive::napi;

use crate::error::Failure;

/// See `ScriptedServer` in lib/testing.ts.
#[napi]
pub struct ScriptedServer {
    pub(crate) core: Arc<scripted::ScriptedServer>,
}

/// An operation that the server received.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct SeenOperation {
    pub op: String,
    pub lock_name: Option<String>,
    pub owner: Option<String>,
}

#[napi]
impl ScriptedServer {
    #[napi(constructor)]
    pub fn new(name: String) -> Self {
        Self { core: scripted::ScriptedServer::new(&name) }
    }

    #[napi]
    pub fn play(&self, script: String) -> Option<Failure> {
        self.core.play(&script).err().map(Failure::from)
    }

    #[napi]
    pub fn response_timeout(&self, ms: f64) -> Option<Failure> {
        let set = |span| self.core.set_response_timeout(span);
        locktender::host::milliseconds("responseTimeoutMs", ms).map(set).err().map(Error::into)
    }

    #[napi]
    pub fn seen(&self) -> Vec<SeenOperation> {
        let seen = |seen: scripted::Seen| SeenOperation { op: seen.op.to_owned(), lock_name: seen.lock, owner: seen.owner };
        self.core.seen().into_iter().map(seen).collect()
    }

    #[napi]
    pub fn unplayed(&self) -> u32 {
        u32::try_from(self.core.unplayed()).unwrap_or(u32::MAX)
    }
}
