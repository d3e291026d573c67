"""The history: every hold of the sweetroll in the shared file, and whether the lock kept its promise.

Each line was appended by a process that held the lock, or believed that it held it:

    {"fence": 1795227730123456, "who": "Gorn", "event": "bites", "since": 1.25, "checked": 1.31, "until": 2.3, "at": 1.42}

`since` is the time of the grant, `checked` the time of the last check, `until` the end of validity as known then, and `at` the
time at which the line was written. All are seconds by the wall clock of one machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

LEAVES = "leaves"


class Line(NamedTuple):
    fence: int
    who: str
    event: str
    since: float
    checked: float
    until: float
    at: float


class Hold(NamedTuple):
    """One acquisition: valid from `since` to `until`, as far as its process knew."""

    fence: int
    who: str
    since: float
    until: float


class Stale(NamedTuple):
    """A line that its reader must refuse: an earlier line has a larger fence."""

    line: Line
    newest: int

    def __str__(self) -> str:
        late = (self.line.at - self.line.until) * 1e3
        return (
            f"a stale write of {self.line.who}, {late:.0f} ms after its validity had ended: "
            f"fence {self.line.fence} came after {self.newest}"
        )


class History(NamedTuple):
    lines: list[Line]

    @classmethod
    def read(cls, file: Path) -> History:
        return cls([Line(**json.loads(line)) for line in file.read_text().splitlines()])

    def holds(self) -> list[Hold]:
        """Every hold, in the order in which they were granted."""
        holds: dict[int, Hold] = {}
        for line in self.lines:
            hold = holds.setdefault(line.fence, Hold(line.fence, line.who, line.since, line.since))
            # A process that leaves ends its hold at once. Any other line extends the hold until the end that it names.
            until = min(hold.until, line.at) if line.event == LEAVES else max(hold.until, line.until)
            holds[line.fence] = hold._replace(until=until)
        return sorted(holds.values(), key=lambda hold: hold.since)

    def stale(self) -> list[Stale]:
        """The lines that the resource's fence check refuses: an earlier line has a larger fence."""
        stale, newest = [], 0
        for line in self.lines:
            if line.fence < newest:
                stale.append(Stale(line, newest))
            newest = max(newest, line.fence)
        return stale

    def violations(self) -> list[str]:
        """The violations: events that must never happen."""
        found = []
        holds = self.holds()
        for earlier, later in zip(holds, holds[1:], strict=False):
            if later.since < earlier.until:
                both = (earlier.until - later.since) * 1e3
                found.append(f"{earlier.who} ({earlier.fence}) and {later.who} ({later.fence}) held it at once for {both:.1f} ms")
            if later.fence <= earlier.fence:
                found.append(f"{later.who} held it after {earlier.who}, but with fence {later.fence} after {earlier.fence}")
        for stale in self.stale():
            if stale.line.at < stale.line.until:
                found.append(f"{stale.line.who} ({stale.line.fence}) was valid when {stale.newest} had already written")
        return found
