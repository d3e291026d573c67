//! Connection: when to connect to a server, what may be sent, and how operations end when the socket breaks. Decided without I/O.
//!
//! A transport brings events as [`Input`]s, lends its sockets the [`Buffers`], and carries out the [`Effect`]s in order. After each
//! input it writes the bytes that the buffers have to write, and it wakes the connection at [`Connection::wake_at`].

use std::net::SocketAddr;
use std::sync::Arc;

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::op::{Answer, Failure, FailureKind, Op, Verdict};
use crate::server::redis::commands::refusal;
use crate::server::redis::commands::words::Form;
use crate::server::redis::connection::backlog::Backlog;
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::conversation::Conversation;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::failure::{closed, disconnected, is_servers_fault, no_answer, no_connection, too_late};
use crate::server::redis::connection::handshake::Handshake;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::input::Input;
use crate::server::redis::connection::lingering::{Lingering, Why};
use crate::server::redis::connection::pipeline::Landing;
use crate::server::redis::connection::primary::{Cancelled, Primary};
use crate::server::redis::connection::question::Question;
use crate::server::redis::settings::Settings;

/// The state of the socket for operations.
pub(super) enum State {
    Down,
    /// A socket is being opened since this instant.
    Opening(Tick),
    Handshake(Box<Handshake>),
    Up(Box<Conversation>),
    /// The connection is closed for good.
    Over,
}

/// One way to a server, over all the sockets that it uses one after the other.
pub struct Connection {
    pub(super) settings: Arc<Settings>,
    pub(super) primary: Arc<Primary>,
    /// The number of sockets with a complete handshake, modulo 256.
    pub(super) sockets: u8,
    /// The address of the peer of the last socket.
    pub(super) peer: Option<SocketAddr>,
    pub(super) rng: fastrand::Rng,
    pub(super) state: State,
    /// The socket that was left last, while the server may still read from it.
    pub(super) lingering: Option<Lingering>,
    /// Set while something that was cancelled here may come late: then releases of the other connections are passed on here.
    pub(super) cancelled_here: Option<Cancelled>,
    /// The operations that wait for a socket: none while the connection is up.
    pub(super) backlog: Backlog,
    pub(super) backoff: Backoff,
    /// The reason why the last attempt failed. It answers operations that come before the next attempt.
    pub(super) last_failure: Option<Failure>,
    /// Whether an operation was refused since the last attempt, so that another attempt is worth it.
    wanted: bool,
    /// The time until which a connection is wanted because of holds, and the time of the next look for a successor of its peer.
    pub(super) kept_warm_until: Tick,
    pub(super) looks_at: Tick,
    /// Whether a close has begun: then only releases are accepted.
    pub(super) cancelled: bool,
    /// The time at which a close stops waiting for releases. Set by the close.
    pub(super) closing: Option<Tick>,
    /// Whether the server has refused a password, and a newer one is tried.
    pub(super) tries_other: bool,
    /// Into how many parts the replies of all that is under way are divided, one for each read, and whether some may be left.
    parts: usize,
    has_replies: bool,
}

impl Connection {
    /// A connection without any operation so far. `seed` spreads the attempts of several connections to connect again.
    #[must_use]
    pub fn new(settings: Arc<Settings>, primary: Arc<Primary>, seed: u64) -> Self {
        Self {
            settings,
            primary,
            sockets: 0,
            peer: None,
            rng: fastrand::Rng::with_seed(seed),
            state: State::Down,
            lingering: None,
            cancelled_here: None,
            backlog: Backlog::new(),
            backoff: Backoff::default(),
            last_failure: None,
            wanted: false,
            kept_warm_until: Tick::default(),
            looks_at: Tick::default(),
            cancelled: false,
            closing: None,
            tries_other: false,
            parts: 0,
            has_replies: false,
        }
    }

    /// The same, for a transport that reads in parts: it brings a read of no bytes while there [are replies](Self::has_replies).
    pub(crate) fn in_parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }

    /// Whether replies that were read may be left.
    pub(crate) fn has_replies(&self) -> bool {
        self.has_replies
    }

    /// The time at which [`Input::Wake`] is due.
    #[must_use]
    pub fn wake_at(&self) -> Tick {
        let state = match &self.state {
            State::Up(conversation) => conversation.pipeline.due(),
            State::Handshake(handshake) => handshake.until,
            State::Down => self.connects_at(),
            State::Opening(_) => Tick::NEVER,
            State::Over => return Tick::NEVER,
        };
        let lingering = self.lingering.as_ref().map_or(Tick::NEVER, |lingering| lingering.until);
        state.min(self.backlog.due()).min(lingering).min(self.closing.unwrap_or(Tick::NEVER))
    }

    /// Whether the connection is closed and has no work left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Whether there is a socket whose server knows this client.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// Whether a socket is being opened for operations.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening(_))
    }

    /// The number of commands that were sent, or lie in the buffers, and have no answer.
    pub(crate) fn under_way(&self) -> usize {
        if let State::Up(conversation) = &self.state { conversation.pipeline.len() } else { 0 }
    }

    /// Whether a caller waits for an answer, or bytes are to be written.
    pub(crate) fn is_busy(&self) -> bool {
        let is_unwritten = self.lingering.as_ref().is_some_and(Lingering::has_unwritten);
        is_unwritten
            || match &self.state {
                State::Handshake(_) => true,
                State::Up(conversation) => conversation.pipeline.is_busy() || !conversation.buffers.unwritten().is_empty(),
                State::Down | State::Opening(_) | State::Over => false,
            }
    }

    /// Whether an answer is to come that may say: send this command again, before any other.
    pub(crate) fn is_probing(&self) -> bool {
        matches!(&self.state, State::Up(conversation) if conversation.pipeline.is_probing())
    }

    /// The buffers of an open socket.
    pub fn buffers(&mut self, role: Role) -> Option<&mut Buffers> {
        match (role, &mut self.state) {
            (Role::Lingering, _) => self.lingering.as_mut().map(Lingering::buffers),
            (Role::Operations, State::Handshake(handshake)) => Some(&mut handshake.buffers),
            (Role::Operations, State::Up(conversation)) => Some(&mut conversation.buffers),
            (Role::Operations, _) => None,
        }
    }

    /// Takes one input, and appends the effects that the transport has to carry out.
    pub fn handle(&mut self, now: Tick, input: Input, out: &mut Vec<Effect>) {
        self.follow(now, out);
        match input {
            Input::Submit(pending) => self.submit(pending, now, out),
            Input::KeepWarm => self.keep_warm(now, out),
            Input::Verify => {
                self.looks_at = now;
                self.keep_warm(now, out);
            }
            Input::Opened(Role::Operations) => self.opened(out),
            Input::Unopened(Role::Operations, failure) => {
                if self.is_opening() {
                    self.unconnected(&failure, now, out);
                }
            }
            Input::Read(Role::Operations, count) => self.read(count, now, out),
            Input::Closed(Role::Operations, why) => self.closed(why, now, out),
            Input::Opened(Role::Lingering) | Input::Unopened(Role::Lingering, _) => (),
            Input::Read(Role::Lingering, count) => self.read_lingering(count, now, out),
            Input::Closed(Role::Lingering, _) => self.stop_lingering(out),
            Input::Undo(op) => self.send_undo(&op, now),
            Input::LogIn => self.log_in(now),
            Input::Wake => self.wake(now, out),
            Input::Cancel => self.cancel(now, out),
            Input::Close => self.close(now, out),
        }
        self.connect_if_due(now, out);
        self.end_if_over(now, out);
        self.count_cancelled();
    }

    fn submit(&mut self, pending: InFlight, now: Tick, out: &mut Vec<Effect>) {
        if self.closing.is_some() || self.cancelled && !pending.request.op.survives_reconnect() {
            return out.push(pending.end(Err(closed(false))));
        }
        if pending.request.deadline <= now {
            return out.push(pending.end(Err(too_late())));
        }
        let backs_off = now < self.backs_off_until();
        match (&mut self.state, &self.last_failure) {
            (State::Up(conversation), _) => out.extend(conversation.submit(pending, &self.primary, now)),
            (State::Down, Some(failure)) if backs_off && !waits(&pending.request.op) => {
                self.wanted = true;
                out.push(pending.end(Err(failure.clone())));
            }
            _ => self.backlog.push(pending),
        }
    }

    fn backs_off_until(&self) -> Tick {
        self.backoff.until(self.primary.connected_at())
    }

    /// The time of the next attempt to connect, if one is wanted then. After a close only releases are worth it. `wake_at` asks
    /// this, too: a wake that comes late, as after a pause of the process, must not find the attempt unwanted and be set again.
    fn connects_at(&self) -> Tick {
        let at = self.backs_off_until();
        let is_open = self.closing.is_none();
        let wanted = self.wanted || at < self.kept_warm_until;
        if is_open && wanted || !self.backlog.is_empty() { at } else { Tick::NEVER }
    }

    /// Starts connecting, if it is time.
    fn connect_if_due(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let in_time = self.closing.is_none_or(|until| now < until);
        if matches!(self.state, State::Down) && now >= self.connects_at() && in_time {
            self.wanted = false;
            self.state = State::Opening(now);
            out.push(Effect::Open(Role::Operations));
        }
    }

    fn opened(&mut self, out: &mut Vec<Effect>) {
        if let State::Opening(since) = self.state {
            let until = since.after(self.settings.connect_timeout);
            self.state = State::Handshake(Box::new(Handshake::begin(&self.settings, until)));
        } else {
            out.push(Effect::Drop(Role::Operations));
        }
    }

    fn read(&mut self, count: usize, now: Tick, out: &mut Vec<Effect>) {
        if let Some(buffers) = self.buffers(Role::Operations) {
            buffers.replies.filled(count);
        }
        if let State::Handshake(handshake) = &mut self.state {
            match handshake.read() {
                None => {}
                Some(assessed) => self.assessed(assessed, now, out),
            }
        }
        let mut left = self.under_way().checked_div(self.parts).map_or(usize::MAX, |part| part.max(1));
        self.has_replies = false;
        while let State::Up(conversation) = &mut self.state {
            // Behind the last answer there is none: one more would be taken for that of the next operation.
            if left == 0 && conversation.pipeline.len() > 0 {
                self.has_replies = true;
                return;
            }
            let Some(answer) = conversation.next() else { return };
            match conversation.pipeline.land(answer) {
                Landing::Answered(pending, answer, sent) => {
                    left -= 1;
                    self.answered(pending, answer, (sent, now), out);
                }
                Landing::Unknown(pending) if now < pending.request.deadline => conversation.send(pending, Form::ByText, now),
                Landing::Unknown(pending) => out.push(pending.end(Err(too_late()))),
                Landing::ByScript { pending, took, lasting } => self.by_script(pending, (took, lasting), now, out),
                Landing::Question(Question::Time, value, at) => self.on_time(&value, at, now),
                Landing::Question(Question::Replid, value, _) => self.on_replid(&value, now, out),
                Landing::Question(Question::Asking, ..) | Landing::Late => {}
                Landing::Question(Question::Login, value, _) => self.logged_in(value, now, out),
                Landing::Broken(error) => self.broken(&refusal::failure(&error, true), Why::Useless, now, out),
            }
        }
    }

    /// Sends an operation as a script that was not done without one.
    fn by_script(&mut self, pending: InFlight, (took, lasting): (bool, bool), now: Tick, out: &mut Vec<Effect>) {
        let State::Up(conversation) = &mut self.state else { return };
        conversation.gives_way(&pending.request.op, lasting);
        if pending.request.only_if_free && !took {
            // It comes again, and is done by script then.
            pending.request.op.keys().into_iter().for_each(|keys| self.primary.busy.met(keys.lock()));
            return out.push(pending.refuse());
        }
        if now < pending.request.deadline {
            conversation.send(InFlight { tried: Some(took), ..pending }, Form::BySha, now);
        } else if took {
            conversation.give_back(pending, Err(too_late()), now);
        } else {
            out.push(pending.end(Err(too_late())));
        }
    }

    pub(super) fn unconnected(&mut self, failure: &Failure, now: Tick, out: &mut Vec<Effect>) {
        self.state = State::Down;
        self.backoff.failed(now, self.rng.f64());
        out.extend(self.primary.health.failed(failure).map(Effect::Report));
        // A server of another quorum will not accept this client's releases either.
        let hopeless = failure.kind == FailureKind::Mismatch;
        self.backlog.refuse(failure, |pending| hopeless || !pending.request.op.survives_reconnect(), out);
        self.last_failure = Some(failure.clone());
    }

    fn answered(&mut self, pending: InFlight, answer: Answer, (sent, now): (Tick, Tick), out: &mut Vec<Effect>) {
        if matches!(&answer, Ok(reply) if reply.verdict == Verdict::NewReplid) {
            return self.repeat_handshake(pending, now, out);
        }
        let Some(pending) = self.suspect(pending, &answer, now) else { return };
        if let Ok(reply) = &answer {
            self.on_script_time(reply.time_us, sent, now);
            self.primary.learn(&pending.request.op, reply, pending.tried.is_some());
        }
        // The state is reported before the answer: the receiver of the answer then knows the state.
        let fault = match &answer {
            Ok(_) => {
                out.extend(self.primary.health.recovered().map(Effect::Report));
                None
            }
            // A node of a cluster that sends on serves well.
            Err(failure) if is_servers_fault(failure.kind) && failure.redirect.is_none() => {
                out.extend(self.primary.health.failed(failure).map(Effect::Report));
                Some(failure.clone())
            }
            Err(_) => None,
        };
        let is_granted = matches!(&answer, Ok(reply) if reply.verdict == Verdict::Vote);
        match &mut self.state {
            State::Up(conversation) if pending.tried == Some(true) && !is_granted && !mutant!(TakenKept) => {
                conversation.give_back(pending, answer, now)
            }
            _ => out.push(pending.end(answer)),
        }
        // A primary that became a replica stays one. Only resolving the name and connecting again finds its successor.
        if let Some(fault) = fault.filter(|fault| fault.kind == FailureKind::ReadOnly) {
            self.leave(&fault, (false, Why::Useless), now, out);
        }
    }

    /// Does the work that is due.
    fn wake(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if let State::Handshake(handshake) = &self.state
            && now >= handshake.until
        {
            let failure = handshake.late();
            out.push(Effect::Drop(Role::Operations));
            self.unconnected(&failure, now, out);
        }
        if self.lingering.as_ref().is_some_and(|lingering| now >= lingering.until) {
            self.stop_lingering(out);
        }
        if now >= self.backlog.due() {
            self.backlog.refuse(&no_connection(self.last_failure.as_ref()), |pending| pending.request.deadline <= now, out);
        }
        let mut half_open = false;
        if let State::Up(conversation) = &mut self.state {
            let overdue = conversation.pipeline.overdue(now);
            half_open = overdue.silent;
            let failure = no_answer(self.settings.response_timeout);
            if overdue.slow {
                out.extend(self.primary.health.failed(&failure).map(Effect::Report));
            }
            out.extend(overdue.late.into_iter().map(|pending| pending.end(Err(failure.clone()))));
        }
        if half_open {
            self.broken(&disconnected(), Why::Silent, now, out);
        }
    }
}

/// Whether an operation waits for the next attempt to connect.
fn waits(op: &Op) -> bool {
    op.survives_reconnect() || op.asks_afresh()
}

#[cfg(test)]
#[path = "connection_tests.rs"]
pub(super) mod tests;
