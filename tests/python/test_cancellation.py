"""Tasks cancelled at any point: no key is left, and the client stays usable."""

import asyncio
import random
import time

import anyio
import pytest
from locktender import Client
from support.observe import PROMPTLY, until
from support.server import RealServer


def test_f24_cancelled_inside_release(server: RealServer, proxy, name):
    async def main():
        async with Client(proxy.url) as client:
            held = await client.lock(name, ttl=600).acquire_async()
            proxy.black_hole()
            before = proxy.client_bytes()
            task = asyncio.create_task(held.release())
            await asyncio.to_thread(until, lambda: proxy.client_bytes() > before)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            proxy.restore()
            await asyncio.to_thread(until, lambda: server.command("EXISTS", name) == 0, PROMPTLY)

    asyncio.run(main())


def test_f13_cancelled_at_any_point_leaves_no_key_and_a_usable_client(server: RealServer, proxy, name):
    chance = random.Random(13)
    proxy.latency(0.002, 0.002)

    async def main():
        async with Client(proxy.url) as client:
            lock = client.lock(name, ttl=600)
            for _ in range(150):
                task = asyncio.create_task(lock.acquire_async())
                await asyncio.sleep(chance.uniform(0, 0.012))
                task.cancel()
                try:
                    held = await task
                except asyncio.CancelledError:
                    continue
                await held.release()
            until(lambda: server.command("EXISTS", name) == 0, PROMPTLY)
            async with client.lock(name, wait=10):
                pass

    asyncio.run(main())


def test_f13_a_cancelled_wait_leaves_no_key(server: RealServer, client, name, on_each_loop):
    async def main():
        async with client.lock(name, ttl=600):
            task = asyncio.create_task(client.lock(name, ttl=600).acquire_async())
            await asyncio.to_thread(until, lambda: server.line(name))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(until, lambda: not server.line(name), 2)

    on_each_loop(main)
    assert server.command("EXISTS", name) == 0


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_f13_cancelled_in_the_moment_of_the_grant(server: RealServer, client, name, steps):
    async def main():
        task = asyncio.create_task(client.lock(name, ttl=600).acquire_async())
        await asyncio.sleep(0)
        until(lambda: server.command("EXISTS", name) == 1)  # the loop stands still: the grant waits in its queue
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await (await task).release()
        except asyncio.CancelledError:
            pass
        until(lambda: server.command("EXISTS", name) == 0, PROMPTLY)

    for _ in range(20):
        asyncio.run(main())


def test_f13_waiters_cancelled_at_any_point_leave_no_key(server: RealServer, client, name):
    chance = random.Random(31)
    lock = client.lock(name, ttl=600)

    async def body():
        async with lock:
            await asyncio.sleep(0.001)

    async def wait_a_little():
        try:
            await asyncio.wait_for(body(), chance.uniform(0, 0.02))
        except asyncio.TimeoutError:
            pass

    async def main():
        for _ in range(10):
            await asyncio.gather(*(wait_a_little() for _ in range(20)))
        until(lambda: server.command("EXISTS", name) == 0, PROMPTLY)

    asyncio.run(main())


@pytest.mark.parametrize("inside", [False, True])
def test_a_cancel_scope_that_cancels_again_and_again(server: RealServer, client, name, inside):
    """anyio repeats a cancellation at every await until its scope is left: also in the release."""

    async def main():
        rival = Client(server.url)
        with anyio.CancelScope() as scope:
            async with client.lock(name, ttl=600):
                scope.deadline = anyio.current_time() + 0.05
                if inside:
                    await anyio.sleep_forever()
                else:
                    await rival.lock(name, ttl=600).acquire_async()
        assert scope.cancelled_caught
        await rival.close_async()
        until(lambda: server.command("EXISTS", name) == 0, PROMPTLY)
        async with client.lock(name, wait=0) as held:
            held.check()

    anyio.run(main)


def test_an_acquire_that_is_cancelled_as_it_is_granted_keeps_no_lock_for_min_hold(server: RealServer, name):
    """Nobody has worked under it. Of 2,000 some are granted in the very turn of the loop in which their task is cancelled."""
    chance = random.Random(42)

    async def cancelled(client: Client, number: int) -> bool:
        task = asyncio.ensure_future(client.lock(f"{name}:{number}", min_hold=600, ttl=600).acquire_async())
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        end = time.perf_counter() + chance.random() * 0.0007
        while time.perf_counter() < end:
            await asyncio.sleep(0)
        task.cancel()
        try:
            await (await task).release()
        except asyncio.CancelledError:
            return True
        return False

    async def main():
        async with Client(server.url) as client:
            names = [f"{name}:{number}" for number in range(2_000) if await cancelled(client, number)]
            assert names
            await asyncio.to_thread(until, lambda: server.command("EXISTS", *names) == 0, PROMPTLY)

    asyncio.run(main())
