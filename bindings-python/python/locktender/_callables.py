"""Callables: what a program gives to be called."""

from __future__ import annotations

import inspect
from typing import Any

from .errors import InvalidArgumentError


def is_coroutine_function(function: object) -> bool:
    """Also an object whose class has an ``async def __call__``."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(type(function), "__call__", None))


def refuse_no_callable(owner: object, does: str, given: Any) -> None:
    """Raises if a program gave something else where ``owner`` runs or decorates functions."""
    if not callable(given):
        raise InvalidArgumentError(f"{owner!r} {does} functions, and was given {given!r}")


def refused(work: object, what: str, instead: str) -> InvalidArgumentError:
    """The error for work of the other kind: blocking, or a coroutine."""
    return InvalidArgumentError(f"{getattr(work, '__qualname__', repr(work))} {what}: use {instead}")
