"""What belongs to asyncio; imported when it is used."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from typing import Any

from . import _threads
from ._native import Loss


async def wait_lost(ended: Coroutine[Any, Any, Loss | None], timeout: float | None) -> Loss | None:
    try:
        return await asyncio.wait_for(ended, timeout)
    except asyncio.TimeoutError:
        return None


def stand_in(loop: asyncio.AbstractEventLoop, drain: Any) -> None:
    """Drains the queue of a loop that can't watch a descriptor (Windows' default loop): a thread waits for it."""
    reference = weakref.ref(loop)
    _threads.start("locktender-loop", _pump, reference, drain)


def _pump(reference: weakref.ref[asyncio.AbstractEventLoop], drain: Any) -> None:
    while True:
        filled = drain._wait()
        loop = reference()
        if loop is None or loop.is_closed():
            return
        if filled:
            handed = threading.Event()

            def settle() -> None:
                drain()
                handed.set()

            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:  # closed in this moment
                return
            del loop
            while not handed.wait(1):
                loop = reference()
                if loop is None or loop.is_closed():
                    return
                del loop
        else:
            del loop
