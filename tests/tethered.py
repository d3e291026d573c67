"""Tethered: a server of this machine that a script starts, and that ends with it. Tests have `RealServer`, which can do more."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# How long anything may take that has no reason to take long.
PATIENCE = 30.0

# A node of a cluster has a second port, higher by so much.
BUS = 10_000


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def free_port(highest=65_535):
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port <= highest and (highest == 65_535 or is_free(port + BUS)):
            return port


def binary(built):
    """The server that a checkout in which `tests/run setup` has run uses, unless LOCKTENDER_TEST_SERVER names another one."""
    servers = json.loads((built / ".venv/servers.json").read_text())
    wanted = os.environ.get("LOCKTENDER_TEST_SERVER", servers[0]["name"])
    return next(server["path"] for server in servers if server["name"] == wanted)


class Server:
    """A server on a port of its own. It keeps its data when it is killed, and ends with this program."""

    def __init__(self, program, folder, cluster=False):
        self.program, self.cluster = program, cluster
        self.port = free_port(65_535 - BUS if cluster else 65_535)
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.start()

    def start(self):
        words = ["--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder]
        words += ["--appendonly", "yes", "--appendfsync", "always", *(["--cluster-enabled", "yes"] if self.cluster else [])]
        command = [ROOT / "tests/tether", self.folder, self.program, *words]
        self.tether = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.tether.stdout.readline())
        end = time.monotonic() + PATIENCE
        while "PONG" not in self.ask("PING"):
            if time.monotonic() > end or self.tether.poll() is not None:
                raise RuntimeError(f"the server does not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.02)

    def ask(self, *words):
        """The answer to a command."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
                connection.sendall(" ".join(map(str, words)).encode() + b"\r\n")
                return connection.recv(65_536).decode()
        except OSError:
            return ""

    def stop(self):
        """Kills it."""
        os.kill(self.pid, signal.SIGKILL)
        self.tether.wait(PATIENCE)
        self.tether.stdin.close()

    def end(self):
        if self.tether.poll() is None:
            self.tether.stdin.close()
            self.tether.wait(PATIENCE)
