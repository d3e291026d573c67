//! Bodies: the code of a task that runs while the task holds a lock. A task that asks for the same lock inside of its body would
//! wait for itself. So its acquire fails at once, with the place where the body began. A host whose tasks may leave a body
//! suspended and go on with other work says of each body whether it runs.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use crate::name::Kind;
use crate::session::actor::LockActor;
use crate::sync::Mutex;

/// The open bodies of one client.
#[derive(Default)]
pub(crate) struct Bodies(Mutex<HashMap<u64, OfTask>>);

/// The bodies of one task, by the keys of their locks.
type OfTask = HashMap<Box<str>, Vec<Body>>;

/// One body, found by its task and by its lock's key. A body that has ended without being forgotten does no harm: its hold is
/// over.
#[derive(Clone)]
pub(crate) struct Body {
    actor: Weak<LockActor>,
    /// The owner value of the hold.
    pub(crate) owner: Arc<str>,
    /// The place where the body began, as the caller named it.
    pub(crate) place: Option<Arc<str>>,
    /// The host's number of the body.
    pub(crate) number: u64,
}

impl Bodies {
    /// Notes a body of `task` under the hold of `actor`.
    pub(crate) fn open(
        &self,
        (task, lock): (u64, &str),
        actor: &Arc<LockActor>,
        owner: &Arc<str>,
        (place, number): (Option<&str>, u64),
    ) {
        let body = Body { actor: Arc::downgrade(actor), owner: Arc::clone(owner), place: place.map(Arc::from), number };
        let mut bodies = self.0.lock();
        let own = bodies.entry(task).or_default().entry(lock.into()).or_default();
        own.retain(|body| body.actor.strong_count() > 0);
        own.push(body);
    }

    /// Forgets the body of `task` under the hold of `actor`.
    pub(crate) fn close(&self, task: u64, lock: &str, actor: &Arc<LockActor>) {
        let mut bodies = self.0.lock();
        let Some(own) = bodies.get_mut(&task) else { return };
        if let Some(of_lock) = own.get_mut(lock) {
            of_lock.retain(|body| !std::ptr::eq(body.actor.as_ptr(), Arc::as_ptr(actor)));
            if of_lock.is_empty() {
                own.remove(lock);
            }
        }
        if own.is_empty() {
            bodies.remove(&task);
        }
    }

    /// The bodies of `tasks` that hold `lock` now: not released, not handed over, not lost. Each with the kind of its hold.
    pub(crate) fn enclosing(&self, tasks: &[u64], lock: &str) -> Vec<(Kind, Body)> {
        let find = |task| self.0.lock().get(task).and_then(|own| own.get(lock)).cloned().unwrap_or_default();
        let held = |body: Body| {
            let actor = body.actor.upgrade().filter(|actor| actor.check().is_ok())?;
            Some((actor.recipe.keys.kind(), body))
        };
        tasks.iter().flat_map(find).filter_map(held).collect()
    }

    /// The owner of a reader's hold of `tasks`.
    pub(crate) fn reader(&self, tasks: &[u64], lock: &str) -> Option<Arc<str>> {
        self.enclosing(tasks, lock).into_iter().find(|(kind, _)| *kind == Kind::Read).map(|(_, body)| body.owner)
    }

    /// The body for whose end an acquire of this kind would wait, if it is sure that one of `tasks` would wait for itself.
    pub(crate) fn waited_for(&self, tasks: &[u64], lock: &str, kind: Kind) -> Option<Body> {
        let inside = self.enclosing(tasks, lock);
        let is_beside = |(of, _): &(Kind, Body)| match kind {
            Kind::Semaphore(_) => matches!(of, Kind::Semaphore(_)),
            Kind::Read => *of == Kind::Read,
            Kind::Exclusive | Kind::Quorum | Kind::Job | Kind::Several => false,
        };
        let most = if let Kind::Semaphore(limit) = kind { usize::try_from(limit).unwrap_or(usize::MAX) } else { usize::MAX };
        let has_room = inside.iter().all(is_beside) && inside.len() < most;
        inside.into_iter().next().map(|(_, body)| body).filter(|_| !has_room)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Client, Code, Lock, Wait};

    fn lock(client: &Client, tasks: &[u64]) -> Lock {
        tasks.iter().fold(client.lock("orders:42").wait(Duration::from_millis(20)), |lock, task| lock.caller(*task))
    }

    fn refused(lock: &Lock) -> Option<String> {
        let error = lock.acquire_blocking().err()?;
        (error.code() == Code::Deadlock).then(|| error.to_string())
    }

    #[test]
    fn a_task_that_would_wait_for_itself_is_refused_at_once() {
        let client = Client::open("memory://bodies-same-task").unwrap();
        let held = lock(&client, &[1]).acquire_blocking().unwrap();
        assert_eq!(refused(&lock(&client, &[1])), None, "it isn't in a body yet: another thread may release it");
        held.enter(1, Some("app.py:12"), 0);
        let text = refused(&lock(&client, &[1]).wait(Wait::Forever)).unwrap();
        assert!(text.contains("app.py:12") && text.contains("re-entrant") && text.contains("orders:42"), "{text}");
    }

    #[test]
    fn only_what_is_sure_to_wait_for_itself_is_refused() {
        let client = Client::open("memory://bodies-others").unwrap();
        let rival = Client::open("memory://bodies-elsewhere").unwrap();
        let held = lock(&client, &[1]).acquire_blocking().unwrap();
        held.enter(1, None, 0);
        assert_eq!(refused(&lock(&client, &[2])), None, "another task's");
        assert_eq!(refused(&lock(&client, &[])), None, "nobody said which task");
        assert_eq!(refused(&lock(&client, &[1]).wait(Duration::ZERO)), None, "one attempt");
        assert!(lock(&client, &[1]).try_acquire_blocking().unwrap().is_none(), "busy is an answer");
        assert!(client.lock("orders:43").caller(1).acquire_blocking().is_ok(), "another lock");
        assert!(lock(&rival, &[1]).acquire_blocking().is_ok(), "another server");
        assert!(refused(&lock(&client, &[3, 1, 2])).is_some(), "inside of several");
    }

    #[test]
    fn a_task_that_left_its_body_suspended_waits() {
        let client = Client::open("memory://bodies-suspended").unwrap();
        let held = lock(&client, &[1]).acquire_blocking().unwrap();
        held.enter(1, None, 7);
        let asks = |task, runs| lock(&client, &[]).caller_in(task, |number| (number == 7) == runs);
        assert!(refused(&asks(1, true)).is_some(), "the body runs");
        assert_eq!(refused(&asks(1, false)), None, "it is suspended");
        assert_eq!(refused(&asks(2, true)), None, "another task's");
        held.leave().blocking().unwrap();
        asks(1, true).acquire_blocking().unwrap();
    }

    #[test]
    fn a_body_whose_hold_is_over_is_in_nobodys_way() {
        let client = Client::open("memory://bodies-over").unwrap();
        let enter = || {
            let held = lock(&client, &[1]).acquire_blocking().unwrap();
            held.enter(1, None, 0);
            held
        };
        let held = enter();
        held.release().blocking().unwrap();
        assert_eq!(refused(&lock(&client, &[1])), None, "released inside of the body");
        let held = enter();
        let ticket = held.hand_over().unwrap();
        client.adopt(&ticket).blocking().unwrap();
        let held = enter();
        held.leave().blocking().unwrap();
        held.enter(1, None, 0);
        assert_eq!(refused(&lock(&client, &[1])), None, "left");
        let lost = lock(&client, &[1]).ttl(Duration::from_millis(50)).renew(false).acquire_blocking().unwrap();
        lost.enter(1, None, 0);
        lost.lost().blocking().unwrap();
        assert_eq!(refused(&lock(&client, &[1])), None, "lost");
    }

    #[cfg(feature = "testing")]
    #[test]
    fn a_hold_that_was_asked_for_its_end_is_in_nobodys_way() {
        let server = crate::server::scripted::ScriptedServer::new("bodies-ending");
        server.play("acquire: real delay=20").unwrap();
        let client = Client::builder().server(server).build().unwrap();
        let (sender, received) = std::sync::mpsc::channel();
        let again = lock(&client, &[1]).wait(Duration::from_secs(5));
        let granted = lock(&client, &[1]).acquire().then(move |held| {
            // This thread is still busy with the grant, so the end of the hold has to wait for that.
            let held = held.unwrap();
            held.enter(1, None, 0);
            drop(held.leave().then(drop));
            drop(again.acquire().then(move |held| sender.send(held.map(drop)).unwrap()));
        });
        received.recv().unwrap().unwrap();
        drop(granted);
    }
}
