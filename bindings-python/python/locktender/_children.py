"""Children of multiprocessing: most end without the handlers of ``atexit``, but have some of their own."""

from __future__ import annotations

import importlib
import os
import sys

from . import _native

_follows = False


def _follow() -> None:
    """Has children that begin from now on close their clients at their end. A program that has not imported multiprocessing makes none."""
    global _follows
    util = sys.modules.get("multiprocessing.util")
    if util is not None and not _follows:
        _follows = True
        # A child begins by forgetting its parent's handlers; this is called after that.
        util.register_after_fork(_at_the_end, _at_the_end)


def _at_the_end(_: object = None) -> None:
    # After the handlers of the program, which may still use a lock.
    sys.modules["multiprocessing.util"].Finalize(None, _close_all, exitpriority=-1000)


def _close_all() -> None:
    import threading

    try:
        # Threads of the child may still hold locks, and a child would wait for them only after this.
        threading._shutdown()  # type: ignore[attr-defined]
    finally:
        _native._close_all()


# What of this package is imported when it is first used, and the module without which it is not.
_IMPORTED_LATER = {
    "_asyncio": "asyncio.runners",
    "_bodies": "logging",
    "_callables": "locktender",
    "_credentials": "locktender",
    "_decorator": "locktender",
    "_election": "locktender",
    "_events": "logging",
    "_failure": "locktender",
    "_green": "locktender",
    "_job": "locktender",
    "_not_run": "locktender",
    "_pickle": "locktender",
    "_redis_py": "locktender",
    "_warnings": "locktender",
}


def _finish_imports() -> None:
    """Imports it before a fork. In a child no other thread ends an import that it had begun, and a thread that needs the module waits without end."""
    for module, needed in _IMPORTED_LATER.items():
        if needed in sys.modules:
            importlib.import_module(f"locktender.{module}")


def settle_in() -> None:
    """Called once, when the package is imported."""
    _follow()  # a child imports the program before it begins
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_finish_imports)
        # A child is distinguished from its parent by more than its number, which both may have in namespaces of their own.
        os.register_at_fork(after_in_child=_native._forked)
        os.register_at_fork(after_in_child=_follow)
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:  # or it has begun
        _at_the_end()
