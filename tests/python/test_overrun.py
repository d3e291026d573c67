"""The overrun of a loss: how long the holder went on, up to the end of the body. What its servers take to answer then is not the holder's."""

import asyncio

import pytest
from locktender import Client, LockLostError
from locktender.testing import ScriptedServer
from support.observe import PATIENCE, until


@pytest.fixture
def client_and_events():
    """A server that answers no renewal and no release."""
    events = []
    server = ScriptedServer("always extend: silence\nalways release: silence", response_timeout=0.2)
    with Client(server, ttl=1.5, on_event=events.append) as client:
        yield client, events


def is_that_of_the_end(error, events):
    """The event measures it when the release begins."""
    [expired] = until(lambda: [event for event in events if event.kind == "expired"], PATIENCE)
    assert (error.reason, error.overrun) == ("expired", expired.overrun)


def test_the_overrun_of_a_blocking_body(client_and_events, name):
    client, events = client_and_events
    with pytest.raises(LockLostError) as caught, client.lock(name) as held:
        assert held.wait_lost(PATIENCE)
    is_that_of_the_end(caught.value, events)


def test_the_overrun_of_a_decorated_function(client_and_events, name):
    client, events = client_and_events
    released = []

    def lost(_error):
        released.append(1)

    @client.lock(name, on_lost=lost)
    def work():
        until(lambda: released, PATIENCE)
        return "done"

    with pytest.raises(LockLostError) as caught:
        work()
    assert caught.value.result == "done"
    is_that_of_the_end(caught.value, events)


@pytest.mark.parametrize("on_lost", ["cancel", "continue"])
def test_the_overrun_of_a_task(client_and_events, name, on_lost):
    client, events = client_and_events

    async def main():
        with pytest.raises(LockLostError) as caught:
            async with client.lock(name, on_lost=on_lost) as held:
                assert await held.wait_lost(PATIENCE)
        is_that_of_the_end(caught.value, events)

    asyncio.run(main())
