"""Green threads: the hubs of gevent and eventlet, as event loops for the native side's completion queue.

A greenlet that waits for an operation leaves the thread to the others, the holder of its lock among them. Its hub watches the
connections and the queue's descriptor, as an asyncio loop does, and lets the greenlet continue when the operation has ended.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol


class Ended(Protocol):
    """The end of one operation, for the greenlet that waits for it."""

    def set(self) -> None:
        """Has the greenlet continue, soon; called on the hub."""

    def wait(self, timeout: float | None = None) -> object:
        """Lets other greenlets run until then; whatever is thrown into the greenlet meanwhile is raised."""


class Hub:
    """What both kinds of hub have in common. It belongs to the process it was made in."""

    def __init__(self) -> None:
        self.process = os.getpid()
        # The parent's, after a fork: kept, because what it leads to must not be ended here.
        self.inherited: Hub | None = None

    def add_reader(self, descriptor: int, callback: Callable[..., None], *arguments: object) -> None:
        """Calls ``callback`` on the hub whenever there is something to read."""
        raise NotImplementedError

    def remove_reader(self, descriptor: int) -> None:
        """Watches it no more."""
        raise NotImplementedError

    def ended(self) -> Ended:
        """For one operation."""
        raise NotImplementedError

    def wait(self, ended: Ended, timeout: float | None) -> None:
        """Waits for an end."""
        ended.wait(timeout)


class GeventHub(Hub):
    def __init__(self, hub: Any) -> None:
        super().__init__()
        self._ended = import_module("gevent.event").Event
        self._loop = hub.loop
        self._watchers: dict[int, Any] = {}
        # The watchers of connections don't count as work that is left. A greenlet that waits does.
        self._work = hub.loop.async_()
        self._waiting = 0

    def add_reader(self, descriptor: int, callback: Callable[..., None], *arguments: object) -> None:
        watcher = self._watchers[descriptor] = self._loop.io(descriptor, 1, ref=False)
        watcher.start(self._readable, callback, *arguments)

    def remove_reader(self, descriptor: int) -> None:
        watcher = self._watchers.pop(descriptor)
        watcher.stop()
        watcher.close()

    def ended(self) -> Ended:
        ended: Ended = self._ended()
        return ended

    def _readable(self, callback: Callable[..., None], *arguments: object) -> None:
        if os.getpid() == self.process:
            callback(*arguments)
        else:  # a forked child has inherited the loop; what there is to read is the parent's
            for descriptor in list(self._watchers):
                self.remove_reader(descriptor)

    def wait(self, ended: Ended, timeout: float | None) -> None:
        if self._waiting == 0:
            self._work.start(_nothing)
        self._waiting += 1
        try:
            ended.wait(timeout)
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                self._work.stop()


class EventletHub(Hub):
    def __init__(self, hub: Any) -> None:
        super().__init__()
        self._hub = hub
        self._listeners: dict[int, Any] = {}

    def add_reader(self, descriptor: int, callback: Callable[..., None], *arguments: object) -> None:
        def readable(_: object) -> None:
            if os.getpid() == self.process:
                callback(*arguments)

        self._listeners[descriptor] = self._hub.add(self._hub.READ, descriptor, readable, _nothing, _nothing)

    def remove_reader(self, descriptor: int) -> None:
        self._hub.remove(self._listeners.pop(descriptor))

    def ended(self) -> Ended:
        return EventletEnded()


class EventletEnded:
    def __init__(self) -> None:
        self._event = import_module("eventlet.event").Event()

    def set(self) -> None:
        self._event.send()

    def wait(self, timeout: float | None = None) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        while not self._event.ready():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            self._event.wait(left)


def hub() -> Hub | None:
    """The hub of this thread's greenlets, if there is one, and it isn't what is running: that can't wait for itself."""
    gevent = sys.modules.get("gevent._hub_local")
    found = None if gevent is None else gevent.get_hub_if_exists()
    if found is not None:  # it is false until it runs
        return None if _current() is found else _ours(found, GeventHub)
    eventlet = sys.modules.get("eventlet.hubs")
    found = None if eventlet is None else getattr(eventlet._threadlocal, "hub", None)
    if found is not None:
        return None if _current() is found.greenlet else _ours(found, EventletHub)
    return None


def _current() -> Any:
    return import_module("greenlet").getcurrent()


def _ours(found: Any, kind: Callable[[Any], Hub]) -> Hub:
    """What was made for this hub; kept by it, and for it alone."""
    known: Hub | None = getattr(found, "_locktender", None)
    if known is not None and known.process == os.getpid():
        return known
    made = kind(found)
    made.inherited = known
    found._locktender = made
    return made


def _nothing(*_: object) -> None:
    pass
