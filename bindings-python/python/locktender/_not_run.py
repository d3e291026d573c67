"""What a locked function must not return: something that is still to be run, and would run without the lock."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from .errors import InvalidArgumentError

_COROUTINE = "a coroutine", "decorate the coroutine function itself, or make this one `async def` and await inside of it"
_GENERATOR = "a generator", "take the lock inside of the generator: `with lock: yield ...`"
_ASYNC_GENERATOR = "an async generator", "take the lock inside of the generator: `async with lock: yield ...`"
_MANAGER = "a context manager", "take the lock inside of it: `with lock: yield` (or `async with`)"
_FUTURE = "something to wait for", "wait for it inside of the function, and return its result"

Kind = tuple[str, str]


def of_class(decorated: type) -> TypeError:
    """The error for a class under the decorator: only its construction would be locked."""
    return TypeError(
        f"the decorator is for functions, and {decorated.__qualname__} is a class: only the making of an object would hold the lock; "
        'decorate the methods that need it: @lock("name") above each `def`'
    )


def refuse_bare(name: Callable[..., Any], is_called: bool) -> None:
    """Raises if ``name`` can't make names: it is the function under a bare ``@lock``. An ordinary one shows only as it is called."""
    if isinstance(name, type) and not issubclass(name, str):
        raise of_class(name)
    if is_called or inspect.iscoroutinefunction(name) or inspect.isgeneratorfunction(name) or inspect.isasyncgenfunction(name):
        what = getattr(name, "__qualname__", repr(name))
        raise InvalidArgumentError(f'name: a bare @lock makes a lock of {what}, and locks nothing: write @lock("name")')


def refuse_function(function: Callable[..., Any]) -> None:
    """Raises if every call of the function returns before its work is done."""
    if isinstance(function, type):
        raise of_class(function)
    called = [function, getattr(type(function), "__call__", None)]  # a function, or an object with a method
    if any(map(inspect.isgeneratorfunction, called)):
        raise _refused(function, _GENERATOR)
    if any(map(inspect.isasyncgenfunction, called)):
        raise _refused(function, _ASYNC_GENERATOR)
    # What @contextmanager and @asynccontextmanager make of one is a function of contextlib's own.
    code = getattr(function, "__code__", None)
    if getattr(function, "__globals__", None) is vars(contextlib) and code is not None and code.co_name == "helper":
        raise _refused(function, _MANAGER)


def refuse_result(function: Callable[..., Any], result: Any) -> None:
    """Raises if the result is still to be run. It is closed, or cancelled, before."""
    kind = _kind(result)
    if kind is None:
        return
    refused = _refused(function, kind)
    try:
        _end(result)
    except Exception as failed:
        raise refused from failed
    raise refused


def _kind(result: Any) -> Kind | None:
    if result is None:
        return None
    if isinstance(result, contextlib._GeneratorContextManagerBase):
        return _MANAGER
    if isinstance(result, AsyncGenerator):
        return _ASYNC_GENERATOR
    if isinstance(result, Coroutine):
        return _COROUTINE
    if isinstance(result, Generator):
        return _COROUTINE if inspect.isawaitable(result) else _GENERATOR  # of @types.coroutine
    if _is_future(result) or hasattr(type(result), "__await__"):
        # A result that is there already needs no lock.
        done = getattr(result, "done", None)
        return None if callable(done) and done() else _FUTURE
    return None


def _is_future(result: Any) -> bool:
    """Of asyncio (a task, too), or of a pool."""
    futures = sys.modules.get("concurrent.futures._base")
    return hasattr(type(result), "_asyncio_future_blocking") or futures is not None and isinstance(result, futures.Future)


def _end(result: Any) -> None:
    """Ends what will not be run: nothing is left that warns, or that runs later."""
    if isinstance(result, contextlib._GeneratorContextManagerBase):
        result = result.gen
    if isinstance(result, (Coroutine, Generator)):
        result.close()
    elif _is_future(result):
        result.cancel()


def _refused(function: Callable[..., Any], kind: Kind) -> InvalidArgumentError:
    name = getattr(function, "__qualname__", repr(function))
    what, instead = kind
    return InvalidArgumentError(f"{name}() returns {what}, which would run without the lock: {instead}")
