"""For InfluxDB, and all that reads its line protocol: events as points, written in batches.

    from urllib.request import Request, urlopen

    from locktender import Client
    from locktender.influxdb import Points

    def write(lines: str) -> None:
        urlopen(Request("http://localhost:8086/write?db=locks", lines.encode()), timeout=10).close()

    points = Points(write, app="billing", host="web-3")
    client = Client("redis://localhost", on_event=points)
"""

from __future__ import annotations

import os
import threading
import time

# The interpreter's own: gevent and eventlet replace that of `queue`, and writing has a thread of the system.
from _queue import Empty, SimpleQueue
from collections.abc import Callable

from . import _threads
from ._events import logger
from ._native import LockEvent
from .errors import InvalidArgumentError

__all__ = ["Points"]


class Points:
    """Collects events, and calls ``write`` with their lines, on a thread of its own.

    It is called when ``size`` points have come, and at the latest ``interval`` seconds after the first of them. While it works, points wait
    for their turn. A point that comes while ten batches wait is dropped, and so is a batch whose ``write`` raises an error, which is
    logged. ``dropped`` counts both. ``tags`` are tags of every point. A forked process has points of its own. Call :meth:`flush` before the
    program ends: else the last points are not written.
    """

    def __init__(self, write: Callable[[str], object], /, *, size: int = 1000, interval: float = 10.0, **tags: str) -> None:
        if not callable(write):
            raise InvalidArgumentError("write: must be a function that takes the lines")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidArgumentError(f"size: must be a whole number, at least 1 (given: {size!r})")
        if isinstance(interval, bool) or not isinstance(interval, (int, float)) or not 0 < interval < threading.TIMEOUT_MAX:
            raise InvalidArgumentError(f"interval: must be a number of seconds, more than 0 (given: {interval!r})")
        for tag, value in tags.items():
            if not isinstance(value, str):
                raise InvalidArgumentError(f"{tag}: a tag is a text (given: {value!r})")
        #: How many points were dropped.
        self.dropped = 0
        self._write, self._size, self._interval, self._tags = write, size, interval, tags
        self._waiting: SimpleQueue[str | _Flush] = SimpleQueue()
        self._process: int | None = None

    def __call__(self, event: LockEvent) -> None:
        """Takes an event: a client calls it."""
        line = event.line_protocol(**self._tags)
        if self._process != os.getpid():
            self._process, self._waiting = os.getpid(), SimpleQueue()
            _threads.start("locktender-points", self._run, self._waiting)
        if self._waiting.qsize() < 10 * self._size:
            self._waiting.put(line)
        else:
            self.dropped += 1

    def flush(self, timeout: float = 10.0) -> bool:
        """Writes the points that have come so far, and waits for that: false after ``timeout`` seconds."""
        if self._process != os.getpid():
            return True
        flush, deadline = _Flush(), time.monotonic() + timeout
        self._waiting.put(flush)
        while not flush.done and time.monotonic() < deadline:
            time.sleep(0.005)
        return flush.done

    def _run(self, waiting: SimpleQueue[str | _Flush]) -> None:
        while True:
            lines: list[str] = []
            flush, deadline = None, None
            while flush is None and len(lines) < self._size:
                try:
                    one = waiting.get(timeout=None if deadline is None else max(deadline - time.monotonic(), 0))
                except Empty:
                    break
                if isinstance(one, _Flush):
                    flush = one
                else:
                    lines.append(one + "\n")
                    deadline = deadline or time.monotonic() + self._interval
            if lines:
                self._write_batch(lines)
            if flush is not None:
                flush.done = True

    def _write_batch(self, lines: list[str]) -> None:
        try:
            self._write("".join(lines))
        except BaseException:  # also what would end this thread
            self.dropped += len(lines)
            logger.exception("points could not be written")


class _Flush:
    """Follows the points that are to be written."""

    done = False
