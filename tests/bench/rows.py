"""What is compared, and what it shall come to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Two sides and what is compared: the ratio of `field` is ours to the other's, `aim` what it shall be.

    A side is `name` or `name@place`: the program and what it talks to (see fleets.py). Two others mean the one that
    is faster in the same round.
    """

    title: str
    group: str
    ours: str
    others: tuple
    field: str
    aim: str


ONE = [
    Row("Rust async, 1 caller: time / raw blocking socket", "rust", "async-1", ("raw-1",), "p50_us", "≤ 1.5"),
    Row("Rust async, 256 callers: throughput / raw loader (50 × 16)", "rust", "async-256", ("raw-50x16",), "pairs_per_second", "≥ 0.6"),
]

PEERS = ("rslock@five", "redlock@five")
QUORUM = [
    Row("five servers: time / the faster of rslock and npm redlock", "quorum", "async-1@five", PEERS, "p50_us", "≤ 1.0"),
    Row("five servers: client CPU / the same peer's", "quorum", "async-1@five", PEERS, "cpu_us_per_pair", "≤ 1.0"),
    Row("one of five refuses: time / our own with five", "quorum", "async-1@refused", ("async-1@five",), "p50_us", "≤ 1.3"),
    Row("one of five is stopped: time / our own with five", "quorum", "async-1@stopped", ("async-1@five",), "p50_us", "≤ 1.3"),
    Row("rslock, one of five refuses: time / its own with five", "peers", "rslock@refused", ("rslock@five",), "p50_us", ""),
    Row("npm redlock, one of five refuses: time / its own with five", "peers", "redlock@refused", ("redlock@five",), "p50_us", ""),
    Row("rslock, one of five is stopped: time / its own with five", "peers", "rslock@stopped", ("rslock@five",), "p50_us", ""),
    Row("npm redlock, one of five is stopped: time / its own with five", "peers", "redlock@stopped", ("redlock@five",), "p50_us", ""),
]

ROWS = [*ONE, *QUORUM]
