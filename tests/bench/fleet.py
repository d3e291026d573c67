"""The simulated fleet: what 10,000 clients see when a shard of their cluster fails. `.venv/bin/python tests/bench/fleet.py`.

It runs the fleet of tests/simulation in virtual time, about half a minute, and prints its table. The seed decides everything, so
the numbers are the same on every machine. `--write` puts them into docs/performance.md, and draws the picture.
"""

import argparse
import subprocess
from datetime import date

from compare import PAGE
from fleets import ROOT
from plots import DOCS, curves, marked
from sides import built

# Shown before the failure and after it, in seconds.
BEFORE, AFTER = 5, 20


def measure():
    program = built(["-p", "locktender-simulation", "--bin", "fleet"], "fleet")
    output = subprocess.run([program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(field.split("=") for field in output.split())


def number(text):
    return float(text)


def ms(fields, name):
    return f"{number(fields[name]) / 1e3:,.2f} ms"


def seconds(fields, name, since=0.0):
    return f"{(number(fields[name]) - since) / 1e6:.2f} s"


def hand_overs(fields, when):
    """p50, p99 and the longest of the shards that don't fail: of each the largest."""
    others = range(1, int(fields["shards"]))
    return " / ".join(
        f"{max(number(fields[f'shard{shard}_{when}_{what}_us']) for shard in others) / 1e3:.2f}" for what in ("p50", "p99", "max")
    )


def rates(fields, when):
    others = [number(fields[f"shard{shard}_rate_{when}"]) for shard in range(1, int(fields["shards"]))]
    return f"{min(others):,.0f} to {max(others):,.0f}"


def table(fields):
    takeover = number(fields["takeover_us"])
    failed = [f"{ms(fields, f'shard0_during_{what}_us')}" for what in ("p50", "p99", "max")]
    rows = [
        ("the other shards, commands a second of each", rates(fields, "before"), rates(fields, "during")),
        ("the other shards, hand-over: p50 / p99 / longest, ms", hand_overs(fields, "before"), hand_overs(fields, "during")),
        ("the shard that fails, commands a second", f"{number(fields['shard0_rate_before']):,.0f}", "see below"),
        ("the shard that fails, hand-over: p50 / p99 / longest", ms(fields, "shard0_before_p50_us"), " / ".join(failed)),
        ("locks held there: held again after the takeover, p50", "", seconds(fields, "recovery_p50_us", takeover)),
        ("locks held there: the last one held again", "", seconds(fields, "recovery_max_us", takeover)),
        ("locks held there / lost, and acquired again", f"{number(fields['recovery_count']):,.0f}", f"{number(fields['lost']):,.0f}"),
        ("acquires that ended with UNAVAILABLE, and were repeated", "0", f"{number(fields['unavailable']):,.0f}"),
    ]
    lines = ["| what | before the failure | from the failure to 3 s after the takeover |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def picture(fields):
    begin = int(fields["fails_in"]) - BEFORE
    all_rates = [list(map(int, fields[f"shard{shard}_rates"].split(",")))[begin:][: BEFORE + AFTER] for shard in range(int(fields["shards"]))]
    failed, *others = all_rates
    mean = [sum(column) / len(column) for column in zip(*others, strict=True)]
    series = {"the shard that fails at 0 s": failed, "the mean of the others": mean}
    return curves("Commands a second", range(-BEFORE, AFTER), series)


def page(fields):
    sizes = {name: f"{int(fields[name]):,}" for name in ("clients", "shards", "held", "names")}
    said = f"{sizes['clients']} clients, {sizes['shards']} shards, {sizes['held']} locks held, {sizes['names']} names"
    return f"{table(fields)}\n\n{date.today()}: {said}."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    arguments = parser.parse_args()
    fields = measure()
    text = page(fields)
    print(text)
    if arguments.write:
        PAGE.write_text(marked(PAGE.read_text(), "fleet", text))
        (DOCS / "failover.svg").write_text(picture(fields))


if __name__ == "__main__":
    main()
