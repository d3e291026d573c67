"""Rows: the comparisons."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Two sides and what is compared: the ratio of `field` is ours to the other's.

    A side is `name` or `name@place`: the program and what it talks to (see fleets.py). Two others mean the one that
    is faster in the same round.
    """

    title: str
    group: str
    ours: str
    others: tuple
    field: str


PEERS = ("rslock-1@five", "redlock-1@five")

# A processor's time per pair is nearly the same on a busy machine and on an idle one. A server has one thread for all its clients.
# A plain pair is a SET NX PX, and a script that compares and deletes. Raw loaders send the bytes.
CPU = [
    Row("server CPU per pair: one server / a plain pair", "rust", "raw-50x16", ("plain-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair, each with a new name: one server / a plain pair", "rust", "raw-new-50x16", ("plain-new-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: npm redlock / a plain pair", "rust", "redlock-256", ("plain-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: one of five servers / a plain pair", "quorum", "raw-50x16@five", ("plain-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per renewal / a plain pair", "rust", "renewal-50x16", ("plain-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: Rust async, 64 callers / rslock", "rust", "async-64", ("rslock-64",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: a permit without contention / a plain pair", "rust", "permit-50x16", ("plain-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: a reader without contention / a plain pair", "rust", "reader-50x16", ("plain-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: a permit without contention / a lock by two scripts", "rust", "permit-50x16", ("scripted-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: a reader without contention / a lock by two scripts", "rust", "reader-50x16", ("scripted-50x16",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: a reader beside 10,000 / beside 100", "rust", "reader-beside-10000", ("reader-beside-100",), "server_cpu_us_per_pair"),
    Row("server CPU: a job that nobody contends / a lock's pair", "rust", "job-64", ("async-64",), "server_cpu_us_per_pair"),
    Row("client CPU per pair: Rust async, 64 callers / rslock", "rust", "async-64", ("rslock-64",), "cpu_us_per_pair"),
    Row("server CPU per pair: five servers / the faster of rslock and npm redlock", "quorum", "async-1@five", PEERS, "server_cpu_us_per_pair"),
    Row("client CPU per pair: five servers / the same peer's", "quorum", "async-1@five", PEERS, "cpu_us_per_pair"),
    Row("server CPU per pair: Python, 1 thread / redis-py's Lock", "python", "py-sync-1", ("redis-py-1",), "server_cpu_us_per_pair"),
    Row("client CPU per pair: Python, 1 thread / redis-py's Lock", "python", "py-sync-1", ("redis-py-1",), "cpu_us_per_pair"),
    Row("server CPU per pair: asyncio, 256 tasks / redis.asyncio's Lock", "python", "py-asyncio-256", ("redis-asyncio-256",), "server_cpu_us_per_pair"),
    Row("client CPU per pair: asyncio, 256 tasks / redis.asyncio's Lock", "python", "py-asyncio-256", ("redis-asyncio-256",), "cpu_us_per_pair"),
    Row("server CPU per pair: Node, 256 callers / npm redlock", "node", "node-locktender-256", ("redlock-256",), "server_cpu_us_per_pair"),
    Row("client CPU per pair: Node, 64 callers / npm redlock", "node", "node-locktender-64", ("redlock-64",), "cpu_us_per_pair"),
    Row("client CPU per pair: Node, 256 callers / npm redlock", "node", "node-locktender-256", ("redlock-256",), "cpu_us_per_pair"),
    Row("server CPU per pair: Node, 256 callers / ioredis, SET and EVALSHA", "node", "node-locktender-256", ("ioredis-256",), "server_cpu_us_per_pair"),
    Row("client CPU per pair: Node, 256 callers / ioredis, SET and EVALSHA", "node", "node-locktender-256", ("ioredis-256",), "cpu_us_per_pair"),
]

ONE = [
    Row("Rust async, 64 callers: throughput / rslock", "rust", "async-64", ("rslock-64",), "pairs_per_second"),
    Row("Rust async, 1 caller: time / raw blocking socket", "rust", "async-1", ("raw-1",), "p50_us"),
    Row("Rust async, 256 callers: throughput / raw loader (50 × 16)", "rust", "async-256", ("raw-50x16",), "pairs_per_second"),
]

# A runtime of two threads, as most programs have one, and a new name for each pair, as most programs have one for each order.
NEW = [
    *(
        Row(f"Rust async on two threads, new names, {callers} caller{'s' if callers > 1 else ''}: throughput / rslock", "rust", f"new-{callers}", (f"rslock-new-{callers}",), "pairs_per_second")
        for callers in (1, 8, 16, 32, 64, 256)
    ),
    Row("Rust async on two threads, new names, 64 callers: the slowest pair of 100 / rslock", "rust", "new-64", ("rslock-new-64",), "p99_us"),
    Row("client CPU per pair: Rust async on two threads, new names, 64 callers / rslock", "rust", "new-64", ("rslock-new-64",), "cpu_us_per_pair"),
]

BLOCKING = Row("Rust blocking, 1 caller: time / raw blocking socket", "rust", "blocking-1", ("raw-1",), "p50_us")

QUORUM = [
    Row("five servers: time / the faster of rslock and npm redlock", "quorum", "async-1@five", PEERS, "p50_us"),
    Row("five servers, blocking: time / the faster of rslock and npm redlock", "quorum", "blocking-1@five", PEERS, "p50_us"),
    Row("one of five refuses: time / our own with five", "quorum", "async-1@refused", ("async-1@five",), "p50_us"),
    Row("one of five is stopped: time / our own with five", "quorum", "async-1@stopped", ("async-1@five",), "p50_us"),
    Row("rslock, one of five refuses: time / its own with five", "peers", "rslock-1@refused", ("rslock-1@five",), "p50_us"),
    Row("npm redlock, one of five refuses: time / its own with five", "peers", "redlock-1@refused", ("redlock-1@five",), "p50_us"),
    Row("rslock, one of five is stopped: time / its own with five", "peers", "rslock-1@stopped", ("rslock-1@five",), "p50_us"),
    Row("npm redlock, one of five is stopped: time / its own with five", "peers", "redlock-1@stopped", ("redlock-1@five",), "p50_us"),
]

PYTHON = [
    Row("Python, 1 thread: time / raw blocking socket", "python", "py-sync-1", ("raw-1",), "p50_us"),
    Row("Python, 1 thread: throughput / redis-py's Lock with hiredis", "python", "py-sync-1", ("redis-py-1",), "pairs_per_second"),
    Row("Python, 16 threads: throughput / redis-py's Lock", "python", "py-sync-16", ("redis-py-16",), "pairs_per_second"),
    Row("Python, 256 threads: throughput / redis-py's Lock", "python", "py-sync-256", ("redis-py-256",), "pairs_per_second"),
    Row("asyncio, 1 task: throughput / redis.asyncio's Lock", "python", "py-asyncio-1", ("redis-asyncio-1",), "pairs_per_second"),
    Row("asyncio, 256 tasks: throughput / redis.asyncio's Lock", "python", "py-asyncio-256", ("redis-asyncio-256",), "pairs_per_second"),
    Row("Python, new names, 64 threads: throughput / redis-py's Lock", "python", "py-sync-new-64", ("redis-py-new-64",), "pairs_per_second"),
    Row("asyncio, new names, 64 tasks: throughput / redis.asyncio's Lock", "python", "py-asyncio-new-64", ("redis-asyncio-new-64",), "pairs_per_second"),
    Row("Python, start to exit with one lock / bare python", "python", "py-once-1", ("py-bare-1",), "process_ms"),
    Row("Python, memory of that at its peak / bare python", "python", "py-once-1", ("py-bare-1",), "memory_mb"),
]

NODE = [
    Row("Node, 1 caller: time / npm redlock", "node", "node-locktender-1", ("redlock-1",), "p50_us"),
    Row("Node, 64 callers: throughput / npm redlock", "node", "node-locktender-64", ("redlock-64",), "pairs_per_second"),
    Row("Node, 64 callers: throughput / ioredis, SET and EVALSHA", "node", "node-locktender-64", ("ioredis-64",), "pairs_per_second"),
    Row("Node, new names, 64 callers: throughput / npm redlock", "node", "node-locktender-new-64", ("redlock-new-64",), "pairs_per_second"),
    Row("Node, new names, 64 callers: throughput / ioredis, SET and EVALSHA", "node", "node-locktender-new-64", ("ioredis-new-64",), "pairs_per_second"),
    Row("Node, new names, 64 callers: throughput / npm redlock-universal", "node", "node-locktender-new-64", ("redlock-universal-new-64",), "pairs_per_second"),
    Row("Node, withLock, new names, 64 callers: throughput / npm redlock's using", "node", "node-with-lock-new-64", ("redlock-using-new-64",), "pairs_per_second"),
    Row("Node, withLock, new names, 256 callers: throughput / npm redlock's using", "node", "node-with-lock-new-256", ("redlock-using-new-256",), "pairs_per_second"),
    Row("Node, withLock, new names, 256 callers: throughput / ioredis, SET and EVALSHA", "node", "node-with-lock-new-256", ("ioredis-new-256",), "pairs_per_second"),
    Row("Node, 256 callers: throughput / npm redlock", "node", "node-locktender-256", ("redlock-256",), "pairs_per_second"),
    Row("Node, 256 callers: throughput / ioredis, SET and EVALSHA", "node", "node-locktender-256", ("ioredis-256",), "pairs_per_second"),
    Row("Node, a semaphore of 5, 5 callers: throughput / npm redis-semaphore", "node", "node-semaphore-5", ("redis-semaphore-5",), "pairs_per_second"),
    Row("Node, a semaphore of 5, 64 callers: throughput / npm redis-semaphore", "node", "node-semaphore-64", ("redis-semaphore-64",), "pairs_per_second"),
    Row("Node, start to exit with one lock / bare node", "node", "node-once-1", ("node-bare-1",), "process_ms"),
]

# A primary shall need no more for a pair where it is one of many. So one of them has work at a time: with all of them at once, the
# processors are shared by more programs the more primaries there are. What that costs, servers that stand apart show, too.
CLUSTER = [
    Row("server CPU per pair: a cluster of one / one server", "cluster", "spread-64@cluster-1", ("spread-64@apart-1",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: one primary of three / a cluster of one", "cluster", "spread-64of3@cluster-3", ("spread-64@cluster-1",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: one primary of six / a cluster of one", "cluster", "spread-64of6@cluster-6", ("spread-64@cluster-1",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: all of three / three servers apart", "cluster", "spread-64x3@cluster-3", ("spread-64x3@apart-3",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: all of six / six servers apart", "cluster", "spread-64x6@cluster-6", ("spread-64x6@apart-6",), "server_cpu_us_per_pair"),
    Row("server CPU per pair: six servers apart / one server", "cluster", "spread-64x6@apart-6", ("spread-64@apart-1",), "server_cpu_us_per_pair"),
]

# The same bytes with no client around them, over the peer's figure: no client that sends these two scripts is faster than that.
BOUNDS = [
    Row("upper bound, 1 thread: raw socket / redis-py's Lock", "python", "raw-1", ("redis-py-1",), "pairs_per_second"),
    Row("upper bound, 1 task: raw socket / redis.asyncio's Lock", "python", "raw-1", ("redis-asyncio-1",), "pairs_per_second"),
    Row("upper bound, 256 tasks: raw loader / redis.asyncio's Lock", "python", "raw-50x16", ("redis-asyncio-256",), "pairs_per_second"),
    Row("upper bound, 256 callers: raw loader / npm redlock", "node", "raw-50x16", ("redlock-256",), "pairs_per_second"),
    Row("upper bound, 256 callers: raw loader / ioredis", "node", "raw-50x16", ("ioredis-256",), "pairs_per_second"),
]

ROWS = [*CPU, *ONE, *NEW, BLOCKING, *QUORUM, *PYTHON, *NODE, *CLUSTER, *BOUNDS]
