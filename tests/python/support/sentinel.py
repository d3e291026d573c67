"""Watched: a primary with a replica, and three sentinels that watch them."""

from collections.abc import Callable
from typing import Any

from .observe import until
from .server import RealServer

SERVICE = "main"


class Watched:
    """servers: starts a server that ends with the test; password: the nodes'; sentinel_password: the sentinels'"""

    def __init__(self, servers: Callable[..., RealServer], password: str | None = None, sentinel_password: str | None = None) -> None:
        self.password, self.sentinel_password = password, sentinel_password
        config = ["repl-diskless-sync-delay 0", *([f"masterauth {password}"] if password else [])]
        self.primary, self.replica = (servers(password=password, config=config) for _ in range(2))
        self.replica.command("REPLICAOF", "127.0.0.1", self.primary.port)
        until(lambda: "master_link_status:up" in self.replica.command("INFO", "replication"))
        watch = [f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary.port} 2", f"sentinel down-after-milliseconds {SERVICE} 1500"]
        watch += [f"sentinel failover-timeout {SERVICE} 10000"]
        watch += [f"sentinel auth-pass {SERVICE} {password}"] if password else []
        self.sentinels = [servers(password=sentinel_password, sentinel=True, config=watch) for _ in range(3)]
        until(lambda: all(self._is_ready(sentinel) for sentinel in self.sentinels))

    @property
    def hosts(self) -> list[tuple[str, int]]:
        return [("127.0.0.1", sentinel.port) for sentinel in self.sentinels]

    @property
    def url(self) -> str:
        login = f":{self.password}@" if self.password else ""
        query = f"?sentinel_password={self.sentinel_password}" if self.sentinel_password else ""
        return f"redis+sentinel://{login}{','.join(f'{host}:{port}' for host, port in self.hosts)}/{SERVICE}{query}"

    def fail_over(self) -> None:
        """Kills the primary, and waits until all sentinels name the replica."""
        self.primary.kill()
        port = str(self.replica.port)
        until(lambda: all(fields(sentinel.command("SENTINEL", "MASTER", SERVICE))["port"] == port for sentinel in self.sentinels))

    def _is_ready(self, sentinel: RealServer) -> bool:
        replicas = sentinel.command("SENTINEL", "REPLICAS", SERVICE)
        knows_all = fields(sentinel.command("SENTINEL", "MASTER", SERVICE))["num-other-sentinels"] == "2"
        return knows_all and [fields(replica)["master-link-status"] for replica in replicas] == ["ok"]


def fields(words: list[Any]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=True))
