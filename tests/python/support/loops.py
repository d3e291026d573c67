"""Event loops of every kind that users have."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import uvloop

Main = Callable[[], Coroutine[Any, Any, None]]


class NoReaders(asyncio.SelectorEventLoop):
    """As the default loop of Windows."""

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> Any:
        if "locktender" in type(callback).__module__:
            raise NotImplementedError
        return super().add_reader(fd, callback, *args)


def on(make: Callable[[], asyncio.AbstractEventLoop]) -> Callable[[Main], None]:
    """Runs a program on a loop that is made for it."""

    def run(main: Main) -> None:
        loop = make()
        try:
            loop.run_until_complete(main())
        finally:
            loop.close()

    return run


LOOPS: dict[str, Callable[[Main], None]] = {
    "asyncio": lambda main: asyncio.run(main()),
    "debug mode": lambda main: asyncio.run(main(), debug=True),
    "uvloop": on(uvloop.new_event_loop),
    "no readers": on(NoReaders),
    "anyio": anyio.run,
}
