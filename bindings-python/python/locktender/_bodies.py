"""The end of a body that failed: its error wins, the lock's is attached to it."""

from __future__ import annotations

from ._events import logger
from .errors import LockError


def attach(error: LockError, body_error: BaseException) -> None:
    """Attaches the lock's error to the body's, as ``lock_error`` and as a note (Python 3.11), and logs it."""
    for way in (_note, _attribute, _log):
        try:
            way(error, body_error)
        except Exception:  # the program's own code: an exception class with slots, a filter of the logger
            pass


def _note(error: LockError, body_error: BaseException) -> None:
    if hasattr(body_error, "add_note"):
        body_error.add_note(f"locktender: {error}")


def _attribute(error: LockError, body_error: BaseException) -> None:
    body_error.lock_error = error  # type: ignore[attr-defined]


def _log(error: LockError, _: BaseException) -> None:
    logger.warning("a body failed, and so did its lock: %s", error, extra={"event": "body_failed", "lock_name": error.lock_name})
