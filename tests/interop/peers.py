"""Peers: the other programs as values."""

import json
import signal
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from support.checkout import ROOT, prepared
from support.observe import PATIENCE

HERE = Path(__file__).parent
PROGRAMS: dict[str, list[str | Path]] = {
    "rust": [prepared("bin/locktender-peer")],
    "python": [prepared("bin/python"), HERE / "peer_locktender.py"],
    "node": ["node", HERE / "peer_locktender.mjs"],
    "redis-py": [prepared("bin/python"), HERE / "peer_redis_py.py"],
    "redlock": ["node", HERE / "peer_redlock.mjs"],
    "redis-semaphore": ["node", HERE / "peer_redis_semaphore.mjs"],
}


class Peer:
    """A running peer."""

    def __init__(self, library: str, url: str) -> None:
        self.library = library
        self._process = subprocess.Popen(
            [*PROGRAMS[library], url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.pid = self._process.pid
        self.killed = False

    def send(self, do: str, **asked: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": do, **asked}) + "\n")

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"{self.library} ended with {self._process.wait(PATIENCE)}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, do: str, **asked: Any) -> dict[str, Any]:
        self.send(do, **asked)
        return self.receive()

    def try_ask(self, do: str, **asked: Any) -> dict[str, Any] | None:
        """As `ask`; nothing if the peer was killed."""
        assert self._process.stdout
        try:
            self.send(do, **asked)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line.endswith("\n") else None

    def kill_now(self) -> None:
        """Ends it as a crash does, while another thread may wait for its answer."""
        self.killed = True
        self._process.kill()

    def kill(self) -> None:
        """Ends it as a crash does."""
        assert self._process.stdin and self._process.stdout
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process.stdin.close()
        self._process.stdout.close()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        # One that had ended by itself can't be killed any more.
        assert self._process.wait(PATIENCE) in ((0, -signal.SIGKILL) if self.killed else (0,))


class Peers(dict[str, Peer]):
    """One peer of each library, started when it is first asked for."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._url = url
        self._stack = stack

    def __missing__(self, library: str) -> Peer:
        self[library] = self._stack.enter_context(Peer(library, self._url))
        return self[library]
