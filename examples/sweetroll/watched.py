"""Watched: a page that shows the demo, by `locktender watch --web`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stage import Notice

if TYPE_CHECKING:
    from locktender import LockEvent

COMMAND = Path(__file__).resolve().parents[2] / ".venv/bin/locktender"
LOCK = "sweetroll"

# The notices of a fight in the words of the library's events. A process that is killed gives nothing back.
EVENTS = {"waits": "busy", "takes": "acquired", "extends": "extended", "leaves": "released", "loses": "lost", "is killed": "dropped"}
# Events that end a hold.
ENDS = ("leaves", "loses", "is killed")
FIELDS = ("lock_name", "owner", "fence", "next_owner", "next_fence", "reason", "took", "overrun", "server", "message")


class Page:
    """A page that receives what happens, in lines of JSON, as a service's log would do it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._fences: dict[str, int] = {}
        self._writes = threading.Lock()

    def notice(self, notice: Notice) -> None:
        """Tells what happened in a fight."""
        who, event, said = notice.who, notice.event, notice.said
        if event == "takes":
            self._fences[who] = said["fence"]
        fence = self._fences.pop(who, None) if event in ENDS else self._fences.get(who)
        if event not in EVENTS:
            if event in ("is paused", "goes on", "comes back", "two die", "come back"):
                self._tell(notice.at, who, "warning", message=event)
        elif fence is not None or event == "waits":
            # Of a waiter the fence of its hold before says nothing.
            known = {"fence": fence} if event != "waits" else {}
            self._tell(notice.at, who, EVENTS[event], lock_name=LOCK, took=said.get("waited"), message=said.get("why"), **known)

    def event(self, app: str, event: LockEvent) -> None:
        """Tells an event of an application's client."""
        self._tell(time.time(), app, event.kind, **{field: getattr(event, field) for field in FIELDS})

    def _tell(self, at: float, app: str, event: str, **fields: object) -> None:
        known = {name: value for name, value in fields.items() if value is not None}
        line = json.dumps({"at": at, "app": app, "event": event, **known})
        # After Ctrl-C the page may have ended first.
        with self._writes, suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()


@contextmanager
def watched(urls: list[str], is_wanted: bool, report: Path | None) -> Iterator[Page | None]:
    """Shows the locks of these servers on a page, whose address it prints. At the end it writes the report."""
    if not is_wanted and report is None:
        yield None
        return
    words: list[str | Path] = [COMMAND, "watch", "--web", "--events", "-", *(word for url in urls for word in ("--server", url))]
    if report is not None:
        words += ["--report", report]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address:
                raise SystemExit(process.wait())
            print(f"watch it at {address}", flush=True)
            yield Page(process)
            if is_wanted and sys.stdin.isatty() and sys.stdout.isatty():
                with suppress(EOFError):
                    input("Enter ends the page. ")
        finally:
            process.terminate()
    if report is not None:
        print(f"{report.resolve()} shows it again, in any browser")
