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

from . import _native
from ._native import Client
from .errors import InvalidArgumentError

_clients: dict[bytes, Client] = {}
_named: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()


def make_known(name: str, client: Client) -> None:
    """What pickles by this name is of this client from now on."""
    _named[name] = client


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


def reduced(
    client: Client | None, method: str, name: Any, options: dict[str, Any] | None, permits: int | None = None
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The ``__reduce__`` of what a client's method has made: a lock, several, a job or an election."""
    options = options or {}
    return made_of, (client, method, name, options if permits is None else {**options, "permits": permits})


def client_of(servers: Any, options: dict[str, Any]) -> Client:
    """This process's client of that configuration."""
    configuration = pickle.dumps((servers, sorted(options.items(), key=lambda option: option[0])))
    client = _clients.get(configuration)
    if client is None or client._is_closed:
        # Two threads may both get here: then one of the clients is used for this unpickling only.
        client = _clients[configuration] = Client(servers, **options)
    return client


def made_of(client: Client | None, method: str, name: Any, options: dict[str, Any]) -> Any:
    """What the method makes; ``None`` is this process's default client."""
    return getattr(_native if client is None else client, method)(name, **options)
