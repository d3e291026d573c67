"""What the native module calls of this package. Each module is imported when it is first used: to import them all takes long. What the
exit of the interpreter calls is there before: an import then would make the interpreter forget that Ctrl-C ends it.
"""

from __future__ import annotations

import sys

from . import _native, _threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import logging
    from collections.abc import Callable, Coroutine
    from typing import Any

    from ._green import Hub
    from ._native import Client, Election, Job, JobOutcome, Lock, Loss, MultiLock
    from .errors import LockError


def attach(error: LockError, body_error: BaseException) -> None:
    from . import _bodies
    _bodies.attach(error, body_error)


def checkpoint() -> None:
    """Any bytecode: before it the interpreter raises what another thread has set for this one (``PyThreadState_SetAsyncExc``)."""


def decorate(
    lock: Lock | MultiLock, name: str | tuple[str, ...] | Callable[..., Any], function: Callable[..., Any], way: str
) -> Callable[..., Any]:
    from . import _decorator
    return _decorator.decorate(lock, name, function, way)


def decorate_job(job: Job, function: Callable[..., Any]) -> Callable[..., Any]:
    from . import _job
    return _job.decorate(job, function)


def run_job_async(
    job: Job, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Coroutine[Any, Any, JobOutcome]:
    from . import _job
    return _job.run_async(job, work, args, kwargs or {})


def lead_async(
    election: Election, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Coroutine[Any, Any, None]:
    from . import _election
    return _election.lead_async(election, work, args, kwargs or {})


def encoded(result: object) -> str | None:
    from . import _job
    return _job.encoded(result)


def decoded(text: str) -> object:
    from . import _job
    return _job.decoded(text)


def failure(error: BaseException) -> str | None:
    from . import _failure
    return _failure.failure(error)


def said(error: object) -> str:
    from . import _failure
    return _failure.said(error)


def refuse_bare(name: Callable[..., object], is_called: bool) -> None:
    from . import _not_run
    _not_run.refuse_bare(name, is_called)


def warn(client: Client | None, lock_name: str | None, text: str) -> None:
    from . import _warnings
    _warnings.warn(client, lock_name, text)


def settings(redis: object) -> tuple[str, dict[str, Any]]:
    from . import _redis_py
    return _redis_py.settings(redis)


def instead_of(server: object) -> str | None:
    from . import _redis_py
    return _redis_py.instead_of(server)


def is_coroutine_function(function: object) -> bool:
    from . import _callables
    return _callables.is_coroutine_function(function)


def make_known(name: str, client: Client) -> None:
    from . import _pickle
    _pickle.make_known(name, client)


def reduced_name(name: str) -> tuple[Callable[..., Client], tuple[Any, ...]]:
    from . import _pickle
    return _pickle.reduced_name(name)


def reduced_client(servers: object, options: dict[str, Any]) -> tuple[Callable[..., Client], tuple[Any, ...]]:
    from . import _pickle
    return _pickle.reduced_client(servers, options)


def reduced_lock(
    client: Client | None,
    method: str,
    name: str | tuple[str, ...] | Callable[..., Any],
    options: dict[str, Any] | None,
    permits: int | None,
) -> tuple[Callable[..., Lock | MultiLock], tuple[Any, ...]]:
    from . import _pickle
    return _pickle.reduced_lock(client, method, name, options, permits)


def reduced_job(
    client: Client | None, name: str, options: dict[str, Any] | None, is_cron_job: bool
) -> tuple[Callable[..., Job], tuple[Any, ...]]:
    from . import _pickle
    return _pickle.reduced_job(client, name, options, is_cron_job)


def reduced_election(
    client: Client | None, name: str, options: dict[str, Any] | None
) -> tuple[Callable[..., Election], tuple[Any, ...]]:
    from . import _pickle
    return _pickle.reduced_election(client, name, options)


def wait_lost(ended: Coroutine[Any, Any, Loss | None], timeout: float | None) -> Coroutine[Any, Any, Loss | None]:
    from . import _asyncio
    return _asyncio.wait_lost(ended, timeout)


def stand_in(loop: asyncio.AbstractEventLoop, drain: Any) -> None:
    from . import _asyncio
    _asyncio.stand_in(loop, drain)


def hub() -> Hub | None:
    from . import _green
    return _green.hub()


def start_credentials() -> None:
    from . import _credentials
    _credentials.start()


def start_delivery() -> None:
    from . import _events
    _events.start()


def logger() -> logging.Logger | None:
    """The package's logger; ``None`` while this very thread is importing its module."""
    from . import _events
    logger: logging.Logger | None = getattr(_events, "logger", None)
    return logger


def get_ident() -> Callable[[], int]:
    get_ident: Callable[[], int] = _threads.original("get_ident")
    return get_ident


_native._use(sys.modules[__name__])
