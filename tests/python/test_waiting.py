"""Waiting: the values that a waiter sees. A waiter that gives up leaves nothing in the queue."""

import asyncio
import pickle
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from locktender import AcquireTimeoutError, Client, ClosedError, InvalidArgumentError, lock
from support.observe import LOAD, PATIENCE, until
from support.script import start
from support.server import RealServer


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as threads:
        yield threads


def test_a_timeout_tells_the_rank_and_pickles(each_client, name):
    held = each_client.lock(name).acquire()
    with pytest.raises(AcquireTimeoutError) as caught:
        each_client.lock(name, wait=0.2).acquire()
    held.release()
    assert (caught.value.rank, pickle.loads(pickle.dumps(caught.value)).rank) == (0, 0)
    assert AcquireTimeoutError("text").rank is None


def test_an_inspection_shows_the_line(each_client, threads, name):
    held = each_client.lock(name).acquire()
    assert (each_client.lock(name).inspect().waiters, each_client.lock(name).inspect().queue) == (0, [])
    waiter = threads.submit(each_client.lock(name, fair=True).acquire)
    info = until(lambda: (info := each_client.lock(name).inspect()).waiters and info)
    [entry] = info.queue
    assert entry.startswith("f:") and " pid=" in entry and repr(info).endswith(f"waiters=1, queue=[{entry!r}])")
    held.release()
    waiter.result(PATIENCE).release()


def test_events_tell_the_rank_and_how_long_a_hand_over_took(server: RealServer, client, threads, name):
    seen = []
    with Client(server.url, on_event=seen.append) as rival:
        for _ in range(2):  # the second time its subscription stands for sure
            held = client.lock(name).acquire()
            visit = threads.submit(lambda: rival.lock(name).acquire().release())
            until(lambda: server.line(name))
            held.release()
            visit.result(PATIENCE)
        until(lambda: any(event.notified_ago is not None for event in list(seen)))
    queued = next(event for event in seen if event.kind == "queued")
    assert (queued.lock_name, queued.rank, queued.took) == (name, 0, None) and "rank=0" in repr(queued)
    handed = next(event for event in seen if event.notified_ago is not None)
    assert handed.rank is None and 0 <= handed.notified_ago <= handed.took and handed.fence and "notified" in [event.kind for event in seen]


@pytest.mark.parametrize("value", [0, 1, "yes", "", [], object()], ids=["0", "1", "yes", "empty", "list", "object"])
def test_fair_is_a_yes_or_a_no(value):
    client = Client("memory://fair")
    for refusing in (client.lock, lock):
        with pytest.raises(InvalidArgumentError, match="^fair: "):
            refusing("a", fair=value)
    with pytest.raises(InvalidArgumentError, match="^fair: "):
        Client("memory://fair", fair=value)


def adopt(client: Client, name: str, **options: object) -> None:
    """Adopts a lock that somebody else adopted meanwhile."""
    client.adopt(f"locktender=1 key={name} name={name} ttl=10000 owner=somebody", or_acquire=True, **options)


FAIR = {
    "lock": lambda client, name: client.lock(name, fair=True).acquire(),
    "client": lambda client, name: client.lock(name, fair=None).acquire(),
    "decorator": lambda client, name: client.lock(name, fair=True)(print)(),
    "adopt": lambda client, name: adopt(client, name, fair=True),
}


@pytest.mark.parametrize("mode", FAIR)
def test_fair_is_an_option_wherever_options_are(server: RealServer, client, threads, name, mode):
    with client.lock(name), Client(server.url, fair=mode == "client") as waiting:
        waiter = threads.submit(FAIR[mode], waiting, name)
        [entry] = until(lambda: server.line(name))
        assert entry.startswith("f:")
        waiting.close()
        with pytest.raises(ClosedError):
            waiter.result(PATIENCE)
        until(lambda: not server.line(name))


@pytest.mark.parametrize("fair", [False, True])
def test_f13_a_cancelled_wait_leaves_the_line_at_once(server: RealServer, client, name, fair):
    chance = random.Random(13)

    async def main():
        async with Client(server.url, fair=fair) as waiting:
            for _ in range(40):
                tasks = [asyncio.create_task(waiting.lock(name).acquire_async()) for _ in range(3)]
                await asyncio.sleep(chance.uniform(0, 0.01))
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                assert all(isinstance(end, asyncio.CancelledError) for end in ended)
            # Still open: it is the cancellation that takes them out, not the end of the client.
            until(lambda: not server.line(name), within=2)

    with client.lock(name, ttl=600):
        asyncio.run(main())


def test_f13_a_wait_cancelled_while_the_lock_is_handed_over_passes_it_on(server: RealServer, client, threads, name):
    chance = random.Random(31)
    took = []

    async def main():
        async with Client(server.url, fair=True) as waiting:
            for _ in range(25):
                held = await client.lock(name, ttl=600).acquire_async()
                quitter = asyncio.create_task(waiting.lock(name, ttl=600).acquire_async())
                await asyncio.to_thread(until, lambda: server.line(name))
                heir = threads.submit(lambda: client.lock(name, ttl=600, fair=True).acquire().release())
                await asyncio.to_thread(until, lambda: len(server.line(name)) == 2)
                release = asyncio.create_task(held.release())
                await asyncio.sleep(chance.uniform(0, 0.003))
                quitter.cancel()
                try:
                    await (await quitter).release()
                except asyncio.CancelledError:
                    pass
                await release
                began = time.monotonic()
                await asyncio.wrap_future(heir)
                took.append(time.monotonic() - began)

    asyncio.run(main())
    # A claim window of whoever left, at most: not a look, and not a ttl.
    assert max(took) < 0.2 + LOAD, took
    until(lambda: not server.line(name) and not server.command("EXISTS", name), within=2)


@pytest.mark.parametrize("fair", [False, True])
def test_f34_ctrl_c_in_a_wait_leaves_the_line(server: RealServer, client, name, fair):
    program = """
        import sys
        from locktender import Client
        client = Client(sys.argv[1], fair=sys.argv[3] == "True")
        try:
            client.lock(sys.argv[2], ttl=600).acquire()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        input()
    """
    with client.lock(name, ttl=600):
        process = start(program, server.url, name, fair)
        assert process.stdout is not None
        until(lambda: server.line(name))
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        until(lambda: not server.line(name), within=2)
        assert process.communicate("\n", timeout=PATIENCE) == ("", "")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["sigterm", "sigkill"])
def test_f20_f28_a_killed_waiter_delays_the_next_one_by_a_claim_at_most(server: RealServer, client, threads, name, end):
    program = """
        import sys
        from locktender import Client
        Client(sys.argv[1]).lock(sys.argv[2], ttl=600, fair=True).acquire()
    """
    held = client.lock(name, ttl=600).acquire()
    process = start(program, server.url, name)
    until(lambda: server.line(name))
    waiter = threads.submit(lambda: client.lock(name, ttl=600, fair=True).acquire().release())
    until(lambda: len(server.line(name)) == 2)
    process.send_signal(end)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -end
    began = time.monotonic()
    held.release()
    waiter.result(PATIENCE)
    assert time.monotonic() - began < 0.2 + LOAD
    until(lambda: not server.command("EXISTS", name, f"{{{name}}}:~lt:queue"))
