//! Sentinel: what sentinels report of a service, and which node that makes its primary. Pure: answers in, the choice out.
//!
//! The role that a node shows is not enough: an old primary that is started again calls itself `master` for some ten seconds, until
//! a sentinel finds it. So the choice goes by the *config epoch*, a number that rises with each failover.

use std::collections::BTreeSet;
use std::time::Duration;

use redis::{RedisResult, Value};

use crate::clock::Tick;
use crate::error::quoted::quoted;
use crate::mutant::mutant;
use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;
use crate::server::redis::commands::refusal;
use crate::server::redis::sentinel_groups::{Believed, Ids, Member, believed};

/// The time for which later answers are waited for after the first one that names a primary.
const GATHER: Duration = Duration::from_millis(50);

/// The same for a client that knows none of them yet.
const GATHER_FIRST: Duration = Duration::from_millis(300);

/// The primary of a service, as a sentinel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) address: Address,
    /// The config epoch: it rises with each failover.
    pub(crate) epoch: u64,
    /// Whether the sentinel, or a quorum of them, considers the primary down.
    pub(crate) is_down: bool,
    /// The number of sentinels that have to agree before a failover.
    pub(crate) quorum: u64,
    /// The time of silence after which a sentinel considers the primary down, in milliseconds.
    pub(crate) down_after_ms: u64,
}

/// What a sentinel reports about a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PrimaryReply {
    Named(Named),
    /// It watches no service of this name.
    Unknown,
    /// It could not be asked, or refuses to answer.
    Failed(Failure),
}

/// The questions about a service: for its primary, for the other sentinels, and for the sentinel's own id.
pub(crate) fn questions(service: &str) -> [Vec<u8>; 3] {
    let about = |what| redis::cmd("SENTINEL").arg(what).arg(service).get_packed_command();
    [about("MASTER"), about("SENTINELS"), redis::cmd("SENTINEL").arg("MYID").get_packed_command()]
}

/// Takes the answer to the credentials. A sentinel repeats what it doesn't understand, so none of its words are shown.
///
/// # Errors
/// `Denied` for wrong credentials, and where none are asked for.
pub(crate) fn logged_in(answer: RedisResult<Value>) -> Result<(), Failure> {
    let Err(error) = answer.and_then(Value::extract_error) else { return Ok(()) };
    let text = error.to_string();
    let failure = refusal::failure(&error, false);
    Err(match (error.code(), failure.kind) {
        (Some("ERR"), _) if text.contains("without any password") => {
            denied("the sentinel asks for no password: leave sentinel_password out")
        }
        (Some(_), FailureKind::Denied) => denied("the sentinel refuses sentinel_user or sentinel_password"),
        (Some(_), _) => Failure::not_applied(failure.kind, "the sentinel answered its password with an error"),
        (None, _) => failure,
    })
}

fn denied(why: &str) -> Failure {
    Failure::not_applied(FailureKind::Denied, why)
}

/// The meaning of the answer to `SENTINEL MASTER`.
pub(crate) fn primary_reply(answer: RedisResult<Value>) -> PrimaryReply {
    let value = match answer.and_then(Value::extract_error) {
        Ok(value) => value,
        Err(error) => {
            let detail = error.detail().unwrap_or_default().to_ascii_lowercase();
            let why = match error.code() {
                Some("ERR") if detail.contains("no such master") => return PrimaryReply::Unknown,
                Some("ERR") if detail.contains("unknown command") => {
                    let why = "what answers there is no sentinel: the URL of a single server begins with redis://";
                    Failure::not_applied(FailureKind::Mismatch, why)
                }
                Some("NOAUTH") => denied("the sentinel asks for a password: write ?sentinel_password=… behind the service"),
                Some("NOPERM") => denied("the sentinel's user may not ask for a service (ACL +sentinel|master)"),
                _ => refusal::failure(&error, false),
            };
            return PrimaryReply::Failed(why);
        }
    };
    match value {
        Value::Nil => PrimaryReply::Unknown,
        value => named(&value)
            .map_or_else(|| PrimaryReply::Failed(Failure::not_applied(FailureKind::Protocol, GARBAGE)), PrimaryReply::Named),
    }
}

const GARBAGE: &str = "the sentinel's answer names no primary";

/// The names and values of a node, as sentinels list them.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn of(value: &Value) -> Option<Self> {
        redis::from_redis_value_ref(value).ok().map(Self)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    fn address(&self) -> Option<Address> {
        let host = self.get("ip").filter(|host| !host.is_empty())?.to_owned();
        let port = self.get("port")?.parse().ok().filter(|port| *port > 0)?;
        Some(Address { host, port })
    }
}

fn named(value: &Value) -> Option<Named> {
    let fields = Fields::of(value)?;
    let is_down = fields.get("flags").is_some_and(|flags| flags.split(',').any(|flag| matches!(flag, "s_down" | "o_down")));
    Some(Named {
        address: fields.address()?,
        epoch: fields.number("config-epoch")?,
        is_down,
        quorum: fields.number("quorum").unwrap_or_default(),
        down_after_ms: fields.number("down-after-milliseconds").unwrap_or_default(),
    })
}

/// The sentinels in the answer to `SENTINEL SENTINELS`, and their ids. Where that is refused, there are none.
pub(crate) fn others(answer: RedisResult<Value>) -> (Vec<Address>, Vec<String>) {
    let list = match answer {
        Ok(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let fields: Vec<Fields> = list.iter().filter_map(Fields::of).collect();
    let ids = fields.iter().filter_map(|fields| fields.get("runid")).filter(|id| !id.is_empty());
    (fields.iter().filter_map(Fields::address).collect(), ids.map(str::to_owned).collect())
}

/// The answer to `SENTINEL MYID`, if the sentinel may show it.
pub(crate) fn own_id(answer: RedisResult<Value>) -> Option<String> {
    redis::from_redis_value(answer.and_then(Value::extract_error).ok()?).ok().filter(|id: &String| !id.is_empty())
}

/// Whether a message of the channel `+switch-master` is about this service. It says the service, the old place and the new one.
pub(crate) fn is_about(message: &str, service: &str) -> bool {
    message.strip_prefix(service).is_some_and(|rest| rest.starts_with(' '))
}

/// One round of questions to all sentinels that are known.
pub(crate) struct Poll {
    service: String,
    pub(crate) asked: Vec<Address>,
    /// The epoch that was chosen last: what is below it is out of date.
    floor: u64,
    /// The sentinels that were believed before, by their ids, and the number of those asked that are hosts of the URL: the first ones.
    known: BTreeSet<String>,
    hosts: usize,
    answers: Vec<(Address, PrimaryReply, Ids)>,
    /// The time from which on the answers so far are enough, if one of them names a primary.
    pub(crate) gathers_until: Tick,
}

impl Poll {
    pub(crate) fn new(service: &str, asked: Vec<Address>, floor: u64, known: BTreeSet<String>, hosts: usize) -> Self {
        let answers = Vec::new();
        Self { service: service.to_owned(), asked, floor, known, hosts, answers, gathers_until: Tick::NEVER }
    }

    /// Takes the answer of a sentinel.
    pub(crate) fn take(&mut self, from: Address, reply: PrimaryReply, ids: Ids, now: Tick) {
        if matches!(&reply, PrimaryReply::Named(named) if !self.is_out_of_date(named)) {
            // The first answers to a new client may all be of another group.
            let gather = if self.known.is_empty() && self.hosts > 1 { GATHER_FIRST } else { GATHER };
            self.gathers_until = self.gathers_until.min(now.after(gather));
        }
        self.answers.push((from, reply, ids));
    }

    /// Those that are believed, among those that name a primary.
    fn believed(&self) -> Result<Vec<(&Named, &Ids)>, Failure> {
        let named: Vec<(&Address, &Named, &Ids)> = self
            .answers
            .iter()
            .filter_map(|(from, reply, ids)| if let PrimaryReply::Named(named) = reply { Some((from, named, ids)) } else { None })
            .collect();
        let hosts = &self.asked[..self.hosts.min(self.asked.len())];
        let members: Vec<Member<'_>> = named
            .iter()
            .map(|(from, named, ids)| Member { ids, primary: &named.address, is_host: hosts.contains(from) })
            .collect();
        match believed(&members, &self.known) {
            Believed::Some(group) => Ok(group.into_iter().map(|number| (named[number].1, named[number].2)).collect()),
            Believed::Torn(groups) => Err(self.tear(groups.iter().map(|group| group.iter().map(|number| named[*number].0)))),
        }
    }

    /// The ids of the group that is believed.
    pub(crate) fn ids(&self) -> BTreeSet<String> {
        self.believed().unwrap_or_default().into_iter().flat_map(|(_, ids)| ids.all().cloned()).collect()
    }

    /// The sentinels that name a primary and are of another group.
    pub(crate) fn foreign(&self) -> Vec<Address> {
        let Ok(believed) = self.believed() else { return Vec::new() };
        let is_foreign = |reply: &PrimaryReply| matches!(reply, PrimaryReply::Named(named) if !believed.iter().any(|(other, _)| std::ptr::eq(*other, named)));
        self.answers.iter().filter(|(_, reply, _)| is_foreign(reply)).map(|(from, ..)| from.clone()).collect()
    }

    fn tear<'a, G: Iterator<Item = &'a Address>>(&self, groups: impl Iterator<Item = G>) -> Failure {
        let groups: Vec<String> = groups.map(|group| group.map(Address::to_string).collect::<Vec<_>>().join(" and ")).collect();
        let why = format!(
            "the sentinels of the URL don't know each other: {} watch different services that are both called \"{}\"; write those of one group",
            groups.join(", and "),
            quoted(&self.service)
        );
        Failure::not_applied(FailureKind::Mismatch, why)
    }

    fn is_out_of_date(&self, named: &Named) -> bool {
        named.epoch < self.floor && !mutant!(EpochIgnored)
    }

    /// The primary, as soon as it is sure: the one of the highest epoch, when a majority agrees on it, or when the time for later
    /// answers is over. `is_over` says that nobody else will answer.
    ///
    /// # Errors
    /// Nobody names a primary, or the sentinels disagree in one epoch.
    pub(crate) fn choice(&self, now: Tick, is_over: bool) -> Option<Result<Named, Failure>> {
        let is_over = is_over || self.answers.len() >= self.asked.len();
        let believed = match self.believed() {
            Ok(believed) => believed,
            Err(_) if !is_over && now < self.gathers_until => return None,
            Err(failure) => return Some(Err(failure)),
        };
        let received: Vec<&Named> =
            believed.into_iter().map(|(named, _)| named).filter(|named| !self.is_out_of_date(named)).collect();
        let newest = received.iter().map(|named| named.epoch).max();
        let latest: Vec<&Named> = received.into_iter().filter(|named| Some(named.epoch) == newest).collect();
        let count = |named: &&&Named| latest.iter().filter(|other| other.address == named.address).count();
        match latest.iter().max_by_key(count) {
            Some(named) if count(&named) > self.asked.len() / 2 => Some(Ok((*named).clone())),
            _ if !is_over && now < self.gathers_until => None,
            Some(named) if count(&named) == latest.len() => Some(Ok((*named).clone())),
            Some(_) => Some(Err(self.disagreement(&latest))),
            None => Some(Err(self.silence())),
        }
    }

    /// The epoch below the floor in which a majority names one primary, if there is one.
    pub(crate) fn agreed_below(&self) -> Option<u64> {
        let believed = self.believed().unwrap_or_default().into_iter().map(|(named, _)| named);
        let below: Vec<&Named> = believed.filter(|named| self.is_out_of_date(named)).collect();
        let is_same = |one: &Named, other: &Named| (one.epoch, &one.address) == (other.epoch, &other.address);
        let agreed = below.iter().find(|one| below.iter().filter(|other| is_same(one, other)).count() > self.asked.len() / 2);
        agreed.map(|named| named.epoch)
    }

    fn disagreement(&self, latest: &[&Named]) -> Failure {
        let mut places: Vec<String> = latest.iter().map(|named| named.address.to_string()).collect();
        places.sort_unstable();
        places.dedup();
        let (service, epoch, places) = (quoted(&self.service), latest[0].epoch, quoted(&places.join(" and ")));
        let why = format!(
            "the sentinels disagree: in epoch {epoch} they name {places} as the primary of the service \"{service}\"; do all of them \
             watch the same one, and announce it by the same name?"
        );
        Failure::not_applied(FailureKind::Other, why)
    }

    /// The reason why no sentinel names a primary.
    fn silence(&self) -> Failure {
        let service = format!("\"{}\"", quoted(&self.service));
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        let (mut kinds, mut unknown, foreign) = (Vec::new(), 0, self.foreign());
        for address in &self.asked {
            let reply = self.answers.iter().find(|(from, ..)| from == address).map(|(_, reply, _)| reply);
            let (kind, why) = match reply {
                None => (FailureKind::Timeout, "no answer in time".to_owned()),
                Some(PrimaryReply::Unknown) => {
                    unknown += 1;
                    (FailureKind::Mismatch, "it watches no such service".to_owned())
                }
                Some(PrimaryReply::Named(_)) if foreign.contains(address) => (
                    FailureKind::Mismatch,
                    "it knows none of the sentinels that were asked before, and is of another group".to_owned(),
                ),
                Some(PrimaryReply::Named(named)) => {
                    let why =
                        format!("it names {} in epoch {}, and epoch {} has come since", named.address, named.epoch, self.floor);
                    (FailureKind::ReadOnly, why)
                }
                Some(PrimaryReply::Failed(failure)) => (failure.kind, failure.message.clone()),
            };
            kinds.push(kind);
            match reasons.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, places)) => places.push(address.to_string()),
                None => reasons.push((why, vec![address.to_string()])),
            }
        }
        if unknown > self.asked.len() / 2 {
            let why = format!(
                "the sentinels watch no service {service}: its name stands behind `sentinel monitor` in their configuration ({})",
                self.asked.iter().map(Address::to_string).collect::<Vec<_>>().join(", ")
            );
            return Failure::not_applied(FailureKind::Mismatch, why);
        }
        let all = |kind: &FailureKind| kinds.iter().all(|other| other == kind);
        let kind = match kinds.iter().find(|kind| all(kind)) {
            Some(kind) => *kind,
            None if kinds.contains(&FailureKind::Denied) => FailureKind::Denied,
            // What some of them say is no mistake of the client, as long as others can't be asked.
            None => kinds.iter().copied().find(|kind| *kind != FailureKind::Mismatch).unwrap_or(FailureKind::Other),
        };
        let reasons: Vec<String> = reasons.into_iter().map(|(why, places)| format!("{}: {why}", places.join(", "))).collect();
        Failure::not_applied(kind, format!("no sentinel names the primary of the service {service}: {}", reasons.join("; ")))
    }
}

#[cfg(test)]
#[path = "sentinel_tests.rs"]
mod tests;
