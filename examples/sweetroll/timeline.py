"""The timeline of the fight: three growing rows on a terminal, else one line for each event."""

import shutil
import time
from collections.abc import Callable

from stage import Notice

COLUMN = 0.1  # seconds
HOLDS, WAITS, LOST, NOTHING = "█", "·", "x", " "
# The symbol that a row shows after an event, and the one in the event's own column.
MARKS = {
    "enters": (NOTHING, NOTHING),
    "waits": (WAITS, WAITS),
    "takes": (HOLDS, HOLDS),
    "extends": (HOLDS, "+"),
    "leaves": (NOTHING, NOTHING),
    "loses": (NOTHING, LOST),
    "is killed": (NOTHING, "K"),
    "comes back": (NOTHING, "R"),
    "is paused": ("‖", "P"),
    "goes on": (HOLDS, "C"),
    "two die": ("-", "D"),
    "come back": (NOTHING, "R"),
}
LEGEND = f"{HOLDS} holds  {WAITS} waits  + extends  x loses  K killed  R back  P paused  ‖ still believes  C goes on  D two servers die"


def timeline(rows: list[str], plain: bool) -> Callable[[Notice], None]:
    """The function to call with each notice, about one of `rows`."""
    return Plain() if plain else Rows(rows)


class Plain:
    def __init__(self) -> None:
        self._began = time.time()

    def __call__(self, notice: Notice) -> None:
        if notice.event == "bites":
            return
        details = "  ".join(f"{key} {value}" for key, value in notice.said.items())
        print(f"{notice.at - self._began:7.3f}  {notice.who:7} {notice.event:10} {details}".rstrip(), flush=True)


class Rows:
    def __init__(self, rows: list[str]) -> None:
        self._began = time.time()
        self._rows = dict.fromkeys(rows, "")
        self._states = dict.fromkeys(rows, NOTHING)
        print(f"\n{LEGEND}\n" + "\n" * len(rows))

    def __call__(self, notice: Notice) -> None:
        column = int((notice.at - self._began) / COLUMN)
        for who, row in self._rows.items():
            self._rows[who] = row + self._states[who] * (column - len(row))
        if notice.event in MARKS:
            self._states[notice.who], mark = MARKS[notice.event]
            self._rows[notice.who] = self._rows[notice.who][:column] + mark
        self._draw()

    def _draw(self) -> None:
        room = shutil.get_terminal_size().columns - 10
        print(f"\x1b[{len(self._rows) + 1}A", end="")
        for who, row in self._rows.items():
            print(f"\x1b[2K{who:8} {row[-room:]}")
        print("", flush=True)
