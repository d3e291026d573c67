//! Rights: the commands and keys that a user needs, as data, and the report of a server on them.

use crate::name::{Keys, Kind};
use crate::server::redis::commands::comparison::Comparison;

/// A command that the scripts run, with arguments by which it leaves nothing behind, and its purpose.
#[derive(Clone, Copy)]
struct Right {
    /// The command. `K1` to `K5` stand for the keys: lock, clock or fence, queue, marker, and on one server the record of a job.
    command: &'static str,
    purpose: &'static str,
    /// Whether it is needed on one server or on a quorum only; `None` for both.
    on_one: Option<bool>,
}

const fn right(command: &'static str, purpose: &'static str) -> Right {
    Right { command, purpose, on_one: None }
}

const fn on_one_server(command: &'static str, purpose: &'static str) -> Right {
    Right { on_one: Some(true), ..right(command, purpose) }
}

const fn on_a_quorum(command: &'static str, purpose: &'static str) -> Right {
    Right { on_one: Some(false), ..right(command, purpose) }
}

/// The rights, in an order that leaves nothing behind even where some are denied: all keys that are written expire by themselves.
const RIGHTS: [Right; 33] = [
    right("TIME", "to read the server's time"),
    on_one_server("MGET K1", "to see who holds a lock"),
    on_a_quorum("MGET K1 K2", "to see who holds a lock"),
    right("EXISTS K1", "to distinguish a foreign key from none"),
    right("TYPE K1", "to name what a foreign key holds"),
    right("GETRANGE K1 0 0", "to see who holds a lock without reading all of a foreign value"),
    right("SET K1 probe PX 1000", "to take a lock"),
    on_a_quorum("SET K2 1 PX 1000", "to count fences"),
    on_one_server("XADD K2 MAXLEN 0 * f v", "to get a fence"),
    on_one_server("XINFO STREAM K2", "to raise the fences behind a failover"),
    // The history has a slot of its own: in a cluster a script gets another error than a denial. Nothing is written with this id.
    on_one_server("XADD {~lt}:log 0-0 f v", "to note holds in the history, unless the option `history` is off"),
    on_one_server("XREVRANGE {~lt}:log + - COUNT 1", "to see in the history who held a lock"),
    right("PTTL K1", "to read how long a lock remains"),
    right("PEXPIRE K1 1000", "to renew and extend a lock"),
    on_one_server("HSET K5 probe 1", "to note the attempts and the end of a job"),
    on_one_server("PEXPIRE K5 1000", "to forget a job that nobody asks for"),
    on_one_server("HMGET K5 probe", "to see whether a job is done"),
    on_one_server("HGET K5 probe", "to keep the record of a job that runs for days"),
    // A time in the past: the key is gone then.
    on_one_server("PEXPIREAT K1 1", "to have a lock end with the last of several holders"),
    on_one_server("DEL K1 K5", "to release a lock"),
    on_a_quorum("DEL K1 K2", "to release a lock"),
    right("ZADD K3 0 probe", "to line a waiter up"),
    right("PEXPIRE K3 1000", "to forget a queue that nobody waits in"),
    right("ZSCORE K3 probe", "to see whether a waiter lives"),
    right("ZCOUNT K3 0 0", "to count the waiters"),
    right("ZRANGEBYSCORE K3 0 0", "to see who is next"),
    right("ZREVRANGE K3 0 0", "to see who is last"),
    right("ZREM K3 probe", "to take a waiter out"),
    // Tried as PUBLISH where the server has no sharded channels.
    right(
        WAKE,
        "to notify the next waiter of a release, on ~lt:wake:*, in a cluster on a channel like the lock's keys (PUBLISH before version 7)",
    ),
    right("PUBLISH ~lt:lead:probe -", "to notify observers of an election"),
    // With one server this is a side key like the fence. On a quorum it is the server's own key.
    right("GET K4", "to see whether the server remembers"),
    // A user who may run this command gets a syntax error: the marker must stay as it is.
    right("SET K4 probe NX XX", "to mark a server that is new"),
    right("SCAN 0 COUNT 1", "to list the locks"),
];

const WAKE: &str = "SPUBLISH ~lt:wake:probe -";

/// The same in a cluster, where the channel stands beside the lock's keys: `W` is the script's word for it.
const WAKE_IN_CLUSTER: &str = "SPUBLISH W -";

/// The other commands of the scripts and of the connection. `GET`, `SET` and so on are among the commands that are tried.
const COMMANDS: &str = "+eval +evalsha +multi +exec +get +getrange +mget +set +del +exists +type +pttl +pexpire +pexpireat +time +xadd +xinfo +xrevrange +zadd +zrem +zscore +zcount \
                        +zrangebyscore +zrevrange +hset +hmget +hget +@pubsub +ping +client|setname +info +scan";

/// What a user needs in a cluster besides.
const COMMANDS_OF_CLUSTER: &str = " +cluster|slots +asking";

/// The advice to an administrator for a user who was refused a command on the lock with these keys.
pub(crate) fn advice(keys: &Keys, in_cluster: bool, comparison: Comparison) -> String {
    let prefix = keys.lock().strip_suffix(keys.name()).unwrap_or_default();
    let sides = keys.queue().strip_suffix("queue").unwrap_or_default();
    let clock = if keys.kind() == Kind::Quorum { "" } else { " ~{*}:~lt:clock ~{~lt}:log" };
    // A name with a tag has its side keys behind itself; all other names have theirs in braces.
    let patterns =
        if prefix.is_empty() { "~*".to_owned() } else { format!("~{prefix}* ~{{{prefix}*{clock} ~{}", Keys::server_marker()) };
    // A waiter's channel is in the slot of the lock.
    let channels = match in_cluster {
        false => "&~lt:wake:*".to_owned(),
        true if prefix.is_empty() => "&*".to_owned(),
        true => format!("&{prefix}* &{{{prefix}*"),
    };
    // An unknown command is an error in a user's rights.
    let compare = match comparison {
        Comparison::Script => "",
        Comparison::DelIfEq => " +delifeq",
        Comparison::DelEx => " +delex",
    };
    let more = if in_cluster { COMMANDS_OF_CLUSTER } else { "" };
    format!(
        "; the lock's keys are {} and {sides}*, and what its user needs is: ACL SETUSER <user> {patterns} {channels} &~lt:lead:* \
         {COMMANDS}{compare}{more}",
        keys.lock()
    )
}

/// The missing right to take a free lock without a script.
pub(crate) const MULTI: &str = "MULTI, to take a free lock without a script";

/// The missing right to be served by the node that a slot is moving to.
pub(crate) const ASKING: &str = "ASKING, to follow a lock whose slot moves";

/// The arguments of the script that tries the commands.
pub(crate) fn commands(keys: &Keys, in_cluster: bool) -> impl Iterator<Item = &'static str> {
    rights_for(keys).map(move |right| if in_cluster && right.command == WAKE { WAKE_IN_CLUSTER } else { right.command })
}

/// What is tried with these keys.
fn rights_for(keys: &Keys) -> impl Iterator<Item = Right> + use<> {
    let is_one = keys.kind() != Kind::Quorum;
    RIGHTS.into_iter().filter(move |right| right.on_one.is_none_or(|on_one| on_one == is_one))
}

/// The missing rights, a line each: `PEXPIRE of :~lt:probe, to renew and extend a lock`. `failed` is the script's report.
pub(crate) fn missing(failed: &str, keys: &Keys, is_denial: impl Fn(&str) -> bool) -> Vec<String> {
    failed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, error)| is_denial(error))
        .filter_map(|(number, _)| rights_for(keys).nth(number.parse::<usize>().ok()?.checked_sub(1)?))
        .map(|right| described(&right, keys))
        .collect()
}

/// A right in words. It names a key too, because the key may be the reason of the refusal.
fn described(right: &Right, keys: &Keys) -> String {
    let mut words = right.command.split(' ');
    let command = words.next().unwrap_or_default();
    let key = words.find_map(|word| match word.strip_prefix('K') {
        Some(number) => keys.in_order().nth(number.parse::<usize>().ok()?.checked_sub(1)?),
        None => word.starts_with('{').then_some(word),
    });
    match key {
        Some(key) => format!("{command} of {key}, {}", right.purpose),
        None => format!("{command}, {}", right.purpose),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_user_gets_the_keys_and_a_line_for_the_administrator() {
        let keys = |prefix: &str, name: &str| Keys::new(Kind::Exclusive, prefix, name, true).unwrap();
        let advice = |prefix: &str, name: &str| super::advice(&keys(prefix, name), false, Comparison::Script);
        let with_prefix = advice("prod:", "a");
        assert!(with_prefix.starts_with("; the lock's keys are prod:a and {prod:a}:~lt:*, "), "{with_prefix}");
        assert!(
            with_prefix.contains(
                ": ACL SETUSER <user> ~prod:* ~{prod:* ~{*}:~lt:clock ~{~lt}:log ~{~lt}:marker &~lt:wake:* &~lt:lead:* +eval +evalsha "
            ),
            "{with_prefix}"
        );
        assert!(advice("", "{shop}:b").contains("{shop}:b and {shop}:b:~lt:tag:*, "));
        assert!(advice("", "a").contains("<user> ~* &~lt:wake:* &~lt:lead:* +eval"));
        assert!(super::advice(&keys("", "a"), false, Comparison::DelIfEq).ends_with(" +scan +delifeq"));
        let in_cluster = super::advice(&keys("prod:", "a"), true, Comparison::DelEx);
        assert!(in_cluster.contains(" &prod:* &{prod:* &~lt:lead:* +eval ") && !in_cluster.contains("~lt:wake"), "{in_cluster}");
        assert!(in_cluster.ends_with(" +delex +cluster|slots +asking"), "{in_cluster}");
        assert!(super::advice(&keys("", "a"), true, Comparison::Script).contains("<user> ~* &* &~lt:lead:* +eval"));
    }

    #[test]
    fn the_line_for_the_administrator_has_every_command_that_is_tried() {
        let given: Vec<&str> = COMMANDS.split(' ').collect();
        for right in &RIGHTS {
            let command = right.command.split(' ').next().unwrap().to_lowercase();
            assert!(["spublish", "publish"].contains(&&*command) || given.contains(&&*format!("+{command}")), "{command}");
        }
    }

    #[test]
    fn what_is_missing_is_said_in_words_and_other_errors_are_nobodys_fault() {
        let keys = Keys::of_no_lock(Kind::Quorum, "prod:", false);
        let found = "1 denied\n6 other\n9 denied\n21 denied\n99 denied\nunreadable";
        let lines = missing(found, &keys, |error| error == "denied");
        assert_eq!(
            lines,
            [
                "TIME, to read the server's time",
                "PEXPIRE of prod::~lt:probe, to renew and extend a lock",
                "SET of {~lt}:marker, to mark a server that is new"
            ]
        );
        assert!(missing("5 other", &keys, |error| error == "denied").is_empty());
    }
}
