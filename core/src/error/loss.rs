//! Loss: how a hold was lost, its reason, the next owner and the overrun.

use std::time::Duration;

use crate::error::quoted::quoted;
use crate::wording::{Part, Text, words};

words! {
    /// The reason why a hold ended without its holder's action.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum LossReason, pub(crate) ALL;
    /// The reason's name, the same in every language.
    fn as_str, impl Display;
    /// Validity ran out before a majority confirmed a renewal.
    Expired = "expired",
    /// The key no longer exists on the servers.
    Missing = "missing",
    /// Another client holds the key, or has held it since.
    Taken = "taken",
    /// The key has this hold's value, but a newer fence was issued.
    Superseded = "superseded",
    /// A key of the lock holds a value that no lock writes there.
    Conflict = "conflict",
    /// `max_hold` has passed.
    MaxHold = "max_hold",
    /// The client was closed.
    Closed = "closed",
    /// The hold that was handed over has ended, or was adopted before.
    Ended = "ended",
}

/// The loss of a hold: why it was lost, the next holder, and how late the holder noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The reason.
    pub reason: LossReason,
    /// The owner value of the next holder, which has the lock now or had it in between, if the servers show it.
    pub next_owner: Option<String>,
    /// The fence of that hold, if the servers show it. A fence is about the microsecond in which it was issued, so it also shows when that
    /// hold began.
    pub next_fence: Option<u64>,
    /// Whether the hold of the next owner has ended since.
    pub(crate) next_has_ended: bool,
    /// With [`LossReason::Conflict`]: the wrong value, and its key.
    pub found: Option<String>,
    /// The overrun: how long the holder continued after the end of its validity, by this machine's clock.
    pub overrun: Duration,
    /// With [`LossReason::Expired`]: the servers that confirmed no renewal, and why, on one line. Empty if none was asked.
    pub(crate) silence: String,
}

impl Loss {
    /// A loss with a reason and no details.
    pub(crate) const fn new(reason: LossReason, overrun: Duration) -> Self {
        Self { reason, next_owner: None, next_fence: None, next_has_ended: false, found: None, overrun, silence: String::new() }
    }

    /// The loss of a holder that has continued for this overrun at least.
    pub(crate) fn after(self, overrun: Duration) -> Self {
        Self { overrun: self.overrun.max(overrun), ..self }
    }

    /// Whether validity ran out because the servers confirmed no renewal.
    pub(crate) const fn is_of_silence(&self) -> bool {
        matches!(self.reason, LossReason::Expired) && !self.silence.is_empty()
    }

    /// What was found on one line: the wrong value, or the errors of the servers that confirmed no renewal.
    pub(crate) fn finding(&self) -> Option<String> {
        let silence = || self.is_of_silence().then(|| self.silence.clone());
        self.found.as_deref().map(quoted).or_else(silence)
    }

    /// The loss as a sentence.
    pub(crate) fn sentence(&self) -> Text {
        let why = match (self.reason, &self.found) {
            (LossReason::Expired, _) if self.silence.is_empty() => "its validity ran out before a renewal was confirmed".into(),
            (LossReason::Expired, _) => format!("its validity ran out before a renewal was confirmed ({})", self.silence).into(),
            (LossReason::Missing, _) => "its key is gone from the server".into(),
            (LossReason::Taken, _) => match others(self.next_owner.as_deref(), self.next_fence, self.next_has_ended) {
                Some(others) => Text::new("{}", [Part::Words(others)]),
                None => "another client held it in between".into(),
            },
            (LossReason::Superseded, _) => "a newer fence was issued for it".into(),
            (LossReason::Conflict, found) => conflict(found.as_deref().unwrap_or("a value of another type")).into(),
            (LossReason::MaxHold, _) => Text::new("its {max_hold} has passed", []),
            (LossReason::Closed, _) => "its client was closed".into(),
            (LossReason::Ended, _) => "the hold that was handed over has ended, or was adopted before".into(),
        };
        let overrun = match self.overrun.as_millis() {
            0 => Text::default(),
            _ => Text::new("; the holder went on for {} after the end of its validity", [Part::whole_ms(self.overrun)]),
        };
        Text::new("{}{}", [Part::Text(why), Part::Text(overrun)])
    }
}

/// What one of the keys holds, as a part of a sentence.
pub(crate) fn conflict(found: &str) -> String {
    format!("one of its keys holds what no lock writes there: {}", quoted(found))
}

/// The next owner as a part of a sentence.
pub(crate) fn others(next_owner: Option<&str>, fence: Option<u64>, has_ended: bool) -> Option<String> {
    match (next_owner, fence) {
        (Some(next_owner), Some(fence)) if has_ended => {
            Some(format!("\"{}\" held it in between (fence {fence}), and holds it no more", quoted(next_owner)))
        }
        (Some(next_owner), Some(fence)) => Some(format!("it is held by \"{}\" (fence {fence})", quoted(next_owner))),
        (Some(next_owner), None) => Some(format!("it is held by \"{}\"", quoted(next_owner))),
        (None, Some(fence)) => Some(format!("another client held it in between (fence {fence}), and holds it no more")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_says_who_had_the_lock_and_whether_that_has_ended() {
        let loss = |reason, next_owner: Option<&str>, next_fence| Loss {
            next_owner: next_owner.map(str::to_owned),
            next_fence,
            ..Loss::new(reason, Duration::ZERO)
        };
        for (loss, expected) in [
            (loss(LossReason::Expired, None, None), "its validity ran out before a renewal was confirmed"),
            (
                Loss { silence: "redis://a: refused".into(), ..loss(LossReason::Expired, None, None) },
                "its validity ran out before a renewal was confirmed (redis://a: refused)",
            ),
            (loss(LossReason::Missing, None, None), "its key is gone from the server"),
            (loss(LossReason::Ended, None, None), "the hold that was handed over has ended, or was adopted before"),
            (loss(LossReason::Taken, Some("b"), None), "it is held by \"b\""),
            (loss(LossReason::Taken, Some("b"), Some(7)), "it is held by \"b\" (fence 7)"),
            (loss(LossReason::Taken, None, Some(7)), "another client held it in between (fence 7), and holds it no more"),
        ] {
            assert_eq!(loss.sentence().to_string(), expected);
        }
        for (micros, clause) in [(0, false), (999, false), (1_000, true)] {
            let loss = Loss::new(LossReason::Expired, Duration::from_micros(micros));
            assert_eq!(loss.sentence().to_string().contains("went on for"), clause, "{micros} µs");
        }
        let found = Some("string at {a}:~lt:fence".to_owned());
        let loss = Loss { found, ..Loss::new(LossReason::Conflict, Duration::from_millis(5)) };
        assert_eq!(
            loss.sentence().to_string(),
            "one of its keys holds what no lock writes there: string at {a}:~lt:fence; the holder went on for 5ms after the end of its validity"
        );
    }
}
