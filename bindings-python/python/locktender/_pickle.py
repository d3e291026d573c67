"""How locks move to other processes: as their configuration, since a connection can't.

A process makes one client of each configuration it unpickles, and keeps it: a pool's worker that is sent a lock with every task
connects once.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

from ._native import Client, Lock, lock

_clients: dict[bytes, Client] = {}


def reduced_client(servers: Any, options: dict[str, Any]) -> tuple[Callable[..., Client], tuple[Any, ...]]:
    """A client's ``__reduce__``."""
    for server in (servers if isinstance(servers, tuple) else (servers or os.environ.get("LOCKTENDER_URL", ""),)):
        if isinstance(server, str) and "memory://" in server:
            raise TypeError("a memory:// client can't be pickled: it excludes nobody in another process")
    return client_of, (servers, options)


def reduced_lock(
    client: Client | None, name: str | Callable[..., str], options: dict[str, Any] | None
) -> tuple[Callable[..., Lock], tuple[Any, ...]]:
    """A lock's ``__reduce__``."""
    return lock_of, (client, name, options or {})


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
