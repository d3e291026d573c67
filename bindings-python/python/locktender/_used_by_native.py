"""What the native module calls of this package. Each module is imported when it is first used: to import them all takes long."""

from __future__ import annotations

import sys

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import logging
    from collections.abc import Callable, Coroutine
    from typing import Any

    from ._green import Hub
    from ._native import Client, Lock, Loss
    from .errors import LockError


# Bodies and decorators


def attach(error: LockError, body_error: BaseException) -> None:
    from ._bodies import attach

    attach(error, body_error)


def decorate(lock: Lock, name: str | Callable[..., str], function: Callable[..., Any], way: str) -> Callable[..., Any]:
    from ._decorator import decorate

    return decorate(lock, name, function, way)


# What is probably a mistake


def refuse_bare(name: Callable[..., object]) -> None:
    from ._suspicions import refuse_bare

    refuse_bare(name)


def warn(client: Client | None, lock_name: str | None, text: str) -> None:
    from ._suspicions import warn

    warn(client, lock_name, text)


def warn_of_template(client: Client, name: str) -> None:
    from ._suspicions import warn_of_template

    warn_of_template(client, name)


# Other libraries' clients


def settings(redis: object) -> tuple[str, dict[str, Any]]:
    from ._redis_py import settings

    return settings(redis)


def instead_of(server: object) -> str | None:
    from ._redis_py import instead_of

    return instead_of(server)


# Pickling


def make_known(name: str, client: Client) -> None:
    from ._pickle import make_known

    make_known(name, client)


def reduced_name(name: str) -> tuple[Callable[..., Client], tuple[Any, ...]]:
    from ._pickle import reduced_name

    return reduced_name(name)


def reduced_client(servers: object, options: dict[str, Any]) -> tuple[Callable[..., Client], tuple[Any, ...]]:
    from ._pickle import reduced_client

    return reduced_client(servers, options)


def reduced_lock(
    client: Client | None, name: str | Callable[..., str], options: dict[str, Any] | None
) -> tuple[Callable[..., Lock], tuple[Any, ...]]:
    from ._pickle import reduced_lock

    return reduced_lock(client, name, options)


# Waiting


def wait_lost(ended: Coroutine[Any, Any, Loss | None], timeout: float | None) -> Coroutine[Any, Any, Loss | None]:
    from ._asyncio import wait_lost

    return wait_lost(ended, timeout)


def stand_in(loop: asyncio.AbstractEventLoop, drain: Any) -> None:
    from ._asyncio import stand_in

    stand_in(loop, drain)


def hub() -> Hub | None:
    from ._green import hub

    return hub()


# The background


def start_delivery() -> None:
    from ._events import start

    start()


def logger() -> logging.Logger | None:
    """The package's logger; ``None`` while this very thread is importing it."""
    try:
        from ._events import logger
    except ImportError:
        return None
    return logger


def get_ident() -> Callable[[], int]:
    from ._threads import original

    get_ident: Callable[[], int] = original("get_ident")
    return get_ident


_native._use(sys.modules[__name__])
