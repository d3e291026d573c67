//! Concern: what a removal has to do with a server.

/// The part of a server in a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Concern {
    /// None: nothing of ours is there.
    None,
    /// One request: something of ours is there, or may be.
    Ask,
    /// Two requests: our acquire was on a connection that broke, and the server may still read it.
    AskTwice,
}
