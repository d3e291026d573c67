"""Measures locktender against a floor or a peer: `python3 tests/bench/compare.py [--rounds N] [--seconds S] [ROW …]`.

Machines are noisy, so a number alone says little. Every row compares two sides in one run: each side in a process of its
own, in shuffled order, in nine rounds or more, and what counts is the median of the rounds' ratios. `--write` puts the
table into docs/performance.md.
"""

import argparse
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


@dataclass(frozen=True)
class Row:
    """Two sides and what is compared: the ratio is ours to the other's, `aim` what it shall be."""

    name: str
    ours: str
    other: str
    field: str
    aim: str


ROWS = [
    Row("Rust async, 1 caller, time / raw blocking socket", "async-1", "raw-1", "us_per_pair", "≤ 1.5"),
    Row("Rust async, 256 callers, throughput / raw loader (50 × 16)", "async-256", "raw-50x16", "pairs_per_second", "≥ 0.6"),
]


def build():
    """Builds the sides; gives the program."""
    command = ["cargo", "build", "--release", "--locked", "-p", "locktender", "--bench", "sides", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "sides":
            return message["executable"]
    raise SystemExit("cargo built no sides")


@contextmanager
def server():
    """A private server on a free loopback port; gives its URL and its name."""
    listed = ROOT / ".venv/servers.json"
    if not listed.is_file():
        raise SystemExit("no list of servers: run `tests/run setup` first")
    entry = json.loads(listed.read_text())[0]
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as place:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", place]
        process = subprocess.Popen([entry["path"], *options], stdout=subprocess.DEVNULL)
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except ConnectionRefusedError:
                    if process.poll() is not None:
                        raise SystemExit("the server did not start") from None
            yield f"redis://127.0.0.1:{port}", entry["name"]
        finally:
            process.terminate()
            process.wait()


def measure(program, side, url, seconds):
    """Runs one side in a process of its own; gives its fields."""
    output = subprocess.run([program, side, url, str(seconds)], capture_output=True, text=True, check=True, timeout=120).stdout
    fields = {name: float(value) for name, value in (field.split("=") for field in output.split())}
    if "pairs" in fields:
        fields["pairs_per_second"] = fields["pairs"] / fields["seconds"]
    return fields


def compare(program, row, url, rounds, seconds):
    """The median ratio of a row, its quartiles, and the medians of both sides."""
    ratios, ours, others = [], [], []
    for number in range(rounds):
        sides = [row.ours, row.other]
        random.Random(number).shuffle(sides)
        values = {side: measure(program, side, url, seconds)[row.field] for side in sides}
        ratios.append(values[row.ours] / values[row.other])
        ours.append(values[row.ours])
        others.append(values[row.other])
        print(f"  {row.name}: round {number + 1} of {rounds}: {ratios[-1]:.2f}", file=sys.stderr, flush=True)
    low, _, high = statistics.quantiles(ratios, n=4)
    median = statistics.median
    return f"| {row.name} | {row.aim} | **{median(ratios):.2f}** ({low:.2f}–{high:.2f}) | {median(ours):,.1f} | {median(others):,.1f} | {row.field} |"


def renewal(program, url, rounds):
    """What 1,000 renewed holds cost."""
    results = [measure(program, "holds-1000", url, 10) for _ in range(max(3, rounds // 3))]
    cpu = statistics.median(result["cpu_percent"] for result in results)
    writes = statistics.median(result["writes_per_second"] for result in results)
    lost = sum(int(result["lost"]) for result in results)
    return [
        f"| 1,000 holds, ttl 3 s: CPU of a core | ≤ 1 % | **{cpu:.2f} %** | | | over 10 s, {len(results)} runs |",
        f"| 1,000 holds, ttl 3 s: writes a second (those of wake-ups included) | ≤ 50 | **{writes:.0f}** | | | |",
        f"| 1,000 holds, ttl 3 s: holds lost | 0 | **{lost}** | | | |",
    ]


def table(arguments):
    program = build()
    with server() as (url, name):
        lines = [
            "| what | aim | median ratio (quartiles) | ours | other | unit |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [compare(program, row, url, arguments.rounds, arguments.seconds) for row in ROWS if wanted(row, arguments.rows)]
        if not arguments.rows or "holds" in arguments.rows:
            lines += renewal(program, url, arguments.rounds)
    cores = os.cpu_count()
    lines += ["", f"{name}, {platform.machine()}, {cores} cores shared by client and server, {arguments.rounds} rounds."]
    return "\n".join(lines)


def wanted(row, names):
    return not names or row.ours in names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="the sides to measure (async-1, async-256, holds); default all")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    text = table(arguments)
    print(text)
    if arguments.write:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
