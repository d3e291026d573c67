//! A scenario: the number of servers and attempts, the faults, and the rule that is broken.

use crate::rules::Rule;

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// N.
    pub servers: usize,
    /// How many attempts there are, at most 4.
    pub attempts: usize,
    /// Whether a key outlives the validity of the round that wrote it. Without, any key may expire at any moment.
    pub timed: bool,
    /// How many deadlines of one hold may lie ahead: 1 is a hold that isn't extended; at most 3.
    pub ahead: u8,
    /// Whether servers may lose their data (and go into quarantine).
    pub forgets: bool,
    /// Whether a hold may be handed over and adopted.
    pub hands_over: bool,
    /// Whether the servers' fences differ at the start.
    pub skewed: bool,
    /// Whether an acquire may be applied a second time.
    pub resends: bool,
    /// The rule that is broken.
    pub broken: Option<Rule>,
}

impl Scenario {
    /// Timed, without further faults than lost and delayed messages.
    #[must_use]
    pub const fn timed(servers: usize, attempts: usize) -> Self {
        Self {
            servers,
            attempts,
            timed: true,
            ahead: 1,
            forgets: false,
            hands_over: false,
            skewed: false,
            resends: false,
            broken: None,
        }
    }

    /// Without any assumption on time: only the order of fences is promised.
    #[must_use]
    pub const fn untimed(servers: usize, attempts: usize) -> Self {
        Self { timed: false, ..Self::timed(servers, attempts) }
    }

    /// With extensions and heals.
    #[must_use]
    pub const fn extending(self, ahead: u8) -> Self {
        Self { ahead, ..self }
    }

    /// With servers that lose their data.
    #[must_use]
    pub const fn forgetting(self) -> Self {
        Self { forgets: true, ..self }
    }

    /// With hand-overs.
    #[must_use]
    pub const fn handing_over(self) -> Self {
        Self { hands_over: true, ..self }
    }

    /// With different fences at the start.
    #[must_use]
    pub const fn skewed(self) -> Self {
        Self { skewed: true, ..self }
    }

    /// With acquires that are applied twice.
    #[must_use]
    pub const fn resending(self) -> Self {
        Self { resends: true, ..self }
    }

    /// With a rule broken.
    #[must_use]
    pub const fn broken(self, rule: Rule) -> Self {
        Self { broken: Some(rule), ..self }
    }

    /// Whether order is promised: only while no server forgets its fence.
    #[must_use]
    pub const fn promises_order(&self) -> bool {
        !self.forgets
    }

    /// Whether exclusion is promised.
    #[must_use]
    pub const fn promises_exclusion(&self) -> bool {
        self.timed
    }
}

impl std::fmt::Display for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} servers × {} attempts, {}", self.servers, self.attempts, if self.timed { "timed" } else { "untimed" })?;
        if self.ahead > 1 {
            write!(f, ", extending ({} deadlines)", self.ahead)?;
        }
        for (on, what) in [
            (self.forgets, "forgetting"),
            (self.hands_over, "handing over"),
            (self.skewed, "skewed"),
            (self.resends, "resending"),
        ] {
            if on {
                write!(f, ", {what}")?;
            }
        }
        self.broken.map_or(Ok(()), |rule| write!(f, ", broken: {}", rule.name()))
    }
}
