"""How locks move to other processes: as their configuration, since a connection can't, or by the name of their client.

A process makes one client of each configuration it unpickles, and keeps it: a pool's worker that is sent a lock with every task
connects once.
"""

from __future__ import annotations

import os
import pickle
import weakref
from collections.abc import Callable
from typing import Any

from ._native import Client, Election, Job, Lock, MultiLock, cron_job, election, job, lock, multi_lock, read_lock, semaphore
from .errors import InvalidArgumentError

_clients: dict[bytes, Client] = {}
_named: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()


def make_known(name: str, client: Client) -> None:
    """What pickles by this name is of this client from now on."""
    _named[name] = client


def reduced_name(name: str) -> tuple[Callable[..., Client], tuple[str]]:
    """A named client's ``__reduce__``: nothing of its configuration."""
    return client_named, (name,)


def client_named(name: str) -> Client:
    """This process's client of that name."""
    client = _named.get(name)
    if client is None or client._is_closed:
        raise InvalidArgumentError(
            f"client: this process has no open client named {name!r}: make it with Client(..., pickle_name={name!r}), or configure(), "
            "before what was pickled is read"
        )
    return client


def reduced_client(servers: Any, options: dict[str, Any]) -> tuple[Callable[..., Client], tuple[Any, ...]]:
    """A client's ``__reduce__``."""
    for server in (servers if isinstance(servers, tuple) else (servers or os.environ.get("LOCKTENDER_URL", ""),)):
        if isinstance(server, str) and "memory://" in server:
            raise TypeError("a memory:// client can't be pickled: it excludes nobody in another process")
    return client_of, (servers, options)


def reduced_lock(
    client: Client | None,
    method: str,
    name: str | tuple[str, ...] | Callable[..., Any],
    options: dict[str, Any] | None,
    permits: int | None,
) -> tuple[Callable[..., Lock | MultiLock], tuple[Any, ...]]:
    """A lock's ``__reduce__``."""
    options = options or {}
    if method == "lock":
        return lock_of, (client, name, options)
    return several_of, (client, method, name, options if permits is None else {**options, "permits": permits})


def reduced_job(
    client: Client | None, name: str, options: dict[str, Any] | None, is_cron_job: bool
) -> tuple[Callable[..., Job], tuple[Any, ...]]:
    """A job's ``__reduce__``."""
    return cron_job_of if is_cron_job else job_of, (client, name, options or {})


def reduced_election(
    client: Client | None, name: str, options: dict[str, Any] | None
) -> tuple[Callable[..., Election], tuple[Any, ...]]:
    """An election's ``__reduce__``."""
    return election_of, (client, name, options or {})


def client_of(servers: Any, options: dict[str, Any]) -> Client:
    """This process's client of that configuration."""
    configuration = pickle.dumps((servers, sorted(options.items(), key=lambda option: option[0])))
    client = _clients.get(configuration)
    if client is None or client._is_closed:
        # Two threads may both get here: then one of the clients is used for this unpickling only.
        client = _clients[configuration] = Client(servers, **options)
    return client


def lock_of(client: Client | None, name: str | Callable[..., str], options: dict[str, Any]) -> Lock:
    """The lock; ``None`` is this process's default client."""
    return lock(name, **options) if client is None else client.lock(name, **options)


def several_of(
    client: Client | None, method: str, name: str | tuple[str, ...] | Callable[..., Any], options: dict[str, Any]
) -> Lock | MultiLock:
    """The read lock, the semaphore or the several locks; ``None`` is this process's default client."""
    of_default: dict[str, Callable[..., Lock | MultiLock]]
    of_default = {"read_lock": read_lock, "semaphore": semaphore, "multi_lock": multi_lock}
    make = of_default[method] if client is None else getattr(client, method)
    made: Lock | MultiLock = make(name, **options)
    return made


def job_of(client: Client | None, name: str, options: dict[str, Any]) -> Job:
    """The job; ``None`` is this process's default client."""
    return job(name, **options) if client is None else client.job(name, **options)


def cron_job_of(client: Client | None, name: str, options: dict[str, Any]) -> Job:
    """The job that runs once per scheduled time; ``None`` is this process's default client."""
    return cron_job(name, **options) if client is None else client.cron_job(name, **options)


def election_of(client: Client | None, name: str, options: dict[str, Any]) -> Election:
    """The election; ``None`` is this process's default client."""
    return election(name, **options) if client is None else client.election(name, **options)
