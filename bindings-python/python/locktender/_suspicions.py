"""What is allowed and probably a mistake: warned about once a place; a bare ``@lock``: refused."""

from __future__ import annotations

import inspect
import string
import sys
import warnings
from types import CodeType, FrameType
from typing import Any

from ._native import Client
from ._not_run import of_class
from .errors import InvalidArgumentError

_warned: set[tuple[str, int]] = set()


def refuse_bare(name: Any) -> None:
    """Raises if ``name`` can't make names, as the function under a bare ``@lock``."""
    frame, _ = _program()
    code = getattr(inspect.unwrap(name), "__code__", None)
    runs_later = inspect.iscoroutinefunction(name) or inspect.isgeneratorfunction(name) or inspect.isasyncgenfunction(name)
    if isinstance(name, type) and not issubclass(name, str):
        raise of_class(name)
    if runs_later or (code is not None and _decorates(code, frame)):
        what = getattr(name, "__qualname__", repr(name))
        raise InvalidArgumentError(f'name: a bare @lock makes a lock of {what}, and locks nothing: write @lock("name")')


def _decorates(code: CodeType, frame: FrameType | None) -> bool:
    """Whether the call stands above a function's body, in its own definition."""
    if frame is None or code.co_name == "<lambda>" or code.co_filename == "<stdin>" or code.co_filename != frame.f_code.co_filename:
        return False
    last = max(line for _, _, line in code.co_lines() if line is not None)
    return code.co_firstlineno <= frame.f_lineno <= last


def warn_of_template(client: Client, name: str) -> None:
    """Warns of a name with ``{braces}`` around a variable of the program: an f was forgotten."""
    frame, _ = _program()
    if frame is None or _place(frame) in _warned:
        return
    try:
        # A tag that is more than the variable's name was meant as a tag.
        fields = [field for _, field, how, _ in string.Formatter().parse(name) if field and not how]
    except ValueError:
        return
    for field in fields:
        root = field.partition(".")[0].partition("[")[0]
        if root in frame.f_locals or root in frame.f_globals:
            warn(client, name, f'name: {name!r} has {{{field}}} in it as it stands: was an f-string meant, f"{name}"?')
            return


def warn(client: Client | None, lock_name: str | None, text: str) -> None:
    """Warns once a place: an event of the client's, and a warning that shows the line."""
    frame, depth = _program()
    if frame is not None:
        if _place(frame) in _warned:
            return
        _warned.add(_place(frame))
    if client is not None:
        client._warn(lock_name, text)
    warnings.warn(text, UserWarning, stacklevel=depth)


def _place(frame: FrameType) -> tuple[str, int]:
    return frame.f_code.co_filename, frame.f_lineno


def _program() -> tuple[FrameType | None, int]:
    """The innermost frame outside of this package (and of contextlib), and how deep it lies below the caller."""
    frame: FrameType | None = sys._getframe(1)
    depth = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("locktender", "contextlib"):
        frame, depth = frame.f_back, depth + 1
    return frame, depth
