"""Stub of :mod:`locktender._native`: what :mod:`locktender.testing` exports."""

from types import TracebackType
from typing import final

from ._native_options import _Seconds

@final
class ScriptedServer:
    """A test double: a lock server whose answers a script prescribes; give it to :class:`Client` in place of a URL.

    A script has one step a line, ``operation: step``, for the next operation of that kind (``acquire``, ``extend``, ``release``,
    ``inspect``, ``any``, ...), or ``always operation: step`` for all that come after. Where there is no step it behaves. Steps:
    ``real``, ``granted [fence=7]``, ``busy [owner=x] [ttl=500]``, ``gone``, ``conflict type=list``, ``fail refused`` (or another kind),
    ``silence``; all but the last may have a ``delay=100``. Times in a script are milliseconds.

        server = ScriptedServer('''
            acquire: busy owner=somebody ttl=500
            acquire: fail denied
            always extend: gone
        ''')
    """

    def __new__(
        cls, script: str | None = None, *, name: str | None = None, response_timeout: _Seconds | None = None
    ) -> ScriptedServer: ...
    def play(self, script: str) -> None:
        """Adds more steps. Raises :exc:`InvalidArgumentError` for what it can't read; the lines before are in effect.

            server.play("always release: fail timeout")
        """

    @property
    def seen(self) -> list[Seen]:
        """Everything asked so far, in order."""

    @property
    def unplayed(self) -> int:
        """How many steps are not used yet."""

@final
class Clock:
    """A manual clock for every lock in this process: one test has it, and moves time forward for ``memory://`` and scripted servers.

    Time also passes by itself, and is never moved back. One test has the clock at a time: making a second one before the first is
    closed raises :exc:`InvalidArgumentError`.

        with Clock() as clock, client.lock("report") as hold:
            clock.advance(3600)
            assert hold.is_valid()  # its ttl is 10 s, and it was renewed for an hour
    """

    def __new__(cls) -> Clock: ...
    def advance(self, seconds: _Seconds) -> None:
        """Moves the clock forward. Everything that is due until then has happened when this returns, each at its time: renewals, retries,
        the end of waits and of holds, late answers of scripted servers. What your own threads, tasks and callbacks do about it they
        do in their own time. It blocks for a moment: ``await asyncio.to_thread(clock.advance, 3600)`` lets tasks run meanwhile.

        Raises :exc:`InvalidArgumentError` while a lock is held or waited for on a real server, which has a clock of its own.
        """

    def close(self) -> None:
        """Releases the clock: another test may take it. Time continues from where it is.

            clock.close()  # or: with Clock() as clock: ...
        """

    def __enter__(self) -> Clock: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class Seen:
    """One operation a scripted server was asked for."""

    @property
    def op(self) -> str:
        """Its kind."""

    @property
    def lock(self) -> str | None:
        """The lock's name."""

    @property
    def owner(self) -> str | None:
        """On whose behalf."""
