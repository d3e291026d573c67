"""Waiting: how fast a lock is handed over, and the cost of its waiters."""

import random
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack

from fleets import ROOT

# What holds the lock in turns: our languages, and the peers. python-redis-lock and simple-redis-mutex wake waiters, the others poll.
OURS = {"Rust": "rust", "Python": "py-locktender", "asyncio": "py-asyncio", "Node": "node-locktender"}
PEERS = {
    "python-redis-lock": "py-python-redis-lock",
    "redis-py's Lock": "py-redis-py",
    "npm simple-redis-mutex": "node-simple-redis-mutex",
    "npm redis-semaphore": "node-redis-semaphore",
    "npm redlock": "node-redlock",
    "rslock": "rslock",
}

# Whoever polls is met at any moment between two polls.
SHORTEST_HOLD, LONGEST_HOLD = 0.005, 0.12

# Both processes have waited once: connections and subscriptions stand, scripts are loaded.
WARM_UP = 2


class Process:
    """A program that answers each line with a time."""

    def __init__(self, stack, command):
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        stack.callback(self.end)

    def send(self, line):
        self.process.stdin.write(line + "\n")

    def time(self):
        return int(self.process.stdout.readline())

    def ask(self, line):
        self.send(line)
        return self.time()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


def holder(sides, side, url):
    language, _, name = side.partition("-")
    if side == "rust":
        return [sides.ours, "holder", url, "0"]
    if side == "rslock":
        return [sides.rslock, url, "holder", "0"]
    if language == "py":
        return [sys.executable, "tests/bench/python_holder.py", name, url]
    return ["node", "tests/bench/node_holder.mjs", name, url]


def hand_over(sides, server, side, seconds, seed):
    """The median time from a release's call in one process to the return of the acquire in another, in milliseconds."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        here, there = (Process(stack, holder(sides, side, server.url)) for _ in range(2))
        here.ask("acquire")
        took, end = [], time.monotonic() + seconds
        while len(took) <= WARM_UP or time.monotonic() < end:
            there.send("acquire")
            time.sleep(rng.uniform(SHORTEST_HOLD, LONGEST_HOLD))
            released = here.ask("release")
            took.append((there.time() - released) / 1e6)
            here, there = there, here
        here.ask("release")
    return statistics.median(took[WARM_UP:])


def hand_overs(sides, server, rounds, seconds):
    """Rows of the table: each language of ours beside python-redis-lock in the same rounds, and the peers by themselves."""
    wanted = [*OURS.values(), *PEERS.values()]
    found = {side: [] for side in wanted}
    for number in range(rounds):
        for side in random.Random(number).sample(wanted, len(wanted)):
            found[side].append(hand_over(sides, server, side, seconds, number))
        shown = ", ".join(f"{side} {found[side][-1]:.2f} ms" for side in wanted)
        print(f"  hand-over, round {number + 1} of {rounds}: {shown}", file=sys.stderr, flush=True)
    peer = found[PEERS["python-redis-lock"]]
    lines = []
    for title, side in OURS.items():
        ratios = [ours / other for ours, other in zip(found[side], peer, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        ours, other = statistics.median(found[side]), statistics.median(peer)
        ratio = f"**{statistics.median(ratios):.2f}** ({low:.2f}–{high:.2f})"
        lines.append(f"| hand-over, {title}: p50 / python-redis-lock's | {ratio} | {ours:.2f} | {other:.2f} | ms |")
    for title, side in PEERS.items():
        lines.append(f"| hand-over, {title} | | | {statistics.median(found[side]):.2f} | ms |")
    return lines


class Line:
    """Processes full of waiters behind one holder, and what happened to them."""

    def __init__(self, sides, server, processes, waiters, hold_ms, mode, parked=0.0):
        with ExitStack() as stack:
            first = Process(stack, holder(sides, "rust", server.url))
            first.ask("acquire")
            command = [sides.ours, f"waiters-{waiters}-{mode}", server.url, str(hold_ms / 1e3)]
            crowd = [Process(stack, command) for _ in range(processes)]
            for process in crowd:
                process.time()
            self.connections = (server.connections() - 1) / processes
            before = server.calls()
            time.sleep(parked)
            self.parked = (server.calls() - before) / processes / parked if parked else None
            before = server.calls()
            released = first.ask("release")
            visits = []
            for process in crowd:
                for _ in range(waiters):
                    visits.append(tuple(map(int, process.process.stdout.readline().split())))
            self.calls = (server.calls() - before) / len(visits)
        self.seconds = (max(end for *_, end in visits) - released) / 1e9
        came = [came for _, came in sorted((granted, came) for came, granted, _ in visits)]
        self.overtakings = sum(after < before for before, after in zip(came, came[1:]))


def drains(sides, server, rounds):
    """200 waiters that hold the lock for a millisecond each."""
    lines = []
    for processes, waiters, mode in ((1, 200, "fair"), (1, 200, "default"), (10, 20, "fair"), (10, 20, "default")):
        runs = [Line(sides, server, processes, waiters, 1, mode) for _ in range(rounds)]
        middle = lambda field: statistics.median(getattr(run, field) for run in runs)
        title = f"{processes} × {waiters} waiters of 1 ms, {mode}" if processes > 1 else f"{waiters} waiters of 1 ms in one process, {mode}"
        lines += [
            f"| {title}: time to drain | **{middle('seconds'):.2f} s** | | | median of {rounds} |",
            f"| {title}: scripts per acquisition | **{middle('calls'):.2f}** | | | |",
            f"| {title}: connections of a process | **{middle('connections'):.0f}** | | | |",
        ]
        if mode == "fair" and processes == 1:
            overtakings = sum(run.overtakings for run in runs)
            lines.append(f"| {title}: overtakings | **{overtakings}** | | | |")
    return lines


def growth(sides, server):
    """What a hand-over costs as the line grows, and what a parked process costs."""
    lines = []
    for waiters in (10, 100, 1_000, 10_000):
        run = Line(sides, server, 1, waiters, 0, "fair")
        lines.append(f"| {waiters:,} fair waiters: scripts per hand-over | **{run.calls:.2f}** | {run.seconds / waiters * 1e6:.0f} | | µs each |")
    run = Line(sides, server, 4, 20, 0, "default", parked=5.0)
    lines.append(f"| a process with 20 parked waiters: scripts a second | **{run.parked:.2f}** | | | over 5 s |")
    return lines


def waiting(sides, places, rounds, seconds):
    """The lines of the table for the group."""
    [server] = places["one"]
    return [*hand_overs(sides, server, rounds, seconds), *drains(sides, server, max(3, rounds // 3)), *growth(sides, server)]
