"""The same under asyncio: coroutines, cancelled tasks, loops that come and go."""

import asyncio
import gc
import inspect
import pickle
import random
import sys
import threading
import time
import weakref

import pytest
from locktender import (
    AcquireTimeoutError,
    AsyncHeld,
    Client,
    ClosedError,
    InvalidArgumentError,
    LockLostError,
    NotHeldError,
)
from support.observe import until
from support.server import RealServer


def test_everything_is_a_coroutine(each_client, name):
    lock = each_client.lock(name)

    async def main():
        held = await asyncio.create_task(lock.acquire_async())
        assert isinstance(held, AsyncHeld) and held.name == name and held.is_valid() and held.fence > 0
        assert await lock.try_acquire_async() is None
        info = await lock.inspect_async()
        assert info.owner == held.owner
        await held.extend(20)
        await held.extend(by=1)
        assert 20 < held.remaining() <= 21
        held.check()
        assert await held.wait_lost(0.01) is None
        assert (await asyncio.wait_for(held.release(), 5)).outcome == "released"
        with pytest.raises(NotHeldError):
            await held.release()
        ticket = await (await lock.acquire_async()).hand_over()
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
    with pytest.raises(RuntimeError, match="no running event loop"):
        operation.send(None)
    with pytest.raises(RuntimeError, match="already awaited"):
        operation.send(None)


def test_errors_come_out_of_await(each_client, name):
    async def main():
        async with each_client.lock(name):
            with pytest.raises(AcquireTimeoutError):
                await each_client.lock(name, wait=0.05).acquire_async()
        with pytest.raises(InvalidArgumentError):
            await each_client.lock("").acquire_async()
        held = await each_client.lock(name).acquire_async()
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


def test_tasks_exclude_each_other(each_client, name):
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

    asyncio.run(main())


def test_a_loss_cancels_the_body(client, server: RealServer, name):
    async def main():
        task = asyncio.current_task()
        with pytest.raises(LockLostError) as caught:
            async with client.lock(name, ttl=0.6):
                server.command("DEL", name)
                await asyncio.sleep(30)
        assert caught.value.reason == "missing"
        if sys.version_info >= (3, 11):
            assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0.01)  # no cancellation is left over

    asyncio.run(main())


def test_a_loss_only_flags_if_told_so(client, server: RealServer, name):
    async def main():
        with pytest.raises(LockLostError):
            async with client.lock(name, ttl=0.6, on_lost="flag") as held:
                server.command("DEL", name)
                loss = await held.wait_lost(5)
                assert loss is not None and loss.reason == "missing" and not held.is_valid()
                ended = True
        assert ended

    asyncio.run(main())


def test_a_cancellation_from_elsewhere_passes_through(client, server: RealServer, name):
    async def body(entered):
        async with client.lock(name):
            entered.set()
            await asyncio.sleep(30)

    async def main():
        entered = asyncio.Event()
        task = asyncio.create_task(body(entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert server.command("EXISTS", name) == 0

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before 3.11 a task can't tell who cancelled it")
def test_a_cancellation_from_elsewhere_wins_over_the_loss(client, server: RealServer, name):
    async def main():
        async def body():
            async with client.lock(name, ttl=0.6) as held:
                entered.set_result(held)
                try:
                    await asyncio.sleep(30)
                finally:
                    task.cancel()  # while the loss is on its way out

        entered = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(body())
        held = await entered
        server.command("DEL", name)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not held.is_valid()

    asyncio.run(main())


def test_a_body_that_ends_as_its_lock_is_lost(client, server: RealServer, name):
    """The cancellation was asked for, and the body never awaits again."""

    async def main():
        with pytest.raises(LockLostError):
            async with client.lock(name, ttl=0.6) as held:
                server.command("DEL", name)
                lost = asyncio.ensure_future(held.wait_lost())
                try:
                    await lost
                except asyncio.CancelledError:
                    pass
        if sys.version_info >= (3, 11):
            assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize("released", [False, True])
def test_a_body_that_swallows_the_cancellation(client, server: RealServer, name, released):
    async def body():
        async with client.lock(name, ttl=0.6) as held:
            server.command("DEL", name)
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                if released:
                    assert (await held.release()).outcome == "expired"

    if released:
        asyncio.run(body())  # leaving a body after a release does nothing
    else:
        with pytest.raises(LockLostError):
            asyncio.run(body())


def test_a_loss_is_raised_also_if_the_body_releases_on_its_way_out(client, server: RealServer, name):
    async def main():
        with pytest.raises(LockLostError):
            async with client.lock(name, ttl=0.6) as held:
                server.command("DEL", name)
                try:
                    await asyncio.sleep(30)
                finally:
                    await held.release()

    asyncio.run(main())


def test_the_error_of_a_body_wins(client, server: RealServer, name):
    async def main():
        with pytest.raises(ZeroDivisionError) as caught:
            async with client.lock(name, ttl=0.6):
                server.command("DEL", name)
                try:
                    await asyncio.sleep(30)
                finally:
                    1 / 0  # noqa: B018
        assert isinstance(caught.value.lock_error, LockLostError)

    asyncio.run(main())


def test_leaving_a_body_after_a_release_does_nothing(each_client, name):
    async def main():
        async with each_client.lock(name) as held:
            await held.release()
        assert await each_client.lock(name).inspect_async() is None

    asyncio.run(main())


def test_f24_cancelled_inside_release(servers, proxies, name):
    server = servers()
    proxy = proxies(server)

    async def main():
        async with Client(proxy.url) as client:
            held = await client.lock(name).acquire_async()
            proxy.latency(0.1, 0.1)
            task = asyncio.create_task(held.release())
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            until(lambda: server.command("EXISTS", name) == 0, within=1)

    asyncio.run(main())


def test_f13_cancelled_at_any_point_leaves_no_key_and_a_usable_client(server: RealServer, proxy, name):
    chance = random.Random(13)
    proxy.latency(0.002, 0.002)

    async def main():
        async with Client(proxy.url) as client:
            lock = client.lock(name, ttl=60)
            for _ in range(150):
                task = asyncio.create_task(lock.acquire_async())
                await asyncio.sleep(chance.uniform(0, 0.012))
                task.cancel()
                try:
                    held = await task
                except asyncio.CancelledError:
                    continue
                await held.release()
            until(lambda: server.command("EXISTS", name) == 0, within=1)
            async with client.lock(name, wait=1):
                pass

    asyncio.run(main())


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_f13_cancelled_in_the_moment_of_the_grant(server: RealServer, client, name, steps):
    async def main():
        task = asyncio.create_task(client.lock(name, ttl=60).acquire_async())
        await asyncio.sleep(0)
        until(lambda: server.command("EXISTS", name) == 1)  # the loop stands still: the grant waits in its queue
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await (await task).release()
        except asyncio.CancelledError:
            pass
        until(lambda: server.command("EXISTS", name) == 0, within=1)

    for _ in range(20):
        asyncio.run(main())


def test_f13_waiters_cancelled_at_any_point_leave_no_key(server: RealServer, client, name):
    chance = random.Random(31)
    lock = client.lock(name, ttl=60)

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
        until(lambda: server.command("EXISTS", name) == 0, within=1)

    asyncio.run(main())


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


def test_a_blocking_acquire_that_stops_a_loop_warns(client, name):
    async def main():
        held = await client.lock(name).acquire_async()
        with pytest.warns(RuntimeWarning, match="async with"), pytest.raises(AcquireTimeoutError):
            client.lock(name, wait=0.2).acquire()
        await held.release()
        client.lock(name).acquire().release()  # free: no warning

    asyncio.run(main())


def test_asyncio_is_imported_only_when_used():
    from support.script import run

    program = """
        import sys
        from locktender import Client
        with Client("memory://quick") as client, client.lock("a") as held:
            pass
        print(sorted({"asyncio", "logging", "threading", "typing", "inspect"} & set(sys.modules)))
    """
    assert run(program) == "[]\n"


def test_a_waiting_task_does_not_stop_the_loop(client, name):
    async def main():
        async with client.lock(name):
            waiter = asyncio.create_task(client.lock(name, wait=0.3).acquire_async())
            longest, before = 0.0, time.monotonic()
            while not waiter.done():
                await asyncio.sleep(0)
                now = time.monotonic()
                longest, before = max(longest, now - before), now
            assert longest < 0.1
            with pytest.raises(AcquireTimeoutError):
                await waiter

    asyncio.run(main())
