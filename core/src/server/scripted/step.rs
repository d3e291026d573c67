//! Steps: the answers of a scripted server, as a value and as text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::millis;
use crate::error::{Error, Remaining};
use crate::op::FailureKind;
use crate::owner::{Fields, escape};

/// The answer of a scripted server to one operation. The default is to behave like a real server.
///
/// It can be parsed from text. Times are in milliseconds, values are escaped as in an owner's (`%20` for a space).
///
/// | text | the server |
/// | --- | --- |
/// | `real` | behaves like a memory server |
/// | `granted`, `granted fence=7` | grants, in any state |
/// | `busy`, `busy owner=x ttl=500`, `busy ttl=none` | says that another holder has the lock |
/// | `gone` | says that the lock is free |
/// | `conflict type=list` | says that the key is no lock |
/// | `quarantine ttl=500` | is new and doesn't vote yet |
/// | `mismatch n=5 max_ttl=60000` | belongs to another quorum |
/// | `fail refused`, `fail disconnected applied` | fails, before or after having done it; the kinds are those of [`FailureKind`] |
/// | `silence`, `silence applied` | never answers |
///
/// Every step but the last can be late: `busy delay=200`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    pub(super) act: Act,
    pub(super) delay: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Act {
    #[default]
    Real,
    Granted {
        fence: Option<u64>,
    },
    Busy {
        owner: Arc<str>,
        remaining: Remaining,
    },
    Gone,
    Conflict {
        found: Arc<str>,
    },
    Quarantine {
        left: Duration,
    },
    Mismatch {
        servers: u32,
        max_ttl_ms: u64,
    },
    Fail {
        kind: FailureKind,
        applied: bool,
    },
    Nothing {
        applied: bool,
    },
}

/// The operations that only ask about the caller's own lock.
const OURS: [&str; 6] = ["confirm", "extend", "heal", "release", "end", "reset"];

impl Act {
    /// Whether the step can be the answer to an operation of this kind.
    pub(super) fn fits(&self, operation: &str) -> bool {
        match self {
            Self::Real | Self::Fail { .. } | Self::Nothing { .. } => true,
            Self::Granted { fence } => fence.is_none() || operation == "acquire",
            Self::Busy { .. } => operation == "acquire" || operation == "inspect" || OURS.contains(&operation),
            Self::Gone => operation == "inspect" || OURS.contains(&operation),
            Self::Conflict { .. } => true,
            Self::Quarantine { .. } => operation == "acquire" || operation == "greet",
            Self::Mismatch { .. } => ["acquire", "greet", "trust"].contains(&operation),
        }
    }
}

impl Step {
    /// The server behaves like a real one.
    #[must_use]
    pub fn real() -> Self {
        Self::default()
    }

    /// The operation succeeds, in any state.
    #[must_use]
    pub fn granted() -> Self {
        Act::Granted { fence: None }.into()
    }

    /// Another holder has the lock; the server's own keys stay unchanged.
    #[must_use]
    pub fn busy(owner: &str, remaining: Remaining) -> Self {
        Act::Busy { owner: owner.into(), remaining }.into()
    }

    /// The lock is free: the answer to a holder whose key no longer exists.
    #[must_use]
    pub fn gone() -> Self {
        Act::Gone.into()
    }

    /// The key holds a value of another type, which is named.
    #[must_use]
    pub fn conflict(found: &str) -> Self {
        Act::Conflict { found: found.into() }.into()
    }

    /// The server is new or lost its data, and votes after `left`.
    #[must_use]
    pub fn quarantine(left: Duration) -> Self {
        Act::Quarantine { left }.into()
    }

    /// The server belongs to another quorum.
    #[must_use]
    pub fn mismatch(servers: u32, max_ttl: Duration) -> Self {
        Act::Mismatch { servers, max_ttl_ms: millis(max_ttl) }.into()
    }

    /// There is no answer, for this reason, and nothing was done. Whether the client can know that nothing was done depends on the
    /// reason.
    #[must_use]
    pub fn fail(kind: FailureKind) -> Self {
        Act::Fail { kind, applied: false }.into()
    }

    /// There is no answer at all: the response timeout ends the wait.
    #[must_use]
    pub fn silence() -> Self {
        Act::Nothing { applied: false }.into()
    }

    /// The answer comes later by this time. The server executes the operation at once.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// A failure or silence after the server has executed the operation: the link was cut before the answer.
    #[must_use]
    pub fn applied(mut self) -> Self {
        if let Act::Fail { applied, .. } | Act::Nothing { applied } = &mut self.act {
            *applied = true;
        }
        self
    }
}

impl From<Act> for Step {
    fn from(act: Act) -> Self {
        Self { act, delay: Duration::ZERO }
    }
}

impl FromStr for Step {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Words::new(text).step()
    }
}

/// The text as it is parsed.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let applied = |applied: &bool| if *applied { " applied" } else { "" };
        match &self.act {
            Act::Real => write!(f, "real"),
            Act::Granted { fence: None } => write!(f, "granted"),
            Act::Granted { fence: Some(fence) } => write!(f, "granted fence={fence}"),
            Act::Busy { owner, remaining: Remaining::For(left) } => {
                write!(f, "busy owner={} ttl={}", escape(owner), millis(*left))
            }
            Act::Busy { owner, .. } => write!(f, "busy owner={} ttl=none", escape(owner)),
            Act::Gone => write!(f, "gone"),
            Act::Conflict { found } => write!(f, "conflict type={}", escape(found)),
            Act::Quarantine { left } => write!(f, "quarantine ttl={}", millis(*left)),
            Act::Mismatch { servers, max_ttl_ms } => write!(f, "mismatch n={servers} max_ttl={max_ttl_ms}"),
            Act::Fail { kind, applied: done } => write!(f, "fail {}{}", kind.as_str(), applied(done)),
            Act::Nothing { applied: done } => write!(f, "silence{}", applied(done)),
        }?;
        if self.delay.is_zero() { Ok(()) } else { write!(f, " delay={}", millis(self.delay)) }
    }
}

/// The words of a step's text; each is used once, and no word may remain.
struct Words<'a> {
    text: &'a str,
    plain: Vec<&'a str>,
    fields: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        let (fields, plain) = text.split_whitespace().partition(|word| word.contains('='));
        Self { text: text.trim(), plain, fields }
    }

    fn step(mut self) -> Result<Step, Error> {
        let delay = Duration::from_millis(self.number("delay")?.unwrap_or(0));
        let verb = if self.plain.is_empty() { "" } else { self.plain.remove(0) };
        let act = match verb {
            "real" => Act::Real,
            "granted" => Act::Granted { fence: self.number("fence")? },
            "busy" => self.busy()?,
            "gone" => Act::Gone,
            "conflict" => Act::Conflict { found: self.field("type").unwrap_or_else(|| "list".to_owned()).into() },
            "quarantine" => Act::Quarantine { left: Duration::from_millis(self.number("ttl")?.unwrap_or(1_000)) },
            "mismatch" => {
                Act::Mismatch { servers: self.number("n")?.unwrap_or(5), max_ttl_ms: self.number("max_ttl")?.unwrap_or(60_000) }
            }
            "fail" => Act::Fail { kind: self.kind()?, applied: self.flag("applied") },
            "silence" => Act::Nothing { applied: self.flag("applied") },
            _ => return Err(self.wrong("no step begins like that")),
        };
        if let Some(left) = self.plain.first().or(self.fields.first()) {
            return Err(self.wrong(&format!("it has a {left:?} too many")));
        }
        if matches!(act, Act::Nothing { .. }) && !delay.is_zero() {
            return Err(self.wrong("silence can't be late"));
        }
        Ok(Step { act, delay })
    }

    fn busy(&mut self) -> Result<Act, Error> {
        let owner = self.field("owner").unwrap_or_else(|| "somebody".to_owned()).into();
        let remaining = if let Some(at) = self.fields.iter().position(|field| *field == "ttl=none") {
            self.fields.remove(at);
            Remaining::Forever
        } else {
            Remaining::For(Duration::from_millis(self.number("ttl")?.unwrap_or(1_000)))
        };
        Ok(Act::Busy { owner, remaining })
    }

    fn kind(&mut self) -> Result<FailureKind, Error> {
        let kind = FailureKind::ALL.iter().copied().find(|kind| self.plain.first().is_some_and(|word| *word == kind.as_str()));
        if kind.is_some() {
            self.plain.remove(0);
        }
        kind.ok_or_else(|| self.wrong("fail needs the kind of failure"))
    }

    fn flag(&mut self, name: &str) -> bool {
        let at = self.plain.iter().position(|word| *word == name);
        at.map(|at| self.plain.remove(at)).is_some()
    }

    fn field(&mut self, key: &str) -> Option<String> {
        let at = self.fields.iter().position(|field| field.split_once('=').is_some_and(|(name, _)| name == key))?;
        Fields::parse(self.fields.remove(at)).get(key)
    }

    fn number<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, Error> {
        let Some(value) = self.field(key) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| self.wrong(&format!("{key}={value} is no number it can be")))
    }

    fn wrong(&self, why: &str) -> Error {
        Error::invalid("step", self.text, why.to_owned())
    }
}
