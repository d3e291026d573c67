"""asyncio: the same tests with coroutines, cancelled tasks, and loops that start and end."""

import asyncio
import inspect
import pickle
import sys
import time

import pytest
from locktender import (
    AcquireTimeoutError,
    AsyncHold,
    Client,
    ClosedError,
    InvalidArgumentError,
    NotHeldError,
)
from support.observe import PATIENCE
from support.script import run
from support.server import RealServer


def test_everything_is_a_coroutine(each_client, name):
    lock = each_client.lock(name)

    async def main():
        held = await asyncio.create_task(lock.acquire_async())
        assert isinstance(held, AsyncHold) and held.name == name and held.is_valid() and held.fence > 0
        assert await lock.try_acquire_async() is None
        info = await lock.inspect_async()
        assert info.owner == held.owner
        await held.extend(100)
        await held.extend(by=100)
        assert 196 < held.remaining() <= 200
        held.check()
        assert await held.wait_lost(0.01) is None
        assert (await asyncio.wait_for(held.release(), 5)).outcome == "released"
        with pytest.raises(NotHeldError):
            await held.release()
        ticket = (await lock.acquire_async()).hand_over()
        async with await each_client.adopt_async(ticket, wait=0) as adopted:
            assert adopted.fence > held.fence
        assert await lock.inspect_async() is None
        async with await lock.try_acquire_async() as held:
            pass
        results = await asyncio.gather(*(lock.inspect_async() for _ in range(50)))
        assert results == [None] * 50

    asyncio.run(main())


def test_asyncio_run_takes_an_operation(each_client, name):
    if sys.version_info >= (3, 12):
        assert asyncio.run(each_client.lock(name).inspect_async()) is None
    assert inspect.isawaitable(operation := each_client.lock(name).inspect_async())
    operation.close()


def test_a_forgotten_await_warns(each_client, name):
    with pytest.warns(RuntimeWarning, match="acquire_async.*never awaited"):
        each_client.lock(name).acquire_async()


def test_an_operation_is_awaited_once_and_needs_a_loop(each_client, name):
    operation = each_client.lock(name).inspect_async()
    with pytest.raises(RuntimeError, match="no running event loop of asyncio; under trio"):
        operation.send(None)
    with pytest.raises(RuntimeError, match="already awaited"):
        operation.send(None)


def test_errors_come_out_of_await(each_client, name):
    async def main():
        held = await each_client.lock(name).acquire_async()
        with pytest.raises(AcquireTimeoutError):
            await each_client.lock(name, wait=0.05).acquire_async()
        with pytest.raises(InvalidArgumentError):
            await each_client.lock("").acquire_async()
        with pytest.raises(InvalidArgumentError):
            await held.extend("soon")
        with pytest.raises(InvalidArgumentError):
            await held.wait_lost(-1)
        with pytest.raises(TypeError):
            pickle.dumps(held)
        await held.release()

    asyncio.run(main())


def test_async_with_a_client(server: RealServer, name):
    async def main():
        async with Client(server.url) as client:
            held = await client.lock(name).acquire_async()
        assert not held.is_valid()
        with pytest.raises(ClosedError):
            await client.lock(name).acquire_async()

    asyncio.run(main())


def test_tasks_exclude_each_other(each_client, name, on_each_loop):
    lock = each_client.lock(name)
    inside = []

    async def work():
        for _ in range(5):
            async with lock:
                inside.append(1)
                assert len(inside) == 1
                await asyncio.sleep(0)
                inside.pop()

    async def main():
        await asyncio.gather(*(work() for _ in range(8)))

    for _ in range(3):
        on_each_loop(main)


def test_a_blocking_acquire_that_stops_a_loop_warns(client, name):
    async def main():
        held = await client.lock(name).acquire_async()
        with pytest.warns(RuntimeWarning, match="async with"), pytest.raises(AcquireTimeoutError):
            client.lock(name, wait=0.2).acquire()
        await held.release()
        client.lock(name).acquire().release()  # free: no warning

    asyncio.run(main())


def test_asyncio_is_imported_only_when_used():
    program = """
        import sys
        from locktender import Client
        with Client("memory://quick") as client, client.lock("a") as held:
            pass
        print(sorted({"asyncio", "logging", "threading", "typing", "inspect"} & set(sys.modules)))
    """
    assert run(program) == "[]\n"


def test_a_waiting_task_does_not_stop_the_loop(server, name):
    """A machine may stall, too, but not each time; what a wait does, the first one of a client and each, shows each time."""

    async def longest_turn(client):
        held = await client.lock(name).acquire_async()
        waiter = asyncio.create_task(client.lock(name, wait=PATIENCE).acquire_async())
        began = before = time.monotonic()
        longest = 0.0
        while before - began < 0.3:
            await asyncio.sleep(0)
            now = time.monotonic()
            longest, before = max(longest, now - before), now
        await held.release()  # nobody else can do it: a waiter that stopped the loop would wait in vain
        await (await waiter).release()
        return longest

    def once():
        with Client(server.url, response_timeout=PATIENCE) as client:
            return asyncio.run(longest_turn(client))

    assert min(once() for _ in range(3)) < 0.1
