"""The table: the results of each of the three processes."""

from collections import Counter

from history import History
from stage import FIGHTERS, Tally

HEAD = ("", "acquisitions", "waits", "longest wait", "losses", "stale writes", "fate")


def table(tallies: dict[str, Tally], history: History) -> str:
    stale = Counter(stale.line.who for stale in history.stale())
    rows = [HEAD]
    for who, tally in tallies.items():
        longest = f"{tally.longest_wait:.2f} s"
        counts = (str(count) for count in (tally.acquisitions, tally.waits, longest, tally.losses, stale[who]))
        rows.append((f"{who} ({FIGHTERS[who][0]})", *counts, tally.fate or "lives"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n" + "\n".join(lines) + "\n"
