"""Places: the servers on which cases are played."""

import functools
import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from locktender import Client
from locktender.testing import ScriptedServer
from support.cluster import Cluster
from support.server import RealServer

HTTP = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"


# The commands without a key, which every node of a cluster is asked.
KEYLESS = ("KEYS", "SCRIPT")


class Place(NamedTuple):
    """Where a case is played.

    servers: those that `server` steps reach
    scripted: the one that `script` steps reach
    cluster: the cluster of whose nodes `servers` are all
    """

    name: str
    urls: list[Any]
    servers: list[RealServer]
    scripted: ScriptedServer | None = None
    cluster: Cluster | None = None

    def replies(self, *words: Any) -> list[Any]:
        """What each of the servers says that have to do with a command: in a cluster the one that serves its key."""
        if self.cluster and words[0] not in KEYLESS:
            return [self.cluster.command(words[1], *words)]
        return [server.command(*words) for server in self.servers]

    def reply(self, *words: Any) -> Any:
        """What all servers say together. In a cluster each has a part of a list; elsewhere they should not differ."""
        replies = self.replies(*words)
        if self.cluster and isinstance(replies[0], list):
            return [item for part in replies for item in part]
        return replies[-1]

    @property
    def patience(self) -> dict[str, Any]:
        """How long its clients wait for an answer, where there is one: an attempt that isn't repeated may meet a stalled machine."""
        return {} if self.name in ("silent", "scripted", "urls") else {"response_timeout": 5, "connect_timeout": 5}


def names(at: Any) -> list[Any]:
    """The places of a case's `at`."""
    chosen = os.environ.get("LOCKTENDER_CONTRACT_PLACES", "memory,redis,quorum").split(",")
    if at == "any":
        return chosen
    if at == "redis":
        return [at, *(name for name in chosen if name == "cluster")]
    if at == "one_server":
        return [name for name in chosen if name != "quorum"]
    return [at]


class Places:
    """Makes places; what they need is started when it is first asked for, and ends with the `stack`."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._numbers: Iterator[int] = itertools.count()
        self._starting = threading.Lock()

    def make(self, at: Any) -> Place:
        if isinstance(at, dict) and "scripted" in at:
            scripted = ScriptedServer("\n".join(at["scripted"]))
            return Place("scripted", [scripted], [], scripted)
        if isinstance(at, dict):
            return Place("urls", at["urls"], [])
        with self._starting:
            cluster = self._cluster if at == "cluster" else None
            return Place(at, *self._parts(at), cluster=cluster)

    def _parts(self, name: str) -> tuple[list[Any], list[RealServer]]:
        def local(scheme: str, port: int, login: str = "") -> list[Any]:
            return [f"{scheme}://{login}127.0.0.1:{port}"]

        made: dict[str, Callable[[], tuple[list[Any], list[RealServer]]]] = {
            "memory": lambda: ([f"memory://contract-{next(self._numbers)}"], []),
            "redis": lambda: ([self._plain.url], [self._plain]),
            "sentinel": lambda: ([f"redis+sentinel://127.0.0.1:{self._sentinel.port}/main"], [self._plain]),
            "cluster": lambda: ([self._cluster.url], self._cluster.nodes),
            "one_node": lambda: ([self._one_node.url], [self._one_node]),
            "quorum": lambda: ([server.url for server in self._quorum], self._quorum),
            "unix": lambda: ([self._plain.unix_url], [self._plain]),
            "password": lambda: ([self._guarded.url], [self._guarded]),
            "wrong_password": lambda: (local("redis", self._guarded.port, ":hunter2@"), []),
            "no_password": lambda: (local("redis", self._guarded.port), []),
            "no_rights": lambda: (local("redis", self._guarded.port, "guest:guest@"), []),
            "tls": lambda: ([self._tls.url], [self._tls]),
            "tls_elsewhere": lambda: ([self._elsewhere.url], []),
            "tls_as_clear": lambda: (local("redis", self._tls.port), []),
            "no_database": lambda: ([f"{self._plain.url}/99"], []),
            "clear_as_tls": lambda: (local("rediss", self._plain.port), []),
            # Reserved for a service that nobody runs.
            "refused": lambda: (local("redis", 1), []),
            "not_redis": lambda: (local("redis", self._listen(serve_http)), []),
            "silent": lambda: (local("redis", self._listen(None)), []),
        }
        return made[name]()

    def _start(self, **options: Any) -> RealServer:
        return self._stack.enter_context(RealServer(**options))

    @functools.cached_property
    def _plain(self) -> RealServer:
        return self._start()

    @functools.cached_property
    def _sentinel(self) -> RealServer:
        return self._start(sentinel=True, config=[f"sentinel monitor main 127.0.0.1 {self._plain.port} 1"])

    @functools.cached_property
    def _cluster(self) -> Cluster:
        return Cluster(self._start)

    @functools.cached_property
    def _one_node(self) -> RealServer:
        return Cluster(self._start, primaries=1).nodes[0]

    @functools.cached_property
    def _quorum(self) -> list[RealServer]:
        servers = [self._start() for _ in range(3)]
        with Client([server.url for server in servers], response_timeout=5) as client:
            client.initialize_quorum()
        return servers

    @functools.cached_property
    def _guarded(self) -> RealServer:
        return self._start(password="secret", users={"guest": ("guest", "~* +@connection +get")})

    @functools.cached_property
    def _tls(self) -> RealServer:
        return self._start(tls="server")

    @functools.cached_property
    def _elsewhere(self) -> RealServer:
        return self._start(tls="elsewhere")

    def _listen(self, serve: Callable[[socket.socket], None] | None) -> int:
        listener = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        if serve:
            # Wakes the thread's accept, which closing the listener alone doesn't.
            self._stack.callback(listener.shutdown, socket.SHUT_RDWR)
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
        port: int = listener.getsockname()[1]
        return port


def serve_http(listener: socket.socket) -> None:
    """Answers as a web server would, until the listener is shut down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            connection.sendall(HTTP)
