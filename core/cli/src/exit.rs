//! The exit codes that are the command's own. Those of `sysexits.h` mean the same there.

use locktender::{Code, Error};

pub(super) const WORTH_A_LOOK: u8 = 1;
pub(super) const DECLINED: u8 = 1;
pub(super) const NOTHING: u8 = 1;
pub(super) const USAGE: u8 = 64;
pub(super) const UNAVAILABLE: u8 = 69;
pub(super) const INTERNAL: u8 = 70;
pub(super) const UNWRITTEN: u8 = 74;
pub(super) const BUSY: u8 = 75;
pub(super) const CONFIGURATION: u8 = 78;
pub(super) const LOST: u8 = 79;
pub(super) const DEAD: u8 = 80;
pub(super) const UNENDED: u8 = 81;
pub(super) const CANNOT_RUN: u8 = 126;
pub(super) const NOT_FOUND: u8 = 127;

/// The exit code of an error.
pub(super) fn code_of(error: &Error) -> u8 {
    match error.code() {
        Code::Unavailable => UNAVAILABLE,
        Code::InvalidArgument => USAGE,
        Code::Denied | Code::KeyConflict => CONFIGURATION,
        Code::LockLost => LOST,
        Code::JobDead => DEAD,
        _ => INTERNAL,
    }
}

/// The code of a program that died of a signal, as shells give it.
pub(super) fn signalled(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// What each code means, for the help.
const MEANINGS: [(u8, &str); 11] = [
    (USAGE, "wrong arguments"),
    (UNAVAILABLE, "no server, or too few of a quorum, could be reached"),
    (INTERNAL, "this program failed, as at a limit of the system"),
    (UNWRITTEN, "the output can't be written"),
    (BUSY, "the lock is busy (with -n or -w; -E changes it)"),
    (CONFIGURATION, "the server refuses: its user lacks a right, or the key is not a lock's"),
    (LOST, "the lock was lost: the command, if there is one, was ended"),
    (DEAD, "no attempt is left: the last one failed, or its machine died"),
    (UNENDED, "the lock was lost, and the command runs as another user: it could not be ended"),
    (CANNOT_RUN, "the command can't be run"),
    (NOT_FOUND, "the command was not found"),
];

/// Those that only a subcommand gives that runs a command.
pub(super) const OF_COMMANDS: [u8; 4] = [DEAD, UNENDED, CANNOT_RUN, NOT_FOUND];

/// Where all is documented.
const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/command.md");

/// The end of a subcommand's help: examples, the codes except those that it `never` gives, and what it reads and writes of the
/// environment. `zero` and `environment` are lines of its own; without `environment` it runs no command.
pub(super) fn help(examples: &str, zero: &str, never: &[u8], environment: Option<&str>) -> String {
    let examples: String = examples.lines().map(|line| format!("\n  {line}")).collect();
    let given = MEANINGS.iter().filter(|(code, _)| !never.contains(code));
    let codes: String = given.map(|(code, meaning)| format!("\n  {code:<4} {meaning}")).collect();
    let (own, variables) = match environment {
        Some(variables) => (OWN_CODES, format!("{ENVIRONMENT}{variables}")),
        None => ("\n  0    it gave the lock back\n  none: if it got a signal, it dies of it", String::new()),
    };
    format!(
        "Examples:{examples}\n\nExit codes:{own}{zero}{codes}\n\nEnvironment:\n  LOCKTENDER_URL  the servers, if --server names none{variables}\n\nMore: {DOCS}"
    )
}

const OWN_CODES: &str = "
  the command's own, or 128 + N if it died of signal N
  none: if it died of Ctrl-C, or of a signal that this program got, this program dies of it, too";

const ENVIRONMENT: &str = "

Environment of the command:
  LOCKTENDER_NAME         the lock's name; of several locks their names, with a comma and a blank between them
  LOCKTENDER_FENCE        the fencing token: larger than that of every earlier holder; of several locks their tokens, in the same order
  LOCKTENDER_OWNER        the value of the lock's key
  LOCKTENDER_VALID_UNTIL  when the lock ends unless it is renewed, at the start: seconds since 1970";

/// The end of the help of all.
pub(super) fn help_of_all() -> String {
    format!(
        "\
Examples:
  export LOCKTENDER_URL=redis://redis.internal
  locktender run -n nightly -- /usr/local/bin/tidy    # on one machine at a time
  locktender job migrate:42 -- ./migrate 42           # once, on one of the machines
  locktender ls                                       # who holds what
  locktender help run                                 # more about a subcommand

Environment:
  LOCKTENDER_URL  the servers, if --server names none

More: {DOCS}"
    )
}
