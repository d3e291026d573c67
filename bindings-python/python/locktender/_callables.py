"""Callables: what a program gives to be called."""

import inspect


def is_coroutine_function(function: object) -> bool:
    """Also an object whose class has an ``async def __call__``."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(type(function), "__call__", None))
