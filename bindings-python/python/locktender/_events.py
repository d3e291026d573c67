"""Delivers events to ``logging`` and to callbacks, on one daemon thread per process."""

from __future__ import annotations

import logging
import threading

from . import _native

logger = logging.getLogger("locktender")
logger.addHandler(logging.NullHandler())  # a library prints nothing unless somebody asks

_thread: threading.Thread | None = None


def start() -> None:
    """Starts the thread; called once per process."""
    global _thread
    _thread = threading.Thread(target=_deliver, name="locktender-events", daemon=True)
    _thread.start()


def join(timeout: float) -> None:
    """Waits for the thread, which has been told to end."""
    if _thread is not None and _thread is not threading.current_thread():
        _thread.join(timeout)


def _deliver() -> None:
    while (batch := _native._next_events()) is not None:
        for callback, event in batch:
            _log(event)
            if callback is not None:
                try:
                    callback(event)
                except Exception:
                    logger.exception("an on_event callback failed")
        del batch, callback, event  # or the last one would live until the next


def _log(event: _native.Event) -> None:
    if logger.isEnabledFor(event.level):
        fields = {
            "event": event.kind,
            "lock": event.lock,
            "owner": event.owner,
            "fence": event.fence,
            "rival": event.rival,
            "reason": event.reason,
            "took": event.took,
            "rank": event.rank,
            "server": event.server,
        }
        logger.log(event.level, "%s", event, extra=fields)
