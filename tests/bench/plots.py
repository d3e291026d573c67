"""Plots of the tables of docs/performance.md, as Mermaid, which GitHub draws."""

import re

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
    ours = [(row[0].removeprefix("hand-over, ").split(":")[0], number(row[2])) for row, _ in measured if row[0].startswith("hand-over, ")]
    peers = [
        (row[0].removeprefix("hand-over, "), number(row[3]))
        for row in map(cells, table.splitlines())
        if row[0].startswith("hand-over, ") and not row[1]
    ]
    if ours:
        both = [(f"locktender, {name}", value) for name, value in ours] + peers
        drawn.append(chart("Hand-over between two processes, p50", "bar", [name for name, _ in both], "ms", [value for _, value in both]))
    return "\n\n".join(drawn)
