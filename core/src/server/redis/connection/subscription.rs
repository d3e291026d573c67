//! Subscription: the meaning of the answers to both subscriptions. Pure.

use crate::op::Failure;

/// The kind of a channel. A server of 7.0 or later has channels that belong to a slot, and its scripts publish there. An older one
/// has only plain channels. The client subscribes to both, and so finds out which kind the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Plain,
    Sharded,
}

/// The answers so far.
#[derive(Debug, Default)]
pub(crate) struct Subscription {
    plain: Option<Result<(), Failure>>,
    sharded: Option<Result<(), Failure>>,
}

impl Subscription {
    /// Takes an answer. After both of them, says whether the messages of this server's scripts will arrive.
    pub(crate) fn answered(&mut self, kind: Kind, refusal: Option<Failure>) -> Option<Result<(), Failure>> {
        let answer = refusal.map_or(Ok(()), Err);
        match kind {
            Kind::Plain => self.plain = Some(answer),
            Kind::Sharded => self.sharded = Some(answer),
        }
        match (self.plain.as_ref()?, self.sharded.as_ref()?) {
            (_, Ok(())) => Some(Ok(())),
            (plain, Err(refusal)) if is_unknown(refusal) => Some(plain.clone()),
            // The server has such channels, so its scripts use them, and this client may not listen there.
            (_, Err(refusal)) => Some(Err(refusal.clone())),
        }
    }
}

/// Whether the server, or a proxy in front of it, doesn't have the command at all.
fn is_unknown(refusal: &Failure) -> bool {
    let text = refusal.message.to_ascii_lowercase();
    ["unknown command", "unsupported", "not supported"].iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::FailureKind;

    fn denied() -> Failure {
        Failure::unknown(FailureKind::Denied, "NOPERM: this user has no permissions to access one of the channels")
    }

    fn unknown() -> Failure {
        Failure::unknown(FailureKind::Other, "ERR: unknown command `SSUBSCRIBE`, with args beginning with:")
    }

    #[test]
    fn what_the_scripts_will_use_has_to_be_confirmed() {
        for (plain, sharded, heard) in [
            (None, None, Ok(())),
            (None, Some(unknown()), Ok(())),
            (None, Some(denied()), Err(denied())),
            (Some(denied()), None, Ok(())),
            (Some(denied()), Some(unknown()), Err(denied())),
            (Some(denied()), Some(denied()), Err(denied())),
            (Some(unknown()), Some(unknown()), Err(unknown())),
        ] {
            let mut subscription = Subscription::default();
            assert_eq!(subscription.answered(Kind::Plain, plain.clone()), None);
            assert_eq!(subscription.answered(Kind::Sharded, sharded.clone()), Some(heard), "{plain:?} {sharded:?}");
        }
    }
}
