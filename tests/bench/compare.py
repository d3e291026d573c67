"""The benchmark: it compares locktender with a floor or another library. `.venv/bin/python tests/bench/compare.py [GROUP …]`.

Machines are noisy, so a number alone says little. Every row compares sides in one run: each side in a process of its
own, in shuffled order, in nine rounds or more, and what counts is the median of the rounds' ratios. `--write` puts what was
measured into the table of docs/performance.md, and draws its pictures. Groups: rust, holds, quorum, cluster, waiting, peers, left, python, node; all but
waiting, peers and left unless some are named; waiting by itself goes into a table of its own. `--rows TEXT` measures the rows with that text in
their titles.
"""

import argparse
import math
import os
import platform
import random
import statistics
import sys
import time
from datetime import date

from fleets import ROOT, fleets
from plots import draw, marked
from rows import ROWS
from sides import Sides
from waiting import waiting

PAGE = ROOT / "docs/performance.md"
# What the fields of a side are called in the table.
UNITS = {
    "server_cpu_us_per_pair": "server CPU, µs per pair",
    "cpu_us_per_pair": "client CPU, µs per pair",
    "p50_us": "p50, µs",
    "p99_us": "p99, µs",
    "pairs_per_second": "pairs a second",
    "process_ms": "ms",
    "memory_mb": "MB",
}
GROUPS = ["rust", "holds", "quorum", "cluster", "waiting", "peers", "left", "python", "node"]


def compare(sides, places, rows, rounds, seconds):
    """The lines of the table for rows that are measured together: each side runs once a round."""
    wanted = list(dict.fromkeys(side for row in rows for side in (row.ours, *row.others)))
    found = {row: [] for row in rows}
    for number in range(rounds):
        order = random.Random(number).sample(wanted, len(wanted))
        values = {side: measure(sides, places, side, seconds) for side in order}
        for row in rows:
            # The faster peer is the one to compare with, in whatever is compared.
            other = min(row.others, key=lambda side: values[side].get("p50_us", 0))
            found[row].append((values[row.ours][row.field], values[other][row.field]))
        shown = ", ".join(f"{side} {values[side].get('p50_us', 0):.0f} µs" for side in wanted)
        print(f"  round {number + 1} of {rounds}: {shown}", file=sys.stderr, flush=True)
    return [line(row, found[row]) for row in rows]


def measure(sides, places, side, seconds):
    name, _, place = side.partition("@")
    return sides.run(name, places[place or "one"], seconds)


def line(row, pairs):
    ratios = [ours / other if other else math.inf for ours, other in pairs]
    low, _, high = statistics.quantiles(ratios, n=4)
    ours, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = f"**{statistics.median(ratios):.2f}** ({low:.2f}–{high:.2f})"
    return f"| {row.title} | {ratio} | {ours:,.1f} | {other:,.1f} | {UNITS.get(row.field, row.field)} |"


def renewal(sides, places, rounds):
    """What 1,000 renewed holds cost."""
    results = [sides.run("holds-1000", places["one"], 10) for _ in range(max(3, rounds // 3))]
    cpu = statistics.median(result["cpu_percent"] for result in results)
    writes = statistics.median(result["writes_per_second"] for result in results)
    lost = sum(int(result["lost"]) for result in results)
    return [
        f"| 1,000 holds, ttl 3 s: CPU of a core | **{cpu:.2f} %** | | | over 10 s, {len(results)} runs |",
        f"| 1,000 holds, ttl 3 s: writes a second | **{writes:.0f}** | | | |",
        f"| 1,000 holds, ttl 3 s: holds lost | **{lost}** | | | |",
    ]


def one_round(sides, places, seconds):
    """How many uncontended grants took a single round, at least: a second one asks all five servers to confirm."""
    before = sum(server.calls() for server in places["five"])
    pairs = sides.run("async-1", places["five"], seconds)["all_pairs"] + 1
    calls = sum(server.calls() for server in places["five"]) - before
    more = calls / pairs - 2 * len(places["five"])
    share = f"**{100 * (1 - max(more, 0) / len(places['five'])):.1f} %**"
    return f"| five servers: grants in one round | {share} | {calls / pairs:.2f} | | scripts per pair |"


def left(sides, places, names):
    """What a server keeps of names that were used once, and what it appends to its file."""
    (server,) = servers = places["appends"]
    memory = lambda: int(server.info(b"memory")["used_memory"])
    fresh = memory()

    def kept(what):
        # The connections of the side are gone by then, with their buffers.
        time.sleep(1)
        return f"| {what}; memory left | **{(memory() - fresh) / 1e6:.2f} MB** | | | in {server.number(b'DBSIZE'):,} keys |"

    lines = []
    # What the first name leaves is mostly the server's own: tables and scripts.
    for count in (1, names):
        done = sides.run(f"names-{count}", servers, 600)["all_pairs"]
        lines.append(kept(f"names used: {done:,.0f}"))
    sides.run("holds-10000", servers, 2)
    lines.append(kept(f"the same with entries of the history: {server.number(b'XLEN {~lt}:log'):,}"))
    file = sides.run("appended", servers, 60)
    return [
        *lines,
        f"| append-only file: bytes per pair | **{file['pair']:.0f}** | | | {file['owner']:.0f} of them an owner |",
        f"| append-only file: bytes per refused attempt | **{file['refusal']:.0f}** | | | {file['first_refusal']:.0f} for the first |",
    ]


def table(arguments):
    groups = arguments.groups or [group for group in GROUPS if group not in ("waiting", "peers", "left")]
    sides = Sides(groups)
    lines = ["| what | median ratio (quartiles) | ours | other | unit |", "| --- | --- | --- | --- | --- |"]
    with fleets(sides.trust) as places:
        server = places["one"][0].name
        for group in groups:
            rows = [row for row in ROWS if row.group == group and arguments.rows in row.title]
            if rows:
                lines += compare(sides, places, rows, arguments.rounds, arguments.seconds)
            if arguments.rows:
                continue
            if group == "holds":
                lines += renewal(sides, places, arguments.rounds)
            if group == "waiting":
                lines += waiting(sides, places, arguments.rounds, arguments.seconds)
            if group == "left":
                lines += left(sides, places, arguments.names)
            if group == "quorum":
                lines.append(one_round(sides, places, arguments.seconds))
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores shared by clients and servers"
    lines += ["", f"{date.today()}: {server}, {machine}; {arguments.rounds} rounds of {arguments.seconds:g} s a side."]
    return "\n".join(lines)


def merged(old, new):
    """The old table with what was measured anew in its place. Processor times come first: they hold on any machine."""
    title = lambda line: line.split("|")[1].strip() if line.startswith("|") else ""
    head, rule, *measured = filter(title, new.splitlines())
    lines = {title(line): line for line in [*filter(title, old.splitlines()[2:]), *measured]}
    first = [line for name, line in lines.items() if " CPU per " in name]
    rest = [line for line in lines.values() if line not in first]
    return "\n".join([head, rule, *first, *rest, "", new.splitlines()[-1]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="what to measure")
    parser.add_argument("--rows", default="", metavar="TEXT", help="only the rows whose titles contain it")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--names", type=int, default=1_000_000, help="how many names the group left uses")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    text = table(arguments)
    print(text)
    if arguments.write:
        mark = "waiting" if arguments.groups == ["waiting"] else "bench"
        page = PAGE.read_text()
        old = page.partition(f"<!-- {mark}:begin -->")[2].partition(f"<!-- {mark}:end -->")[0]
        PAGE.write_text(marked(page, mark, merged(old.strip(), text)))
        draw()


if __name__ == "__main__":
    main()
