"""Server: a real server as a value."""

import random
import re
import shutil
import socket
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .checkout import ROOT, Binary, binary, prepared
from .observe import PATIENCE
from .program import Program, Tether


# How much higher the port of a cluster's bus is: all versions do it so by default.
BUS = 10_000


def owner_of(value: str) -> str:
    """The owner value of a hold, without what the scripts write behind it."""
    return re.sub(r"( id=[0-9a-f-]{36}) .*", r"\1", value)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def free_ports() -> int:
    """A port that was free a moment ago, and that of the bus, too.

    Both lie below those that a system gives to whoever asks for any: so nobody takes them while a node is killed.
    """
    while True:
        port = random.randrange(11_000, 21_000)
        try:
            with socket.socket() as probe, socket.socket() as bus:
                probe.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + BUS))
                return port
        except OSError:
            continue


class RealServer:
    """A server of its own process, gone when closed and when the test process dies.

    version: its name in .venv/servers.json, such as "redis-6.2"; the preferred one if None
    password: the default user's
    users: more users, name: (password, rules of ACL SETUSER)
    tls: the certificate shown on the port: "server", "elsewhere" or "expired". While the server is killed a
         connection to the port is then closed, not refused.
    mutual: only clients that show a certificate such as "client"
    persistent: data is on disk after every write, so that `restart` finds it again
    sentinel: it is a sentinel in place of a server; its configuration says what it watches
    cluster: it is a node of a cluster, one without slots that knows no other (`Cluster` in cluster.py)
    config: more lines for the configuration file
    """

    def __init__(
        self,
        version: str | None = None,
        *,
        password: str | None = None,
        users: dict[str, tuple[str, str]] | None = None,
        tls: str | None = None,
        mutual: bool = False,
        persistent: bool = False,
        sentinel: bool = False,
        cluster: bool = False,
        config: tuple[str, ...] = (),
    ) -> None:
        self.binary: Binary = binary(version)
        self.password = password
        # Short, because a path of a unix socket is at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="locktender-"))
        self._lines = [f"dir {self.directory}", "bind 127.0.0.1", f"unixsocket {self.socket}"]
        self._mode = ["--sentinel"] if sentinel else []
        self._free_port = free_ports if cluster else free_port
        if not sentinel:
            self._lines += ["appendonly yes", "appendfsync always"] if persistent else ['save ""', "appendonly no"]
        self._lines += ["cluster-enabled yes"] if cluster else []
        self._lines += [f"requirepass {password}"] if password else []
        for name, (secret, rules) in (users or {}).items():
            self._lines.append(f"user {name} on >{secret} {rules}")
        self._lines += config
        self._port = 0
        self._tether: Tether | None = None
        self._kept: socket.socket | None = None
        self._terminator: Program | None = None
        self._run()
        if tls:
            command = [prepared("bin/python"), ROOT / "tests/terminator.py", self._port, tls]
            self._terminator = Program(*command, *(["mutual"] if mutual else []))

    def _run(self) -> None:
        """Runs the server, on a port of its own choice the first time, later on the same."""
        chosen = self._port != 0
        if self._kept:
            self._kept.close()
        while True:
            if not chosen:
                self._port = self._free_port()
            self.directory.mkdir(exist_ok=True)
            file = self.directory / "server.conf"
            file.write_text("\n".join([*self._lines, f"port {self._port}"]) + "\n")
            self._tether = Tether(self.directory, self.binary.path, file, *self._mode)
            if self._wait_until_ready(self._tether):
                return
            log = (self.directory / "log").read_text()
            self._tether.close()
            # Somebody took the free port before the server did: the one case for another try.
            if chosen or "Address already in use" not in log:
                raise RuntimeError(f"{self.binary.name} did not start:\n{log}")

    def _wait_until_ready(self, tether: Tether) -> bool:
        deadline = time.monotonic() + PATIENCE
        # It listens on the port before it answers on the socket, which nobody else can have.
        while time.monotonic() < deadline and not tether.ended():
            try:
                self.command("PING")
                return True
            except redis.ConnectionError:  # LOADING is one too
                time.sleep(0.002)
        return False

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; it stays the same over restarts."""
        return self._terminator.number if self._terminator else self._port

    @property
    def own_port(self) -> int:
        """The port on which it speaks without TLS."""
        return self._port

    @property
    def is_running(self) -> bool:
        """Whether there is a process, which may be paused."""
        return self._tether is not None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def url(self) -> str:
        """The URL of its port, with the password if it needs one."""
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        """The same URL with another port, such as a proxy's."""
        login = f":{self.password}@" if self.password else ""
        return f"{'rediss' if self._terminator else 'redis'}://{login}127.0.0.1:{port}"

    @property
    def socket(self) -> Path:
        """The path of its unix socket."""
        return self.directory / "socket"

    @property
    def unix_url(self) -> str:
        return f"unix://{self.socket}" + (f"?pass={self.password}" if self.password else "")

    def command(self, *words: str | int) -> Any:
        """Asks the server directly, past the library under test: RESP2 replies, text for strings, errors raised."""
        options: dict[str, Any] = {"password": self.password, "socket_timeout": PATIENCE, "decode_responses": True}
        options["retry"] = Retry(NoBackoff(), 0)
        with redis.Redis(unix_socket_path=str(self.socket), protocol=2, **options) as client:
            client.response_callbacks.clear()
            return client.execute_command(*words)

    def holder(self, key: str) -> str | None:
        """The owner in the value of a lock's key."""
        value = self.command("GET", key)
        return value if value is None else owner_of(value)

    def line(self, name: str) -> list[str]:
        """Who stands in line for the lock of this name."""
        line: list[str] = self.command("ZRANGEBYSCORE", f"{{{name}}}:~lt:queue", "0", "+inf")
        return line

    def kill(self) -> None:
        """Kills the server, as a crash would."""
        self._running().kill()
        self._tether = None
        # Nobody listens on it: it keeps the port from the servers and the connections of other tests. What is left of the killed
        # server's connections is no hindrance.
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept.bind(("127.0.0.1", self._port))
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)

    def pause(self) -> None:
        """Stops the process: connections stay open and nothing answers."""
        self._running().pause()

    def resume(self) -> None:
        """Lets a paused server go on."""
        self._running().resume()

    def restart(self) -> None:
        """Kills the server, if it runs, and starts it on the same port with the data it kept on disk."""
        if self._tether:
            self.kill()
        self._run()

    def restart_empty(self) -> None:
        """Kills the server, if it runs, and starts it on the same port without any data."""
        if self._tether:
            self.kill()
        shutil.rmtree(self.directory)
        self._run()

    def _running(self) -> Tether:
        assert self._tether, "the server is killed"
        return self._tether

    def close(self) -> None:
        for program in (self._terminator, self._tether):
            if program:
                program.close()
        self._terminator = self._tether = None
        if self._kept:
            self._kept.close()
        # The tether has removed it already unless the server was killed before.
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> "RealServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
