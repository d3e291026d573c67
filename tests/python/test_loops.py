"""Event loops: several, closed, unusual ones; and frameworks that have their own."""

import asyncio
import gc
import threading
import weakref

import anyio
import anyio.to_thread
import pytest
import trio
import uvloop
from locktender import LockLostError
from support.observe import until
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
        thread.join(30)
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
        waiting = loop.create_task(client.lock(name, ttl=60).acquire_async())
        loop.run_until_complete(asyncio.sleep(0.05))
        assert not waiting.done()
        waiting._log_destroy_pending = False  # what asyncio itself says about such a task
        gone = weakref.ref(waiting)
        loop.close()
        del waiting, loop
        gc.collect()
        assert gone() is None, "nothing keeps the task alive, and it has given its attempt up"
    with client.lock(name, wait=0) as next_one:
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


class NoReaders(asyncio.SelectorEventLoop):
    """As the default loop of Windows."""

    def add_reader(self, fd, callback, *args):
        if "locktender" in type(callback).__module__:
            raise NotImplementedError
        return super().add_reader(fd, callback, *args)


def test_a_loop_that_cannot_watch_descriptors(client, name):
    loop = NoReaders()

    async def main():
        for _ in range(5):
            async with client.lock(name) as held:
                assert held.is_valid()
        await asyncio.gather(*(client.lock(f"{name}{at}").inspect_async() for at in range(20)))

    loop.run_until_complete(main())
    loop.close()


def test_debug_mode(client, name):
    async def main():
        async with client.lock(name) as held:
            assert held.is_valid()

    asyncio.run(main(), debug=True)


def on_uvloop(main):
    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        loop.close()


def test_uvloop(each_client, name):
    lock = each_client.lock(name)
    inside = []

    async def work():
        for _ in range(10):
            async with lock:
                inside.append(1)
                assert len(inside) == 1
                await asyncio.sleep(0)
                inside.pop()

    async def main():
        await asyncio.gather(*(work() for _ in range(8)))

    for _ in range(3):
        on_uvloop(main())


def test_a_loss_cancels_the_body_on_uvloop(client, server: RealServer, name):
    async def main():
        with pytest.raises(LockLostError):
            async with client.lock(name, ttl=0.6):
                server.command("DEL", name)
                await asyncio.sleep(30)

    on_uvloop(main())


def test_cancelled_on_uvloop(client, server: RealServer, name):
    async def main():
        async with client.lock(name, ttl=60):
            task = asyncio.ensure_future(client.lock(name, ttl=60).acquire_async())
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    on_uvloop(main())
    until(lambda: server.command("EXISTS", name) == 0, within=1)


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


def test_a_loss_is_told_to_trio(client, server: RealServer, name):
    async def main():
        held = await trio.to_thread.run_sync(client.lock(name, ttl=0.6).acquire)
        server.command("DEL", name)
        loss = await trio.to_thread.run_sync(held.wait_lost, 5)
        assert loss.reason == "missing"

    trio.run(main)


def test_tasks_of_anyio_on_asyncio(each_client, name):
    lock = each_client.lock(name)
    fences = []

    async def work():
        async with lock as held:
            fences.append(held.fence)

    async def main():
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(work)

    anyio.run(main)
    assert fences == sorted(fences)
