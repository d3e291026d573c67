//! Letting in: which waiters an operation notifies where several hold the lock at once, and the places of the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use locktender::internals::name::Kind;
use locktender::op::{LockOp, Op, QueuePlace, Reply, Verb, Verdict};

use super::inside::Gate;
use super::standing::Standing;

impl Standing {
    /// Whether other rules than those of a lock with one holder say who is notified.
    pub(super) fn is_of_several(&self, op: &Op) -> bool {
        op.keys().is_some_and(|keys| keys.kind().is_shared()) || self.holder.as_deref().and_then(Gate::of).is_some()
    }

    /// The notified waiters are the first ones, nobody is passed among them, and all others keep their places.
    pub(super) fn lets_in(
        &self,
        op: &Op,
        reply: &Reply,
        after: &Self,
        notified: &[String],
        lives: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let (leaver, place) = match op {
            Op::Lock(LockOp { verb: Verb::Release { leave, .. }, .. }) => (leave.as_ref(), None),
            Op::Lock(LockOp { by: entry, verb: Verb::Leave, .. }) => (Some(entry), None),
            Op::Lock(LockOp { verb: Verb::Acquire { place, .. }, .. }) => (None, place.as_ref()),
            _ => (None, None),
        };
        let enters = place.filter(|_| reply.verdict == Verdict::Vote).map(|place| &place.entry);
        let stays = |entry: &Arc<str>| Some(entry) != leaver && Some(entry) != enters && lives(entry);
        let queue: Vec<_> = self.queue.iter().filter(|(entry, _)| stays(entry)).collect();
        let mut woken = BTreeSet::new();
        for (at, notice) in notified.iter().enumerate() {
            let (kind, entry) = notice.split_once(' ').unwrap_or_default();
            let first = queue.get(woken.len()).map(|(entry, _)| &**entry);
            if first != Some(entry) {
                return Err(format!("{notice} was sent, and {first:?} is the first one"));
            }
            match kind {
                "free" | "claim" => _ = woken.insert(entry),
                "next" if at > 0 && at + 1 == notified.len() => (),
                _ => return Err(format!("{notice} is no notice of those that may enter: {notified:?}")),
            }
        }
        self.lets_in_who_may_enter(op, reply, after, (&woken, notified), (&stays, &lives))?;
        let asks = |entry: &str| place.is_some_and(|place| *place.entry == *entry);
        for (entry, arrival) in queue.iter().filter(|(entry, _)| !asks(entry)) {
            match after.arrival(entry) {
                Some(_) if woken.contains(&**entry) => return Err(format!("{entry} was notified, and is still in the queue")),
                now if now != Some(*arrival) && !woken.contains(&**entry) => return Err(format!("{entry} lost its place")),
                _ => (),
            }
        }
        let place = place.filter(|place| !woken.contains(&*place.entry));
        place.map_or(Ok(()), |place| self.puts(place, reply, after, lives(&place.entry)))
    }

    /// Nobody enters past who is first, and who is first enters as soon as that changes.
    fn lets_in_who_may_enter(
        &self,
        op: &Op,
        reply: &Reply,
        after: &Self,
        (woken, notified): (&BTreeSet<&str>, &[String]),
        (stays, lives): (&impl Fn(&Arc<str>) -> bool, &impl Fn(&str) -> bool),
    ) -> Result<(), String> {
        let Op::Lock(op) = op else { return Ok(()) };
        let enters = op.keys.kind().is_shared() && reply.verdict == Verdict::Vote;
        if let (true, false, Verb::Acquire { place, fair, .. }) = (enters, self.inside.expects(op), &op.verb) {
            let first = self.queue.iter().find(|(entry, _)| stays(entry));
            // It names an arrival, or stands before the first one.
            let came = |place: &QueuePlace, head: u64| {
                let stands = self.arrival(&place.entry).filter(|_| lives(&place.entry));
                (1..head).contains(&place.arrival) || stands.is_some_and(|arrival| arrival <= head)
            };
            let passes = |head: &&(Arc<str>, u64)| !place.as_ref().is_some_and(|place| came(place, head.1));
            let is_of_kind = |head: &(Arc<str>, u64)| match op.keys.kind() {
                Kind::Read => head.0.starts_with(['r', 's']),
                _ => head.0.starts_with(['p', 'q']) && !self.is_next(head),
            };
            // Where nobody is inside, it is the rule of any free lock.
            let is_stopped = |head: &&(Arc<str>, u64)| {
                *fair || if self.inside.owners().next().is_some() { !is_of_kind(head) } else { self.is_next(head) }
            };
            let is_free = self.holder.is_none() || self.inside.owners().next().is_some();
            if let Some(head) = first.filter(passes).filter(is_stopped).filter(|_| is_free) {
                return Err(format!("{} is first, and was passed", head.0));
            }
        }
        let is_let_in = match &op.verb {
            Verb::Acquire { adopt, .. } => enters && adopt.is_none(),
            Verb::Release { leave: Some(_), .. } | Verb::Leave => true,
            Verb::Release { .. } => matches!(op.keys.kind(), Kind::Semaphore(_)) && reply.verdict == Verdict::Ok,
            _ => false,
        };
        let asks = |entry: &Arc<str>| matches!(&op.verb, Verb::Acquire { place: Some(place), .. } if place.entry == *entry);
        let next =
            after.queue.iter().map(|(entry, _)| entry).find(|entry| stays(entry)).filter(|entry| is_let_in && !asks(entry));
        let Some(next) = next else { return Ok(()) };
        match after.inside.has_room_for(next) {
            Some(true) if woken.is_empty() => Err(format!("{next} may enter, and was not notified")),
            // Who has a permit kept may not come.
            Some(false) if notified.last().is_some_and(|last| last.starts_with("claim ")) && next.starts_with(['p', 'q']) => {
                Err(format!("{next} is the next one, and was not notified"))
            }
            _ => Ok(()),
        }
    }
}
