//! The exit codes that are the command's own. Those of `sysexits.h` mean the same there.

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

/// The code of a program that died of a signal, as shells give it.
pub(super) fn signalled(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// What each code means, for the help.
const MEANINGS: [(u8, &str); 10] = [
    (USAGE, "wrong arguments"),
    (UNAVAILABLE, "no server, or too few of a quorum, could be reached"),
    (UNWRITTEN, "the output can't be written"),
    (BUSY, "the lock is busy (with -n or -w; -E changes it)"),
    (CONFIGURATION, "the server refuses: its user lacks a right, or the key is not a lock's"),
    (LOST, "the lock was lost, and the command was ended"),
    (DEAD, "no attempt is left: the last one failed, or its machine died"),
    (UNENDED, "the lock was lost, and the command runs as another user: it could not be ended"),
    (CANNOT_RUN, "the command can't be run"),
    (NOT_FOUND, "the command was not found"),
];

/// The end of a subcommand's help: the codes except those that it never gives, and the environment. `zero` and `environment` are lines
/// of its own.
pub(super) fn help(zero: &str, never: &[u8], environment: &str) -> String {
    let given = MEANINGS.iter().filter(|(code, _)| !never.contains(code));
    let codes: String = given.map(|(code, meaning)| format!("\n  {code:<4} {meaning}")).collect();
    format!(
        "\
Exit codes:
  the command's own, or 128 + N if it died of signal N
  none: if it died of Ctrl-C, or of a signal that this program got, this program dies of it, too{zero}{codes}

Environment of the command:
  LOCKTENDER_NAME         the lock's name
  LOCKTENDER_FENCE        the fencing token: larger than that of every earlier holder
  LOCKTENDER_OWNER        the value of the lock's key
  LOCKTENDER_VALID_UNTIL  when the lock ends unless it is renewed, at the start: seconds since 1970{environment}"
    )
}
