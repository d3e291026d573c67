"""Threads of the system, also where gevent or eventlet has put green ones in their place.

What blocks in native code must not run on a green thread: it would block all others of its thread.
"""

from __future__ import annotations

import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def start(name: str, run: Callable[..., None], *arguments: object) -> None:
    """Starts a daemon thread."""
    import threading
    patched = _patched()
    if patched is None:
        threading.Thread(target=run, args=arguments, name=name, daemon=True).start()
    else:
        patched("start_new_thread")(_run, (name, run, *arguments))


def original(name: str) -> Any:
    """A function of ``_thread``, as the interpreter came with it."""
    patched = _patched()
    return getattr(_thread, name) if patched is None else patched(name)


def checkpoint() -> None:
    """Any bytecode: before it the interpreter raises what another thread has set for this one (``PyThreadState_SetAsyncExc``)."""


def _patched() -> Callable[[str], Any] | None:
    """Gives the original functions of ``_thread``, if they have been replaced."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("_thread"):
        return lambda name: gevent.get_original("_thread", name)
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and eventlet.is_monkey_patched("thread"):
        return lambda name: getattr(eventlet.original("_thread"), name)
    return None


def _run(name: str, run: Callable[..., None], *arguments: object) -> None:
    import threading
    threading.current_thread().name = name
    run(*arguments)
