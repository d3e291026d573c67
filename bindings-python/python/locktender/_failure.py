"""Failures of a job's work: which errors are one, and what is noted of them."""

from __future__ import annotations

import sys


def failure(error: BaseException) -> str | None:
    """What is noted of work that ended by this error. ``None`` if the error stops the worker: then the work may have been fine."""
    return None if _stops(error) else said(error)


def said(error: object) -> str:
    """What an error says, like the last line of a traceback; of one without a text, its type."""
    kind = type(error).__name__
    try:
        text = str(error)
        if isinstance(error, BaseException):
            text = f"{kind}: {text}" if text else kind
        return text.encode(errors="backslashreplace").decode()
    except BaseException:  # code of the program: whatever it raises, the attempt has to end
        return kind


def _stops(error: BaseException) -> bool:
    if isinstance(error, SystemExit):
        return error.code is None or (isinstance(error.code, int) and error.code == 0)
    if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
        return True
    members = getattr(error, "exceptions", None)
    if isinstance(members, tuple) and members and not isinstance(error, Exception):  # a BaseExceptionGroup, of Python 3.11
        return all(isinstance(member, BaseException) and _stops(member) for member in members)
    greenlet = sys.modules.get("greenlet")
    if greenlet is not None and isinstance(error, greenlet.GreenletExit):
        return True
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError) and _is_cancelled()


def _is_cancelled() -> bool:
    """Whether the current task was cancelled: otherwise the cancellation is that of something it waited for."""
    import asyncio
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop
        return False
    # Before Python 3.11 tasks don't count.
    return task is not None and getattr(task, "cancelling", lambda: 1)() > 0
