"""Waiting for what a test observes, instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(observed: Callable[[], T], within: float = 5.0) -> T:
    """What `observed` returns once it is true; fails when that takes longer than `within` seconds."""
    deadline = time.monotonic() + within
    while not (value := observed()):
        assert time.monotonic() < deadline, f"not observed within {within} s"
        time.sleep(0.005)
    return value
