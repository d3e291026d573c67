"""Lists of what is held: they ask a server part by part, whatever it has, and cost nobody but who asks."""

import asyncio
import os
import re
import signal
import threading
from collections.abc import Iterator

import pytest
from locktender import Client, LockInfo
from support.observe import PATIENCE
from support.server import RealServer

# So many keys a server looks at for one part of a scan.
PART = 1_000


@pytest.fixture
def own_server() -> Iterator[RealServer]:
    with RealServer() as server:
        yield server


def fill(server: RealServer, foreign: int, held: int) -> None:
    script = """for i = 1, tonumber(ARGV[1]) do
        redis.call('SET', 'orders:session:' .. i, 'a session', 'PX', 90000000)
    end
    for i = 1, tonumber(ARGV[2]) do
        local id = string.format('0193d1d2-3c4d-7e5f-8a6b-%012d', i)
        redis.call('SET', 'orders:' .. i, 'host=web-3 pid=1 at=2026-11-21T02:22:10.123Z id=' .. id .. ' fence=' .. i, 'PX', 600000)
    end"""
    server.command("EVAL", script, 0, foreign, held)


def calls(server: RealServer) -> dict[str, int]:
    """How often each command was called."""
    statistics = server.command("INFO", "commandstats")
    return {name: int(count) for name, count in re.findall(r"cmdstat_(\w+):calls=(\d+)", statistics)}


@pytest.mark.parametrize(
    ("foreign", "held"),
    [(5 * PART, 3), (2 * PART, 2 * PART), pytest.param(100_000, 100_000, marks=pytest.mark.long)],
)
def test_a_long_list_is_asked_for_part_by_part(own_server: RealServer, foreign: int, held: int):
    fill(own_server, foreign, held)
    with Client(own_server.url) as client:
        before = calls(own_server)
        locks = client.locks("orders:*")
        after = calls(own_server)
    assert sorted(lock.fence for lock in locks) == list(range(1, held + 1))
    made = {name: count - before.get(name, 0) for name, count in after.items()}
    # A part has about so many keys, and no command looks at all of them.
    assert made["scan"] >= (foreign + held) // PART and "keys" not in made
    # Of a value of another library only the first bytes are read.
    assert made["getrange"] == foreign + 2 * held
    # Only what is held is looked at one by one. (The server doesn't know the script at first, and gets it once more by EVAL.)
    assert made["evalsha"] == held


def test_a_limit_ends_the_scan(own_server: RealServer):
    fill(own_server, 5 * PART, 5 * PART)
    with Client(own_server.url) as client:
        before = calls(own_server).get("scan", 0)
        assert len(client.locks(limit=10)) == 10
        assert calls(own_server)["scan"] - before == 1


def test_a_list_under_asyncio_is_that_of_a_thread_and_can_be_given_up(own_server: RealServer):
    async def listed(client: Client) -> list[LockInfo]:
        return await client.locks_async("orders:*", limit=5)

    fill(own_server, 5, 5)
    with Client(own_server.url, response_timeout=PATIENCE) as client:
        assert [lock.name for lock in asyncio.run(listed(client))] == [f"orders:{number}" for number in range(1, 6)]
        own_server.pause()
        try:
            with pytest.raises(asyncio.TimeoutError):
                asyncio.run(asyncio.wait_for(listed(client), 0.05))
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                client.locks()
        finally:
            own_server.resume()
        assert len(client.locks()) == 5


def test_a_forked_child_holds_nothing(own_server: RealServer):
    with Client(own_server.url) as client, client.lock("a"):
        assert [hold.name for hold in client.holds()] == ["a"]
        child = os.fork()
        if child == 0:
            os._exit(len(client.holds()))
        assert os.waitpid(child, 0)[1] == 0
        assert len(client.holds()) == 1
