"""Event loops: several, and closed ones; and frameworks with their own threads."""

import asyncio
import gc
import threading
import weakref

import anyio
import anyio.to_thread
import pytest
import trio
from support.observe import PATIENCE, until
from support.server import RealServer


def test_two_loops_in_two_threads(client, name):
    lock = client.lock(name)
    counts = []

    async def work():
        for _ in range(20):
            async with lock:
                counts.append(1)

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(counts) == 40


def test_a_hold_moves_between_loops_and_to_threads(client, name):
    held = asyncio.run(_acquired(client.lock(name)))
    assert held.is_valid()
    assert asyncio.run(_released(held)).outcome == "released"


async def _acquired(lock):
    return await lock.acquire_async()


async def _released(held):
    return await held.release()


def test_a_loop_closed_with_operations_pending(server: RealServer, client, name, capfd):
    loop = asyncio.new_event_loop()
    with client.lock(name) as held:
        waiting = loop.create_task(client.lock(name, ttl=600).acquire_async())
        loop.run_until_complete(asyncio.to_thread(until, lambda: server.line(name)))
        assert not waiting.done()
        waiting._log_destroy_pending = False  # what asyncio itself says about such a task
        gone = weakref.ref(waiting)
        loop.close()
        del waiting, loop
        gc.collect()
        assert gone() is None, "nothing keeps the task alive, and it has given its attempt up"
    # An abandoned acquire would get the lock, and keep it for its ttl. The release may have kept it for that one, for 200 ms.
    with client.lock(name, wait=PATIENCE) as next_one:
        assert next_one.fence > held.fence
    assert capfd.readouterr() == ("", "")


def test_a_closed_loop_is_let_go(client, name):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(client.lock(name).inspect_async())
    gone = weakref.ref(loop)
    loop.close()
    del loop
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_threads_of_anyio(each_client, name, backend):
    lock = each_client.lock(name)
    fences = []

    async def work():
        held = await anyio.to_thread.run_sync(lock.acquire)
        fences.append(held.fence)
        assert (await anyio.to_thread.run_sync(held.release)).outcome == "released"  # most often another thread

    async def main():
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(work)

    anyio.run(main, backend=backend)
    assert len(set(fences)) == 8


def test_a_loss_is_reported_to_trio(client, server: RealServer, name):
    async def main():
        held = await trio.to_thread.run_sync(client.lock(name, ttl=2.5).acquire)
        server.command("DEL", name)
        loss = await trio.to_thread.run_sync(held.wait_lost, PATIENCE)
        assert loss.reason == "missing"

    trio.run(main)
