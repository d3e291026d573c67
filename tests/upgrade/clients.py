"""Clients: the commands of two versions, started against the same servers."""

import json
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.observe import PATIENCE, until
from support.server import RealServer

# The ttl of locks whose holder ends by itself: longer than a test, so that no lock is free by its end; a quorum allows no longer one by default.
TTL = "1m"


def line(process: "subprocess.Popen[str]") -> str:
    """The one line that a process writes."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE)[0], f"{process.args!r} wrote nothing within {PATIENCE:.0f} s"
    written = process.stdout.readline()
    assert written, f"{process.args!r} wrote nothing, and ended with {process.wait(PATIENCE)}"
    return written


class Hold:
    """`locktender hold`: it has the lock from the line that it writes until its input ends."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def fence(self) -> int:
        """Waits until it has the lock."""
        fence: int = json.loads(line(self.process))["fence"]
        return fence

    def release(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


class Clients:
    """Both versions on some servers."""

    def __init__(self, programs: dict[str, str], servers: list[RealServer]) -> None:
        self.programs, self.servers = programs, servers
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCKTENDER_")}
        self.environment = {**kept, "LOCKTENDER_URL": ",".join(server.url for server in servers)}

    def command(self, version: str, *words: str, code: "int | None" = 0) -> "subprocess.CompletedProcess[str]":
        """A command that has ended, with this exit code."""
        command = [self.programs[version], *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        assert code is None or done.returncode == code, f"{version}: {words} ended with {done.returncode}: {done.stderr}"
        return done

    def ran(self, version: str, *words: str, code: int = 0) -> str:
        """What a command writes that ends with this exit code."""
        return self.command(version, *words, code=code).stdout

    def shows(self, version: str, name: str) -> bool:
        """Whether it knows of a holder or of a job."""
        return self.command(version, "show", name, code=None).returncode == 0

    def asked(self, version: str, *words: str) -> Any:
        """What a command for operators writes as one line of JSON."""
        return json.loads(self.ran(version, *words, "--json"))

    @contextmanager
    def started(self, version: str, *words: str) -> "Iterator[subprocess.Popen[str]]":
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([self.programs[version], *words], env=self.environment, text=True, **pipes) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def hold(self, version: str, *words: str, ttl: str = TTL) -> Iterator[Hold]:
        """A process that asks for a lock and holds it."""
        with self.started(version, "hold", "--json", "--ttl", ttl, *words) as process:
            yield Hold(process)

    def until_waiting(self, name: str, number: int = 1) -> None:
        """Waits until so many are in the queue, of most servers."""
        majority = len(self.servers) // 2 + 1
        until(lambda: sum(len(server.line(name)) >= number for server in self.servers) >= majority, PATIENCE)
