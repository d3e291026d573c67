"""Children of multiprocessing: most end without the handlers of ``atexit``, but have some of their own."""

from __future__ import annotations

import os
import sys

from . import _native

_follows = False


def _follow() -> None:
    """Has children that begin from now on close their clients at their end. Who has not imported multiprocessing makes none."""
    global _follows
    util = sys.modules.get("multiprocessing.util")
    if util is not None and not _follows:
        _follows = True
        # A child begins by forgetting its parent's handlers; this is called after that.
        util.register_after_fork(_at_the_end, _at_the_end)


def _at_the_end(_: object = None) -> None:
    # After the handlers of the program, which may still use a lock.
    sys.modules["multiprocessing.util"].Finalize(None, _native._close_all, exitpriority=-1000)


def settle_in() -> None:
    """Called once, when the package is imported."""
    _follow()  # a child imports the program before it begins
    if hasattr(os, "register_at_fork"):
        # A child is told apart from its parent by more than its number, which both may have in namespaces of their own.
        os.register_at_fork(after_in_child=_native._forked)
        os.register_at_fork(after_in_child=_follow)
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:  # or it has begun
        _at_the_end()
