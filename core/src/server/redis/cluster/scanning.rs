//! Scanning: a scan of all primaries, part by part, and how it ends.

use std::sync::Arc;

use crate::op::{Cursor, Failure, FailureKind, Op, Reply, Verdict};
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::routed::Routed;
use crate::server::redis::cluster::scanned::{Scanned, Step};
use crate::server::redis::cluster::sending::UNSERVED;

const HOLE: &str = "no node of the cluster serves some of the slots: what is locked there is in no list";
const UNSTEADY: &str = "the primaries of the cluster, or the connections to them, were others again and again during the list";

impl Cluster {
    /// Sends a part of a scan to the primary that comes next. Nothing else shows that a map is old: also a node that serves nothing any
    /// more lists what it has. So the nodes are asked behind the last part, and the scan has ended if the primaries are still the same.
    pub(super) fn scan(self: &Arc<Self>, scanned: Scanned, mut routed: Routed) {
        let mapping = self.mapping.lock();
        if mapping.primaries().is_none() {
            drop(mapping);
            return self.wait_for_map(routed);
        }
        let (step, has_hole) = (scanned.step(mapping.primaries_in_charge()), mapping.has_hole());
        drop(mapping);
        let fail = |routed: Routed, why| routed.fail(Failure::not_applied(FailureKind::ClusterDown, why));
        match step {
            Step::Part(part, primary) => {
                if let Op::Scan { cursor, .. } = &mut routed.request.op {
                    *cursor = part.write();
                }
                self.send_to(&primary, routed, false);
            }
            Step::Last if routed.hops == 0 => {
                self.mapping.lock().await_map(Routed { hops: 1, ..routed }.later());
                self.refresh_at_once();
            }
            Step::Last if has_hole => fail(routed, HOLE),
            Step::Last => {
                let whole = Reply::new(Verdict::Scanned { next: Cursor::default(), keys: Vec::new() }, 0, 0);
                routed.completion.complete_by(&routed.request.io, Ok(whole));
            }
            Step::Nobody => {
                self.refresh();
                fail(routed, UNSERVED);
            }
            Step::Unsteady => fail(routed, UNSTEADY),
        }
    }
}
