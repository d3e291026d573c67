"""Waiting for what a test observes, instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# How long anything that is certain to come may take, in seconds: a machine may stall, and only a test that fails waits for all of it.
PATIENCE = 60.0

# What a loaded machine may add to a time that is promised, in seconds. Where a bound matters, what breaks it takes longer than that.
LOAD = 3.0


def until(observed: Callable[[], T], within: float = PATIENCE) -> T:
    """What `observed` returns once it is true; fails when that takes longer than `within` seconds."""
    deadline = time.monotonic() + within
    while not (value := observed()):
        assert time.monotonic() < deadline, f"not observed within {within} s"
        time.sleep(0.005)
    return value
