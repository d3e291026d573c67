"""What is allowed and probably a mistake: warned about once a place."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from ._native import Client

_warned: set[tuple[str, int]] = set()


def warn(client: Client | None, lock_name: str | None, text: str) -> None:
    """Warns once a place: an event of the client's, and a warning that shows the line."""
    # The innermost frame outside of this package (and of contextlib), and how deep it lies below the caller.
    frame: FrameType | None = sys._getframe()
    depth = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("locktender", "contextlib"):
        frame, depth = frame.f_back, depth + 1
    if frame is not None:
        place = frame.f_code.co_filename, frame.f_lineno
        if place in _warned:
            return
        _warned.add(place)
    if client is not None:
        client._warn(lock_name, text)
    warnings.warn(text, UserWarning, stacklevel=depth)
