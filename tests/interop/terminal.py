"""Terminals: a program in a terminal of its own, at whose keyboard a test sits."""

import fcntl
import os
import pty
import select
import struct
import termios
from contextlib import suppress
from pathlib import Path

from support.observe import PATIENCE, until


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, *command: str, env: dict[str, str]) -> None:
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, env)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def shows(self, text: str) -> str:
        """Reads until the text was shown, and gives what was shown before it; what comes later is read next."""
        while text not in self.shown:
            self._read()
        before, _, self.shown = self.shown.partition(text)
        return before

    def answers(self, word: str) -> None:
        """`cat` runs: the terminal shows what is typed, and `cat` writes it again. A shell that is about to start it loses signals."""
        self.type(f"{word}\n")
        self.shows(word)
        self.shows(word)

    def is_the_shells(self) -> None:
        """Waits until all that the shell has started is stopped. Until then a program that reads may get what is typed next."""

        def states() -> set[str]:
            found: set[str] = set()
            for stat in Path("/proc").glob("[0-9]*/stat"):
                with suppress(OSError):
                    # The name of the program may have any letters.
                    state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
                    if int(session) == self.pid and int(stat.parent.name) != self.pid:
                        found.add(state)
            return found

        until(lambda: states() <= {"T"}, PATIENCE)

    def has_size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self) -> int:
        """The exit code. Linux gives an error at the end of a terminal."""
        with suppress(OSError):
            while True:
                self._read()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> None:
        ready, _, _ = select.select([self._file], [], [], PATIENCE)
        assert ready, f"nothing more than {self.shown!r}"
        self.shown += os.read(self._file, 4096).decode()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        # Whatever is left in it is hung up.
        os.close(self._file)
