"""Servers and workers that fork: they run as modules, and end normally."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from .observe import PATIENCE

# A gunicorn.conf.py. A worker that is asked to end while it starts ends badly, or misses it, and then gunicorn waits for half a minute: that
# is gunicorn's. So tests wait for all of them.
GUNICORN_WORKERS = """
def post_worker_init(worker):
    worker.log.info("this worker is ready")
"""


def ready_workers(place: Path) -> int:
    """How many workers its log shows."""
    return (place / "log").read_text().count("this worker is ready")


@contextmanager
def running(place: Path, environment: Mapping[str, str], *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that ends in order by SIGTERM; its output is in place/log."""
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=place, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(self._path))


def asked(path: Path) -> str:
    """What the server on that unix socket answers."""
    with closing(UnixConnection(path)) as connection:
        connection.request("GET", "/")
        with connection.getresponse() as answer:
            text = answer.read().decode()
            assert answer.status == 200, text
            return text


def listens(path: Path) -> bool:
    """Whether there is one."""
    with closing(UnixConnection(path)) as connection:
        try:
            connection.connect()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True
