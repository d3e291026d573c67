//! Listening: the work that a connection does for its subscriber.

use std::sync::Arc;

use redis::Value;

use super::connection::{Connection, State};
use crate::clock::Tick;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::listening::Ending;
use crate::server::redis::connection::question::Question;
use crate::server::redis::connection::second::Second;
use crate::server::redis::connection::subscriber::{Look, Subscriber};
use crate::server::redis::listening::listener::ChannelListener;

impl Connection {
    /// Takes the first listener.
    pub(super) fn listen(&mut self, listener: ChannelListener) {
        if self.closing.is_none() && self.subscriber.is_none() {
            self.subscriber = Some(Subscriber::new(listener, Arc::clone(&self.settings)));
        }
    }

    /// Begins to listen on the connection, if the subscriber waits for that.
    pub(super) fn attend(&mut self, now: Tick) {
        if let (Some(subscriber), State::Up(conversation)) = (&mut self.subscriber, &mut self.state) {
            let questions = subscriber.begin(now, conversation.pipeline.reads());
            conversation.ask(questions, subscriber.channel(), now);
        }
    }

    /// Gives the subscriber an answer.
    pub(super) fn heard(&mut self, question: Question, value: Value, now: Tick, out: &mut Vec<Effect>) {
        if let (Some(subscriber), State::Up(conversation)) = (&mut self.subscriber, &mut self.state) {
            let questions = subscriber.answered(question, value, (now, conversation.pipeline.reads()), out);
            conversation.ask(questions, subscriber.channel(), now);
        }
    }

    /// Gives the subscriber the time; says whether it found that the connection is dead.
    pub(super) fn listens_in_vain(&mut self, now: Tick, out: &mut Vec<Effect>) -> bool {
        self.forget_listener(out, Subscriber::is_over);
        let Some(subscriber) = &mut self.subscriber else { return false };
        let chance = self.rng.f64();
        let State::Up(conversation) = &mut self.state else {
            subscriber.wake(now, 0, chance, out);
            return false;
        };
        match subscriber.wake(now, conversation.pipeline.reads(), chance, out) {
            Look::HalfOpen => true,
            Look::Ask(questions) => {
                conversation.ask(questions, subscriber.channel(), now);
                false
            }
        }
    }

    /// Gives the subscriber an event of the second connection.
    pub(super) fn bring_to_second(
        &mut self,
        now: Tick,
        out: &mut Vec<Effect>,
        event: impl FnOnce(&mut Second, &mut ChannelListener, &mut Vec<Effect>) -> Option<Ending>,
    ) {
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.second((now, self.rng.f64()), out, event);
        }
    }

    /// Ends listening if the subscriber `is_over`, and gives up the second connection.
    pub(super) fn forget_listener(&mut self, out: &mut Vec<Effect>, is_over: impl FnOnce(&Subscriber) -> bool) {
        if let Some(subscriber) = self.subscriber.take_if(|subscriber| is_over(subscriber)) {
            subscriber.drop_second(out);
        }
    }
}
