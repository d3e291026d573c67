"""Times in messages and fields: whole milliseconds, without the noise of floats."""

import re

import pytest
from locktender import AcquireTimeoutError, Client
from locktender.testing import Clock, ScriptedServer


@pytest.mark.parametrize("ttl", [2780, 2970, 1001, 60])
def test_what_remains_to_a_holder_is_shown_in_whole_milliseconds(name, ttl):
    with Client(ScriptedServer(f"acquire: busy owner=somebody ttl={ttl}"), wait=0) as client:
        with pytest.raises(AcquireTimeoutError) as caught:
            client.lock(name).acquire()
    remaining = caught.value.remaining
    assert remaining == round(remaining, 3)
    assert f"({remaining:g} s remain)" in str(caught.value)


def test_every_time_of_a_hold_is_in_whole_milliseconds(name):
    with Clock() as clock, Client(f"memory://{name}", ttl=3) as client, client.lock(name, min_hold=60) as held:
        for _ in range(100):
            clock.advance(0.0123)
            [info], shown = client.holds(), client.lock(name).inspect()
            assert shown is not None
            for seconds in (held.remaining(), info.remaining, info.held_for, shown.remaining):
                assert re.fullmatch(r"\d+(\.\d{1,3})?", repr(seconds)), seconds
