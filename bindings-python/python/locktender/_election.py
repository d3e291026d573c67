"""Elections: work around one term after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ._callables import is_coroutine_function, refuse_no_callable, refused
from ._native import Election, _Leading
from ._not_run import refuse_result
from .errors import LockLostError

Work = Callable[..., Any]


def lead(election: Election, work: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Leads in this thread."""
    refuse_no_callable(election, "leads by", work)
    if is_coroutine_function(work):
        raise refused(work, "is an `async def`", "lead_async()")
    leading = _Leading(election)
    try:
        while True:
            with leading as leadership:
                if leadership is None:
                    return
                refuse_result(work, work(leadership, *args, **kwargs))
    finally:
        leading._end()


async def lead_async(election: Election, work: Work, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
    """Leads in this task."""
    refuse_no_callable(election, "leads by", work)
    leading = _Leading(election)
    try:
        while leadership := await leading._next_async():
            try:
                async with leadership:
                    running = work(leadership, *args, **(kwargs or {}))
                    if not inspect.isawaitable(running):
                        raise refused(work, "returns nothing to await", "lead()")
                    refuse_result(work, await running)
            except LockLostError as error:
                if not leadership._is_loss(error):
                    raise
    finally:
        leading._end()
