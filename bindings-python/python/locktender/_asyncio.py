"""What belongs to asyncio; imported when it is used.

The body of an ``async with`` is a task that runs while the lock may be lost. By default the loss cancels the task, and the exit
turns exactly that cancellation into the loss; a cancellation from elsewhere passes through as itself.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections.abc import Coroutine
from typing import Any

from . import _threads
from ._bodies import attach
from ._native import AsyncHeld, Lock, Loss
from .errors import LockError

if sys.version_info >= (3, 11):

    def _cancellations(task: asyncio.Task[Any]) -> int:
        return task.cancelling()

    def _take_one_back(task: asyncio.Task[Any]) -> int:
        return task.uncancel()

else:  # tasks don't count: whoever cancels a task whose lock was just lost is taken for us

    def _cancellations(task: asyncio.Task[Any]) -> int:
        return 0

    def _take_one_back(task: asyncio.Task[Any]) -> int:
        return 0


class Body:
    """One open body."""

    def __init__(self, held: AsyncHeld) -> None:
        task = asyncio.current_task()
        assert task is not None, "a body runs in a task"
        self._held = held
        self._task = task
        self._cancelling = _cancellations(task)
        self._cancelled = False
        self._lost: LockError | None = None
        self._watch = held._watch(self, self._on_lost) if held._cancels else None

    def _on_lost(self) -> None:
        """Runs on the loop, between two steps of the task."""
        self._watch = None
        try:
            self._held.check()
        except LockError as lost:
            self._lost = lost
            self._cancelled = True
            self._task.cancel()

    async def end(self, error: BaseException | None) -> None:
        """Leaves the lock; raises what the body's end means."""
        if self._watch is not None:
            self._held._unwatch(self._watch)
        interrupted = self._cancelled and await self._take_back(error)
        try:
            await self._held._leave()
        except LockError as lost:
            self._lost = lost
            if error is not None and not interrupted:
                attach(lost, error)
                return
            raise
        if interrupted and self._lost is not None:  # released inside the body, after the loss
            raise self._lost

    async def _take_back(self, error: BaseException | None) -> bool:
        """Takes our cancellation back; whether it is what ended the body."""
        ours = _take_one_back(self._task) <= self._cancelling
        if isinstance(error, asyncio.CancelledError):
            return ours
        # It may not have arrived yet: then it would strike at the next await, which is this one.
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if not ours:
                raise
        return False


async def enter(held: AsyncHeld) -> AsyncHeld:
    held._enter()
    Body(held)
    return held


async def enter_lock(lock: Lock) -> AsyncHeld:
    held = await lock.acquire_async()
    held._enter()
    Body(held)
    lock._opened(held)
    return held


async def leave(held: AsyncHeld, body: Body | None, error: BaseException | None) -> None:
    if isinstance(error, GeneratorExit):  # closed, or garbage: the coroutine must not wait any more, often it has no loop
        held._give_back()
        return
    if body is not None:
        await body.end(error)
        return
    try:
        await held._leave()
    except LockError as lost:
        if error is None:
            raise
        attach(lost, error)


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
