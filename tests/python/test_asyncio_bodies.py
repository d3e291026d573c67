"""The body of an `async with`: a loss, a cancellation and an error, and their combinations."""

import asyncio
import gc
import sys
import weakref

import pytest
from locktender import LockLostError
from support.observe import PATIENCE, until
from support.server import RealServer

# Long enough that a renewal finds the key gone before the hold's validity ends, where the reason of the loss is looked at.
TTL = 2.5


def test_a_loss_cancels_the_body(client, server: RealServer, name, on_each_loop):
    async def main():
        task = asyncio.current_task()
        with pytest.raises(LockLostError) as caught:
            async with client.lock(name, ttl=TTL):
                server.command("DEL", name)
                await asyncio.sleep(PATIENCE)
        assert caught.value.reason == "missing"
        if sys.version_info >= (3, 11):
            assert task is not None and task.cancelling() == 0
        await asyncio.sleep(0.01)  # no cancellation is left over

    on_each_loop(main)


def test_a_loss_only_flags_if_asked_to(client, server: RealServer, name):
    async def main():
        with pytest.raises(LockLostError):
            async with client.lock(name, ttl=TTL, on_lost="continue") as held:
                server.command("DEL", name)
                loss = await held.wait_lost(PATIENCE)
                assert loss is not None and loss.reason == "missing" and not held.is_valid()
                ended = True
        assert ended

    asyncio.run(main())


def test_a_cancellation_from_elsewhere_passes_through(client, server: RealServer, name):
    async def body(entered):
        async with client.lock(name):
            entered.set()
            await asyncio.sleep(PATIENCE)

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
                    await asyncio.sleep(PATIENCE)
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
                await asyncio.sleep(PATIENCE)
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
                    await asyncio.sleep(PATIENCE)
                finally:
                    await held.release()

    asyncio.run(main())


def test_the_error_of_a_body_wins(client, server: RealServer, name):
    async def main():
        with pytest.raises(ZeroDivisionError) as caught:
            async with client.lock(name, ttl=0.6):
                server.command("DEL", name)
                try:
                    await asyncio.sleep(PATIENCE)
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


@pytest.mark.parametrize("by", ["lock", "hold"])
def test_f24_a_body_whose_loop_is_gone_gives_its_lock_back(client, name, by, capfd):
    async def body():
        async with client.lock(name, ttl=600) if by == "lock" else await client.lock(name, ttl=600).acquire_async():
            entered.set()
            await asyncio.sleep(600)

    async def enter():
        task = asyncio.create_task(body())
        await entered.wait()
        return task

    loop, entered = asyncio.new_event_loop(), asyncio.Event()
    task = loop.run_until_complete(enter())
    task._log_destroy_pending = False  # what asyncio itself says about such a task
    loop.close()
    del task, loop
    gc.collect()
    until(lambda: client.lock(name).inspect() is None)
    assert capfd.readouterr() == ("", "")


def test_a_generator_that_is_left_in_its_body_keeps_no_task(client, name):
    async def rows():
        async with client.lock(name, ttl=600):
            yield 1

    async def work():
        async for _ in rows():
            break

    async def main():
        task = asyncio.create_task(work())
        await task
        gone = weakref.ref(task)
        del task
        await asyncio.sleep(0)  # asyncio closes the generator in a task of its own
        while client.holds():
            await asyncio.sleep(0.01)
        gc.collect()
        assert gone() is None

    asyncio.run(main())


def test_f24_a_coroutine_that_is_closed_in_its_body_gives_its_lock_back(client, name):
    async def body():
        async with client.lock(name, ttl=600):
            await Suspended()

    class Suspended:
        def __await__(self):
            yield "inside"

    async def main():
        coroutine = body()
        while (awaited := coroutine.send(None)) != "inside":
            await until_done(awaited)
        coroutine.close()
        async with client.lock(name, wait=PATIENCE):
            pass

    async def until_done(future):
        future._asyncio_future_blocking = False
        await asyncio.wait([future])

    asyncio.run(main())
