"""The clock for users' own tests: it moves renewals, expiry, waits and late answers, on servers of this process alone."""

import asyncio
import gc
import os
import threading
from datetime import timedelta

import pytest
from locktender import AcquireTimeoutError, Client, InvalidArgumentError, LockLostError, UnavailableError
from locktender.testing import Clock, ScriptedServer
from support.observe import PATIENCE, until

# Tests stay ten seconds away from its end: a machine may stall.
TTL = 60
HOUR = 3600


@pytest.fixture
def clock():
    with Clock() as clock:
        yield clock


@pytest.fixture
def client(name):
    with Client(f"memory://{name}", ttl=TTL) as client:
        yield client


def waits(client):
    """Until somebody waits for the lock."""
    until(lambda: (info := client.lock("orders").inspect()) and info.waiters)


def test_a_hold_that_nobody_renews_expires_and_its_holder_is_notified(clock, client):
    told = threading.Event()
    held = client.lock("orders", renew=False, on_lost=lambda _error: told.set()).acquire()
    clock.advance(50)
    assert held.is_valid() and not told.is_set()
    assert client.lock("orders").try_acquire() is None
    clock.advance(timedelta(seconds=10))
    assert not held.is_valid() and told.wait(PATIENCE)
    with pytest.raises(LockLostError) as lost:
        held.check()
    assert lost.value.reason == "expired"
    clock.advance(0.001)  # a server keeps a key through the millisecond in which its ttl ends
    with client.lock("orders", wait=0) as next_one:
        assert next_one.fence > held.fence


def test_a_waiter_has_the_lock_of_a_client_that_died_once_its_key_expires(clock, client):
    # A hand-over that nobody adopts leaves the key as a client that is killed does.
    client.lock("orders").acquire().hand_over()
    granted = []
    waiter = threading.Thread(target=lambda: granted.append(client.lock("orders").acquire()))
    waiter.start()
    waits(client)
    clock.advance(50)
    assert not granted
    clock.advance(11)
    waiter.join(PATIENCE)
    assert granted[0].is_valid()
    granted[0].release()


def test_a_hold_that_is_garbage_expires(clock, client):
    with pytest.warns(ResourceWarning):
        held = client.lock("orders").acquire()
        del held
        gc.collect()
    assert client.lock("orders").try_acquire() is None
    clock.advance(TTL)
    with client.lock("orders", wait=0) as held:
        assert held.is_valid()


@pytest.mark.parametrize("servers", ["memory", "scripted", "quorum"])
def test_renewals_keep_a_long_job_alive_over_an_hour(clock, name, servers):
    several = {
        "memory": [f"memory://{name}"],
        "scripted": [ScriptedServer()],
        "quorum": [ScriptedServer(name=f"s{number}") for number in range(3)],
    }
    with Client(several[servers], ttl=TTL) as client:
        client.initialize_quorum()
        with client.lock("orders") as held:
            clock.advance(HOUR)
            assert held.is_valid() and held.remaining() > 35
            assert client.lock("orders").try_acquire() is None


def test_a_wait_times_out(clock, client):
    errors = []

    def wait():
        with pytest.raises(AcquireTimeoutError) as error:
            client.lock("orders", wait=60).acquire()
        errors.append(error.value)

    with client.lock("orders") as held:
        waiter = threading.Thread(target=wait)
        waiter.start()
        waits(client)
        clock.advance(50)
        assert not errors
        clock.advance(10)
        waiter.join(PATIENCE)
        assert errors[0].holder == held.owner


def test_a_task_times_out_and_a_body_is_cancelled(clock, client):
    async def main():
        async def body():
            async with client.lock("report", renew=False):
                await asyncio.sleep(HOUR)

        async with client.lock("orders"):
            wait = asyncio.create_task(client.lock("orders", wait=30).acquire_async())
            working = asyncio.create_task(body())
            while not ((info := await client.lock("orders").inspect_async()) and info.waiters):
                await asyncio.sleep(0.005)
            while not await client.lock("report").inspect_async():
                await asyncio.sleep(0.005)
            await asyncio.to_thread(clock.advance, TTL)
            with pytest.raises(AcquireTimeoutError):
                await wait
            with pytest.raises(LockLostError):
                await working

    asyncio.run(main())


def test_a_server_that_stops_answering_loses_a_hold_at_the_end_of_its_ttl(clock):
    server = ScriptedServer("always extend: silence")
    with Client(server, ttl=TTL) as client:
        held = client.lock("orders").acquire()
        clock.advance(50)
        assert held.is_valid()
        clock.advance(10)
        assert held.wait_lost(PATIENCE).reason == "expired"
    assert sum(seen.op == "extend" for seen in server.seen) > 2


def test_the_patience_with_a_dead_server_keeps_to_the_clock(clock):
    server = ScriptedServer("always any: silence")
    failed = threading.Event()
    with Client(server, unavailable_after=60) as client:

        def work():
            with pytest.raises(UnavailableError):
                client.lock("orders").acquire()
            failed.set()

        worker = threading.Thread(target=work)
        worker.start()
        until(lambda: server.seen)
        clock.advance(50)
        assert not failed.is_set()
        clock.advance(11)
        assert failed.wait(PATIENCE)
        worker.join(PATIENCE)


def test_the_longest_hold_ends_at_its_time(clock, client):
    held = client.lock("orders", max_hold=600).acquire()
    clock.advance(590)
    assert held.is_valid()
    clock.advance(10)
    with pytest.raises(LockLostError) as lost:
        held.check()
    assert lost.value.reason == "max_hold"


def test_a_server_with_a_clock_of_its_own_is_refused(clock, server):
    with Client(server.url, ttl=TTL) as client:
        clock.advance(HOUR)
        with client.lock("testing-clock") as held:
            with pytest.raises(InvalidArgumentError, match="has a clock of its own: use memory:// or a scripted server"):
                clock.advance(HOUR)
            assert held.is_valid()
        clock.advance(HOUR)


def test_one_test_has_the_clock(clock):
    with pytest.raises(InvalidArgumentError, match="has the clock already"):
        Clock()
    for seconds in (-1, 367 * 86_400, "30", None, True):
        with pytest.raises(InvalidArgumentError, match="seconds"):
            clock.advance(seconds)
    clock.advance(0)
    clock.close()
    with pytest.raises(InvalidArgumentError, match="given back"):
        clock.advance(1)
    with Clock() as again:
        again.advance(1)
    Clock()  # dropped at once
    Clock().close()


def test_a_forked_child_has_a_clock_of_its_own(clock, client):
    held = client.lock("orders").acquire()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with Clock() as own, Client("memory://child").lock("orders") as mine:
                own.advance(HOUR)
                code = 0 if mine.is_valid() else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    clock.advance(HOUR)
    assert held.is_valid()
    held.release()
