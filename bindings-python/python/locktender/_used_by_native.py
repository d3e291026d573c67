"""What the native module uses of this package. Each module is imported when it is first used: to import them all takes long. What the
exit of the interpreter calls is there before: an import then would make the interpreter forget that Ctrl-C ends it.
"""

from __future__ import annotations

from . import _native
from . import _threads as _threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # What packs a program with all that it imports finds these only here.
    from . import _asyncio, _bodies, _callables, _credentials, _decorator, _election, _events, _failure, _green, _job, _not_run
    from . import _pickle, _redis_py, _warnings


def named(module: str, name: str) -> Any:
    """What a module of this package has by this name; ``None`` while this very thread is importing the module."""
    # In C: a module that is there already is found without a lock, which a signal handler could find taken by its own thread.
    return getattr(__import__(f"locktender.{module}", fromlist=(name,)), name, None)


_native._use(named)
