"""The end of a body that failed: its error wins, the lock's is attached to it."""

from __future__ import annotations

from ._events import logger
from .errors import LockError


def attach(error: LockError, body_error: BaseException) -> None:
    """Attaches the lock's error to the body's, as ``lock_error`` and as a note (Python 3.11), and logs it."""
    if hasattr(body_error, "add_note"):
        body_error.add_note(f"locktender: {error}")
    try:
        body_error.lock_error = error  # type: ignore[attr-defined]
    except Exception:  # an exception class with slots; the note and the log have it
        pass
    logger.warning("a body failed, and so did its lock: %s", error, extra={"event": "body_failed", "lock": error.lock_name})
