"""Programs that end with their test, also if the test is killed."""

import os
import signal
import subprocess
from pathlib import Path

from .checkout import ROOT
from .observe import PATIENCE, until


class Program:
    """A program that prints one number when it is ready and ends with its standard input."""

    def __init__(self, *command: object) -> None:
        # Its own session: a Ctrl-C meant for the test is not meant for it.
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        self.number = int(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"{self._process.args!r} ended with {self._process.wait()}")
        return line.strip()

    def ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(str(word) for word in words) + "\n")
        return self._answer()

    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> None:
        self._process.wait(PATIENCE)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self.wait()
        self._process.stdout.close()


class Tether(Program):
    """A running server with its own directory; tests/tether says how it ends."""

    def __init__(self, directory: Path, *command: object) -> None:
        super().__init__(ROOT / "tests/tether", directory, *command)

    @property
    def pid(self) -> int:
        return self.number

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        self.close()

    def pause(self) -> None:
        """Stops the server and waits until it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        status = Path(f"/proc/{self.pid}/stat")
        # Where there is no /proc the signal has to be trusted.
        until(lambda: not status.exists() or status.read_text().rpartition(") ")[2].startswith("T"))

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
