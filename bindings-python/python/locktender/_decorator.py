"""The decorator: a lock around every call of a function."""

from __future__ import annotations

import functools
import inspect
import string
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ._callables import is_coroutine_function, refuse_no_callable
from ._native import Lock, MultiLock, _Around
from ._not_run import refuse_function, refuse_result
from ._try_outcome import TryOutcome
from .errors import InvalidArgumentError, LockLostError


Answer = Callable[..., Any]


def decorate(
    lock: Lock | MultiLock, name: str | tuple[str, ...] | Callable[..., Any], function: Callable[..., Any], way: str
) -> Callable[..., Any]:
    """``function``, run while holding ``lock``: its name is a template, several, or a callable, filled from the arguments.

    ``way`` says what a busy lock means: ``wait`` for it, ``skip_if_busy``, or ``try_run`` it and answer with :class:`TryOutcome`.
    """
    refuse_no_callable(lock, "decorates", function)
    refuse_function(function)
    named = namer(lock, name, function)
    around = _around_coroutine if is_coroutine_function(function) else _around_call
    return around(named, function, way != "wait", TryOutcome if way == "try_run" else _value)


def _value(ran: bool, value: Any = None) -> Any:
    return value


def _around_call(
    named: Callable[..., Lock | MultiLock], function: Callable[..., Any], tries_once: bool, answer: Answer
) -> Callable[..., Any]:
    @functools.wraps(function)
    def locked(*args: Any, **kwargs: Any) -> Any:
        ended = False
        result = None
        try:
            with _Around(named(*args, **kwargs), tries_once) as held:
                if held is None:
                    return answer(False)
                result = function(*args, **kwargs)
                refuse_result(function, result)
                ended = True
        except LockLostError as lost:
            if ended:
                lost.result = result
            raise
        return answer(True, result)

    return locked


def _around_coroutine(
    named: Callable[..., Lock | MultiLock], function: Callable[..., Any], tries_once: bool, answer: Answer
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def locked(*args: Any, **kwargs: Any) -> Any:
        lock = named(*args, **kwargs)
        held = await (lock.try_acquire_async() if tries_once else lock.acquire_async())
        if held is None:
            return answer(False)
        ended = False
        result = None
        try:
            async with held:
                result = await function(*args, **kwargs)
                refuse_result(function, result)
                ended = True
        except LockLostError as lost:
            if ended:
                lost.result = result
            raise
        return answer(True, result)

    return locked


class _Named(Protocol):
    """A lock, several of them, or a job."""

    def _named(self, name: Any, template: str | None = None) -> Any: ...


_N = TypeVar("_N", bound=_Named)


def namer(lock: _N, name: str | tuple[str, ...] | Callable[..., Any], function: Callable[..., Any]) -> Callable[..., _N]:
    """Gives the lock of one call, the locks, or the job."""
    if callable(name):
        return lambda *args, **kwargs: lock._named(name(*args, **kwargs))
    if isinstance(name, str):
        fill = _filler(name, function)
        if fill is None:
            plain: _N = lock._named(name.format())  # {{tag}} is {tag}
            return lambda *args, **kwargs: plain
        return lambda *args, **kwargs: lock._named(fill(*args, **kwargs), name)
    fills = [_filler(template, function) or _constant(template.format()) for template in name]
    return lambda *args, **kwargs: lock._named([fill(*args, **kwargs) for fill in fills])


def _constant(name: str) -> Callable[..., str]:
    return lambda *args, **kwargs: name


def _filler(template: str, function: Callable[..., Any]) -> Callable[..., str] | None:
    """Makes a name of the arguments of one call; ``None`` if the template asks for none of them."""
    fields = _fields(template)
    if not fields:
        return None
    signature = inspect.signature(function)
    for field in fields:
        if field not in signature.parameters:
            raise InvalidArgumentError(
                f"name: the template {template!r} asks for {field!r}, which {function.__qualname__}() doesn't take"
            )

    def fill(*args: Any, **kwargs: Any) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        try:
            return template.format_map(bound.arguments)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"name: the template {template!r} can't be filled for this call: {error}") from error

    return fill


def _fields(template: str) -> set[str]:
    """The parameters a template asks for: ``user`` for ``{user}``, ``{user.id}`` and ``{user[id]}``."""
    try:
        parsed = [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]
    except ValueError as error:
        raise InvalidArgumentError(f"name: the template {template!r} can't be read: {error}") from None
    return {field.partition(".")[0].partition("[")[0] for field in parsed}
