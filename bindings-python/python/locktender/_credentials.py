"""Answers the core's questions for credentials, by the callables of clients: one daemon thread per process takes them, and each call
has one of its own, so that a slow one delays no other client.
"""

from __future__ import annotations

import os

from . import _native, _threads
from ._failure import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any


def start() -> None:
    """Starts the thread; called once per process."""
    _threads.start("locktender-credentials", _serve)


def _serve() -> None:
    process = os.getpid()
    while True:
        asked = _native._next_credentials()
        try:
            _threads.start("locktender-credentials", _answer, asked)
        except RuntimeError:  # the system has no thread left
            _answer(asked)
        if os.getpid() != process:  # what was called has forked, and this is the child
            return
        del asked


def _answer(asked: _native._Asked) -> None:
    try:
        _native._give_credentials(asked, _credentials(asked))
    except BaseException as error:  # also what would end this thread
        _native._fail_credentials(asked, error, said(error))


def _credentials(asked: _native._Asked) -> _native.Credentials:
    provider = asked.credentials
    if provider is None:
        raise RuntimeError("the client is gone")
    given: Any = provider(asked.server) if _takes_server(provider) else provider()
    if hasattr(given, "__await__"):
        import asyncio
        given = asyncio.run(_awaited(given))
    if isinstance(given, _native.Credentials):
        return given
    if isinstance(given, str):
        return _native.Credentials(given)
    if isinstance(given, tuple) and [type(part) for part in given] == [str, str]:
        return _native.Credentials(given[1], user=given[0] or None)
    # Its type only: it may have a password in it.
    raise TypeError(f"credentials must give a password, a tuple (user, password) or Credentials, got {type(given).__name__}")


async def _awaited(given: Awaitable[Any]) -> Any:
    return await given


def _takes_server(provider: Any) -> bool:
    """Whether the callable has a parameter for the server's address."""
    import inspect
    try:
        parameters = inspect.signature(provider).parameters.values()
    except (TypeError, ValueError):  # a builtin that doesn't say
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in positional and each.default is inspect.Parameter.empty for each in parameters)
