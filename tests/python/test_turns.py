"""A loop's share of the I/O: it sends and reads by itself, and the core's thread does the rest."""

import asyncio
import gc
import os
import threading
import time
from pathlib import Path

import pytest
from locktender import Client
from support.observe import PATIENCE, until
from support.server import RealServer

TASKS = Path("/proc/self/task")


def wake_ups(thread: str) -> int:
    """How often the threads of that name have slept."""
    counted = 0
    for task in TASKS.iterdir():
        if (task / "comm").read_text() == thread + "\n":
            lines = (task / "status").read_text().splitlines()
            counted += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return counted


@pytest.mark.skipif(not TASKS.exists(), reason="only Linux tells how often a thread slept")
def test_an_operation_needs_no_other_thread(client, name):
    async def main():
        lock = client.lock(name)
        async with lock:
            pass
        before, began = wake_ups("locktender-io"), time.monotonic()
        for _ in range(300):
            async with lock:
                pass
        # It looks in now and then, however long this takes.
        assert wake_ups("locktender-io") - before < 60 + 60 * (time.monotonic() - began)

    asyncio.run(main())


def test_the_requests_of_many_tasks_leave_together(server: RealServer, client, name):
    async def main():
        locks = [client.lock(f"{name}:{at}") for at in range(100)]
        for _ in range(3):
            holds = await asyncio.gather(*(lock.acquire_async() for lock in locks))
            assert len({hold.owner for hold in holds}) == 100
            released = await asyncio.gather(*(hold.release() for hold in holds))
            assert {release.outcome for release in released} == {"released"}

    asyncio.run(main())


def test_a_blocked_loop_does_not_keep_answers_from_being_read(servers, name):
    """The first release finds no script on the server: somebody has to read that, and send it as text."""
    server = servers()

    async def main():
        async with Client(server.url, response_timeout=PATIENCE) as client:
            held = await client.lock(name, ttl=600).acquire_async()
            releasing = asyncio.ensure_future(held.release())
            await asyncio.sleep(0)
            until(lambda: server.command("EXISTS", name) == 0, 0.8)  # the loop stands still
            assert (await releasing).outcome == "released"

    asyncio.run(main())


def test_threads_and_loops_share_a_client(client, name):
    stop = threading.Event()
    done = {"threads": 0, "tasks": 0}

    def block():
        while not stop.is_set():
            with client.lock(f"{name}:{threading.get_ident()}"):
                done["threads"] += 1

    async def main(number):
        async def work(at):
            for _ in range(100):
                async with client.lock(f"{name}:{number}:{at}", wait=PATIENCE):
                    done["tasks"] += 1

        await asyncio.gather(*(work(at) for at in range(4)))

    threads = [threading.Thread(target=block) for _ in range(2)]
    loops = [threading.Thread(target=lambda number=number: asyncio.run(main(number))) for number in range(2)]
    for thread in threads + loops:
        thread.start()
    for thread in loops:
        thread.join(PATIENCE)
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert done["tasks"] == 800 and done["threads"] > 0


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not TASKS.exists(), reason="only Linux lists a process's descriptors")
def test_clients_that_come_and_go_on_one_loop_leave_no_descriptors(server: RealServer, name):
    async def once():
        async with Client(server.url) as client, client.lock(name):
            pass

    async def main():
        for _ in range(3):
            await once()
        gc.collect()
        before = descriptors()
        for _ in range(30):
            await once()
        gc.collect()
        # The last client's are let go when the next comes; a connection that was closed may take a moment.
        until(lambda: descriptors() <= before + 6)

    asyncio.run(main())


def test_a_server_that_comes_back(servers, name):
    server = servers()

    async def main():
        async with Client(server.url, unavailable_after=PATIENCE) as client:
            async with client.lock(name):
                pass
            server.restart()
            async with client.lock(name) as held:
                held.check()

    asyncio.run(main())
