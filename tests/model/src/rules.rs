//! Rules that can be broken, one at a time: without each of them, the checker finds a counterexample.

/// A rule of the protocol, named after what is done instead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The largest of q votes is the token, although no majority voted it or confirmed it.
    NoWriteBack,
    /// A confirmation doesn't look at the owner, and counts from servers that never voted for us.
    ConfirmAnywhere,
    /// A confirmation doesn't look at the owner; it counts from servers that voted for us.
    ConfirmUnowned,
    /// A confirmation doesn't look for a newer vote.
    ConfirmOlder,
    /// N / 2 servers decide.
    SmallQuorum,
    /// A server that forgot votes at once.
    NoQuarantine,
    /// An acquire that finds its own value, or the one it adopts, returns the fence there instead of a vote.
    OldFence,
    /// A release deletes whatever is there.
    ReleaseUnowned,
    /// A key that an extension finds missing is written again before a majority has confirmed the extension.
    EarlyHeal,
    /// A vote above the token, which came after the choice, counts for it.
    CountAbove,
    /// Answers to an earlier extension count for the one under way.
    CountEarlierRound,
    /// A key is healed also where our acquire is unanswered, or was answered with a vote above the token.
    HealUnanswered,
    /// A key is healed also where our acquire failed without an answer: it may be applied yet, and nobody will hear of it.
    HealFailed,
    /// A key is healed also on a server in quarantine, which may have forgotten a vote for somebody else that still counts.
    HealInQuarantine,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 14] = [
        Self::NoWriteBack,
        Self::ConfirmAnywhere,
        Self::ConfirmUnowned,
        Self::ConfirmOlder,
        Self::SmallQuorum,
        Self::NoQuarantine,
        Self::OldFence,
        Self::ReleaseUnowned,
        Self::EarlyHeal,
        Self::CountAbove,
        Self::CountEarlierRound,
        Self::HealUnanswered,
        Self::HealFailed,
        Self::HealInQuarantine,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }
}
