//! Causes: errors of a user's own code, kept with the failures that they cause.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// An error of a user's own code, such as that of a [`CredentialsProvider`](crate::CredentialsProvider). Two are equal if they are the
/// same one.
#[derive(Clone)]
pub(crate) struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    pub(crate) fn new(error: Box<dyn Error + Send + Sync>) -> Self {
        Self(error.into())
    }

    /// The error itself.
    pub(crate) fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

/// The kind of error alone: what an error says of itself may be a secret.
impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause")
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Cause {}
