"""What docs/performance.md shows of its tables besides them: the rows that people ask for first, and pictures, in SVG.

`python3 tests/bench/plots.py` makes them anew from the page; with `--check` it only says whether they are up to date.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NUMBER = re.compile(r"\*\*([\d.,]+)")

# What people ask for first, and the row that has it.
FIRST = {
    "Rust, 1 caller": "Rust async on two threads, new names, 1 caller: throughput / rslock",
    "Rust, 64 callers": "Rust async on two threads, new names, 64 callers: throughput / rslock",
    "Python, 1 thread": "Python, 1 thread: throughput / redis-py's Lock with hiredis",
    "Python, 16 threads": "Python, 16 threads: throughput / redis-py's Lock",
    "asyncio, 256 tasks": "asyncio, 256 tasks: throughput / redis.asyncio's Lock",
    "Node, withLock, 64 callers": "Node, withLock, new names, 64 callers: throughput / npm redlock's using",
    "Five servers, 1 caller": "five servers: time / the faster of rslock and npm redlock",
    "Hand-over of a held lock": "hand-over, Python: p50 / python-redis-lock's",
}


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text):
    return float(text.replace(",", ""))


def rows(page):
    """All rows of the page's tables, by their titles."""
    return {row[0]: row for row in map(cells, (line for line in page.splitlines() if line.startswith("|")))}


def first(page):
    """What is asked for first: what it is, the other library, both figures and their unit, and the median ratio."""
    found = rows(page)
    for what, title in FIRST.items():
        _, ratio, ours, other, unit = found[title]
        yield what, title.partition(" / ")[2].removesuffix("'s"), number(ours), number(other), unit, number(NUMBER.search(ratio)[1])


def summary(page):
    """The table at the page's beginning."""
    lines = ["| what | locktender | the other library | ratio |", "| --- | --- | --- | --- |"]
    for what, name, ours, other, unit, ratio in first(page):
        unit, more = unit.removeprefix("p50, "), unit == "pairs a second"
        shown = [f"{value:,.0f}" if value >= 100 else f"{value:g}" for value in (ours, other)]
        said = f"**{ratio:.{1 if ratio >= 1 else 2}f} ×** as many" if more else f"**{ratio:.2f} ×** the time"
        lines.append(f"| {what} | {shown[0]} {unit} | {name}: {shown[1]} {unit} | {said} |")
    return "\n".join([*lines, "", f"The other libraries are {versions()}."])


def versions():
    """The libraries that are compared with, each with its version."""
    npm = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    node = [f"npm {name} {npm[name]}" for name in ("redlock", "redlock-universal", "ioredis", "redis-semaphore", "simple-redis-mutex")]
    pinned = "".join((ROOT / file).read_text() for file in ("tests/requirements.txt", "tests/bench/requirements.txt"))
    pip = dict(re.findall(r"^([\w-]+)==([\w.]+)", pinned, re.MULTILINE))
    python = [f"redis-py {pip['redis']} with hiredis {pip['hiredis']}", f"python-redis-lock {pip['python-redis-lock']}"]
    rust = re.search(r'rslock = \{ version = "=([\d.]+)"', (ROOT / "tests/bench/rslock/Cargo.toml").read_text())[1]
    *most, last = [*python, *node, f"rslock {rust}"]
    return f"{', '.join(most)} and {last}"


def hand_overs(page):
    """Each library, ours first, and its hand-over in milliseconds."""
    found = [row for title, row in rows(page).items() if title.startswith("hand-over, ")]
    name = lambda row: row[0].removeprefix("hand-over, ").split(":")[0]
    return [(f"locktender, {name(row)}", number(row[2])) for row in found if row[1]] + [(name(row), number(row[3])) for row in found if not row[1]]


STYLE = "text{font:14px system-ui,sans-serif;fill:#57606a}.bar{fill:#8c959f}.ours{fill:#2da44e}@media(prefers-color-scheme:dark){text{fill:#9da7b3}}"
WIDTH = 760


def picture(title, height, lines):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" role="img" aria-label="{title}">'
    return "\n".join([head, f"<style>{STYLE}</style>", f'<text x="0" y="16">{title}</text>', *lines, "</svg>"]) + "\n"


def bars(title, measured, unit, is_ours=lambda name: True):
    """A bar for each name and value, as long as its value."""
    longest = max(value for _, value in measured)
    left = 10 + round(8.6 * max(len(name) for name, _ in measured))  # wide enough for the widest font that `system-ui` can be
    lines = []
    for at, (name, value) in enumerate(measured):
        y, width = 26 * at + 28, max(2, round((WIDTH - left - 80) * value / longest))
        kind = "ours" if is_ours(name) else "bar"
        text = f'<text x="{left - 10}" y="{y + 15}" text-anchor="end">{name}</text>'
        lines.append(f'{text}<rect class="{kind}" x="{left}" y="{y}" width="{width}" height="20" rx="2"/>')
        lines.append(f'<text x="{left + width + 6}" y="{y + 15}">{value:.1f} {unit}</text>')
    return picture(title, 26 * len(measured) + 34, lines)


def curves(title, steps, series):
    """A line for each name, over the same steps; ours is the first."""
    top, left, height = max(max(values) for values in series.values()), 60, 300
    place = lambda at, value: f"{left + at * (WIDTH - left - 20) / (len(steps) - 1):.0f},{height - 40 - value * (height - 80) / top:.0f}"
    lines = [f'<text x="{left - 8}" y="{height - 36}" text-anchor="end">0</text><text x="{left - 8}" y="46" text-anchor="end">{top:,.0f}</text>']
    for at, step in enumerate(steps):
        if step % 5 == 0:
            x = place(at, 0).partition(",")[0]
            lines.append(f'<text x="{x}" y="{height - 18}" text-anchor="middle">{step} s</text>')
    for kind, colour, (name, values) in zip(("ours", "bar"), ("#2da44e", "#8c959f"), series.items(), strict=True):
        points = " ".join(place(at, value) for at, value in enumerate(values))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = 40 if kind == "ours" else 60
        lines.append(f'<rect class="{kind}" x="520" y="{y - 10}" width="12" height="12"/><text x="538" y="{y}">{name}</text>')
    return picture(title, height, lines)


def pictures(page):
    """The pictures of the tables, by the names of their files."""
    over = sorted(hand_overs(page), key=lambda row: row[1])
    faster = [(f"{what}: {name}", ratio) for what, name, *_, unit, ratio in first(page) if unit == "pairs a second"]
    ours = lambda name: name.startswith("locktender")
    return {
        "handover.svg": bars("Hand-over of a held lock between two processes, p50 (shorter is better)", over, "ms", ours),
        "throughput.svg": bars("Pairs a second, as a multiple of another library's (longer is better)", faster, "×"),
    }


def marked(page, mark, text):
    """The page with another text between its marks."""
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def made(page):
    """The files, each with its text."""
    return {DOCS / "performance.md": marked(page, "first", summary(page)), **{DOCS / name: text for name, text in pictures(page).items()}}


def draw():
    for file, text in made((DOCS / "performance.md").read_text()).items():
        file.write_text(text)


if __name__ == "__main__":
    if "--check" in sys.argv:
        old = [str(file) for file, text in made((DOCS / "performance.md").read_text()).items() if not file.exists() or file.read_text() != text]
        sys.exit(f"not up to date, run python3 tests/bench/plots.py: {', '.join(old)}" if old else 0)
    draw()
