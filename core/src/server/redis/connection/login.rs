//! Login: the credentials of a connection change while it lives.

use std::sync::Arc;

use redis::Value;

use super::connection::{Connection, State};
use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::server_state::ServerState;
use crate::server::redis::login::Login;

impl Connection {
    /// Sends the server the newest credentials, unless it knows them.
    pub(super) fn log_in(&mut self, now: Tick) {
        if self.settings.provided.is_none() {
            return;
        }
        let login = self.settings.login();
        if let State::Up(conversation) = &mut self.state {
            conversation.log_in(login, now);
        }
    }

    /// Takes the answer to new credentials. A server that refuses them leaves the connection as it was.
    pub(super) fn logged_in(&mut self, value: Value, now: Tick, out: &mut Vec<Effect>) {
        let State::Up(conversation) = &mut self.state else { return };
        conversation.logs_in = false;
        let login = Arc::clone(&conversation.login);
        if let Value::ServerError(error) = value {
            let failure = refused(&error.into(), &login);
            if self.settings.refused(&login, &failure, true, now) {
                out.push(Effect::Report(ServerState::Warning(failure.message)));
            }
        } else {
            self.settings.accepted(&login);
        }
        // Others may have come meanwhile.
        self.log_in(now);
    }

    /// The server has let the connection in with these credentials.
    pub(super) fn on_connected(&mut self, login: &Arc<Login>) {
        self.tries_other = false;
        self.settings.accepted(login);
    }

    /// Connects once more, with other credentials, where a provider may have some. Returns whether it does.
    pub(super) fn has_others(&mut self, login: &Arc<Login>, failure: &Failure, now: Tick, out: &mut Vec<Effect>) -> bool {
        self.settings.refused(login, failure, false, now);
        self.tries_other = self.settings.provided.is_some() && self.closing.is_none() && !self.tries_other;
        if self.tries_other {
            self.state = State::Opening(now);
            out.push(Effect::Open(Role::Operations));
        }
        self.tries_other
    }
}

/// The failure of a connection whose server refuses new credentials. A server may repeat what it doesn't understand.
fn refused(error: &redis::RedisError, login: &Login) -> Failure {
    let message = refusal::failure(error, false);
    let message = if login.is_repeated_in(&message.message) { String::new() } else { format!(" ({})", message.message) };
    let why = format!(
        "the server refused new credentials{message}; the connection continues with the earlier ones, and `credentials` is asked again"
    );
    Failure::not_applied(FailureKind::Denied, why)
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
