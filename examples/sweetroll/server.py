"""Private lock servers: real ones, on free ports, which end with this process."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STARTUP = 10.0


class PrivateServer:
    """A server that can be killed and restarted at the same address."""

    def __init__(self, binary: str, directory: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self._directory = directory
        # It writes its data to disk, so that it can restart with its data.
        self._command = [binary, "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
        self._command += ["--appendfsync", "always", "--dir", str(directory)]
        self.url = f"redis://127.0.0.1:{self._port}"
        self._start()

    def _start(self) -> None:
        self._directory.mkdir(exist_ok=True)
        # The tether kills the server when its standard input closes: at the end of this process, also if it is killed.
        tether = [ROOT / "tests/tether", self._directory, *self._command]
        self._tether = subprocess.Popen(tether, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._tether.stdout is not None
        self._pid = int(self._tether.stdout.readline())
        wait_until_ready(self._port, self._directory / "log")

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        # Before its input closes, because then the tether would remove the directory.
        self._tether.wait()
        self.close()

    def pause(self) -> None:
        """Stops it, as a machine without time would."""
        os.kill(self._pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._pid, signal.SIGCONT)

    def delete(self, key: str) -> None:
        """What an operator types in redis-cli: DEL, whichever process holds the lock."""
        with socket.create_connection(("127.0.0.1", self._port), STARTUP) as connection:
            connection.sendall(f"DEL {key}\r\n".encode())
            connection.recv(16)

    def revive(self, empty: bool) -> None:
        """Starts it again, with its data or empty."""
        if empty:
            shutil.rmtree(self._directory)
        self._start()

    def close(self) -> None:
        assert self._tether.stdin is not None and self._tether.stdout is not None
        self._tether.stdin.close()
        self._tether.stdout.close()
        self._tether.wait()


@contextmanager
def private_servers(count: int, directory: Path) -> Iterator[list[PrivateServer]]:
    """Starts so many servers."""
    binary = json.loads((ROOT / ".venv/servers.json").read_text())[0]["path"]
    with ExitStack() as stack:
        servers = []
        for number in range(count):
            servers.append(PrivateServer(binary, directory / f"server-{number}"))
            stack.callback(servers[-1].close)
        yield servers


def wait_until_ready(port: int, log: Path) -> None:
    deadline = time.monotonic() + STARTUP
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"the private server did not start:\n{log.read_text()}")
