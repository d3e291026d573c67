//! Tasks: the locks that each task of this process holds, for a task that waits for itself.

use crate::session::bodies::Bodies;
use crate::session::own_holds::OwnHolds;

#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) bodies: Bodies,
    pub(super) own_holds: OwnHolds,
}
