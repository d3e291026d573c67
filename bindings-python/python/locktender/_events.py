"""Delivers events to ``logging`` and to callbacks, on one daemon thread per process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from . import _native, _threads
from .errors import LockLostError


def start() -> None:
    """Starts the thread; called once per process."""
    _threads.start("locktender-events", _deliver)


def _deliver() -> None:
    process = os.getpid()
    while True:
        batch = _native._next_events()
        for callback, told in batch:
            event = LockLostError(told[0], **told[1]) if isinstance(told, tuple) else told
            if isinstance(event, _native.LockEvent):
                _attempt(_log, event)
            if callback is not None:
                _attempt(_call, callback, event)
            if os.getpid() != process:  # what was called has forked, and this is the child
                return
        del batch, callback, told, event  # or the last one would live until the next


def _attempt(deliver: Callable[..., object], *arguments: object) -> None:
    """Whatever the program's code does, the next events are delivered, and nothing is printed."""
    try:
        deliver(*arguments)
    except BaseException:
        pass


def _call(callback: Callable[..., object], event: _native.LockEvent | LockLostError) -> None:
    try:
        callback(event)
    except BaseException:  # also what would end this thread
        option = "on_event" if isinstance(event, _native.LockEvent) else "on_lost"
        logger.exception("an %s callback failed", option)


def _log(event: _native.LockEvent) -> None:
    if logger.isEnabledFor(event.level):
        # A record has a message of its own.
        fields = {name: getattr(event, name) for name in event._fields if name != "message"}
        logger.log(event.level, "%s", event, extra={"event": event.kind, **fields})


# The last: what finds it finds the module complete.
logger = logging.getLogger("locktender")
logger.addHandler(logging.NullHandler())  # a library prints only what a program asks for
