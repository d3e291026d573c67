"""Observation: a test waits until it sees a condition, instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# How long anything that is certain to come may take, in seconds: a machine may stall, and only a test that fails waits for all of it.
PATIENCE = 20.0

# In which what somebody gave up has left, in seconds.
PROMPTLY = 1.0

# What a machine may add to a time that is promised, in seconds. It is small, or the promise would hide in it.
LOAD = 0.5


def until(observed: Callable[[], T], within: float = 5.0) -> T:
    """What `observed` returns once it is true; fails when that takes longer than `within` seconds."""
    deadline = time.monotonic() + within
    while not (value := observed()):
        assert time.monotonic() < deadline, f"not observed within {within} s"
        time.sleep(0.005)
    return value
