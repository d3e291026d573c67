"""Plots of the tables of docs/performance.md, as Mermaid, which GitHub draws, and the chart of the READMEs, which PyPI and npm show, too.

`python3 tests/bench/plots.py` draws that chart anew from the page.
"""

import re
import sys
from pathlib import Path

NUMBER = re.compile(r"\*\*([\d.,]+)")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text):
    return float(text.replace(",", ""))


def rows(table):
    """Title and median of every row that has one."""
    for line in table.splitlines():
        if line.startswith("|") and (found := NUMBER.search(line)):
            yield cells(line), number(found[1])


def chart(title, kind, labels, unit, *series):
    names = ", ".join(f'"{label}"' for label in labels)
    top = max(map(max, series)) * 1.2
    lines = ["```mermaid", "xychart-beta", f'    title "{title}"', f"    x-axis [{names}]", f'    y-axis "{unit}" 0 --> {top:.1f}']
    lines += [f"    {kind} [{', '.join(f'{value:g}' for value in values)}]" for values in series]
    return "\n".join([*lines, "```"])


def hand_overs(table):
    """Each library, ours first, and its hand-over in milliseconds."""
    found = [row for row in map(cells, table.splitlines()) if row[0].startswith("hand-over, ")]
    name = lambda row: row[0].removeprefix("hand-over, ").split(":")[0]
    return [(f"locktender, {name(row)}", number(row[2])) for row in found if row[1]] + [(name(row), number(row[3])) for row in found if not row[1]]


STYLE = "text{font:14px system-ui,sans-serif;fill:#57606a}.bar{fill:#8c959f}.ours{fill:#2da44e}@media(prefers-color-scheme:dark){text{fill:#9da7b3}}"


def picture(table):
    """The hand-overs as bars, each as long as its time, in SVG."""
    measured = sorted(hand_overs(table), key=lambda row: row[1])
    longest, height = measured[-1][1], 26 * len(measured) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" role="img" aria-label="Hand-over of a busy lock, p50">',
        f"<style>{STYLE}</style>",
        '<text x="0" y="16">Hand-over of a busy lock between two processes, p50 (shorter is better)</text>',
    ]
    for at, (name, value) in enumerate(measured):
        y, width = 26 * at + 28, max(2, round(430 * value / longest))
        kind = "ours" if name.startswith("locktender") else "bar"
        lines.append(f'<text x="200" y="{y + 15}" text-anchor="end">{name}</text><rect class="{kind}" x="210" y="{y}" width="{width}" height="20" rx="2"/>')
        lines.append(f'<text x="{216 + width}" y="{y + 15}">{value:.1f} ms</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def plots(table):
    """What of the table is better seen than read."""
    measured = list(rows(table))
    drawn = []
    growth = [(row[0].split(" ")[0], value, number(row[2])) for row, value in measured if "fair waiters: scripts per" in row[0]]
    if growth:
        labels = [label for label, _, _ in growth]
        drawn.append(chart("Scripts per hand-over, by waiters", "line", labels, "scripts", [value for _, value, _ in growth]))
        drawn.append(chart("Time per hand-over, by waiters", "line", labels, "µs", [each for _, _, each in growth]))
    speed = [(row[0], value) for row, value in measured if ": throughput / " in row[0] and not row[0].startswith("Rust")]
    if speed:
        short = [re.sub(r" throughput / (?:npm )?| Lock.*|,? SET and.*|'s$", " ", title).strip() for title, _ in speed]
        drawn.append(chart("Throughput as a multiple of the peer's", "bar", short, "times", [value for _, value in speed]))
    if both := hand_overs(table):
        drawn.append(chart("Hand-over between two processes, p50", "bar", [name for name, _ in both], "ms", [value for _, value in both]))
    return "\n\n".join(drawn)


if __name__ == "__main__":
    docs = Path(__file__).parents[2] / "docs"
    chart = picture((docs / "performance.md").read_text())
    if "--print" in sys.argv:
        print(chart, end="")
    else:
        (docs / "handover.svg").write_text(chart)
