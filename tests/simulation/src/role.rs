//! Role: the purpose of a socket.

use locktender::internals::redis;

pub(super) const ROLES: [Role; 3] = [Role::Operations, Role::Listening, Role::Lingering];

/// The purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Operations,
    /// Subscriptions. The first way has it.
    Listening,
    Lingering,
}

impl Role {
    /// The same for a connection that does operations.
    pub(super) fn of_connection(self) -> Option<redis::Role> {
        match self {
            Self::Operations => Some(redis::Role::Operations),
            Self::Listening => None,
            Self::Lingering => Some(redis::Role::Lingering),
        }
    }

    pub(super) fn of(role: redis::Role) -> Self {
        if role == redis::Role::Lingering { Self::Lingering } else { Self::Operations }
    }
}
