"""The scripted server for users' own tests."""

import asyncio

import pytest
from locktender import AcquireTimeoutError, Client, DeniedError, InvalidArgumentError, LockLostError
from locktender.testing import ScriptedServer, Seen
from support.page import Page
from support.script import run


def test_it_answers_as_its_script_says_and_then_behaves():
    server = ScriptedServer("""
        acquire: busy owner=somebody ttl=500
        acquire: fail denied
    """)
    client = Client(server)
    assert server.unplayed == 2
    assert client.lock("orders").try_acquire() is None
    with pytest.raises(DeniedError):
        client.lock("orders").try_acquire()
    with client.lock("orders") as held:
        assert held.is_valid()
    assert server.unplayed == 0
    assert [seen.op for seen in server.seen] == ["acquire", "acquire", "acquire", "release"]
    assert server.seen[-1].lock == "orders" and server.seen[-1].owner == held.owner
    assert isinstance(server.seen[0], Seen) and repr(server.seen[0]).startswith("Seen(op='acquire', lock='orders'")


def test_a_loss_is_scripted():
    server = ScriptedServer("always extend: gone")

    @Client(server).lock("orders", ttl=0.3)
    async def work():
        await asyncio.sleep(30)

    with pytest.raises(LockLostError):
        asyncio.run(work())


def test_several_of_them_are_a_quorum():
    servers = [ScriptedServer("always acquire: busy owner=x ttl=500", name=f"s{at}") for at in range(3)]
    with pytest.raises(AcquireTimeoutError):
        Client(servers).lock("orders", wait=0).acquire()
    assert all(server.seen for server in servers)


def test_steps_can_be_added():
    server = ScriptedServer(name="later", response_timeout=0.1)
    server.play("acquire: silence")
    assert "later" in repr(server)
    with Client(server, unavailable_after=5).lock("orders", wait=5) as held:
        assert held.is_valid()


def test_a_script_that_makes_no_sense_is_refused():
    for script in ("nonsense", "acquire: explode", "dance: busy", 7):
        with pytest.raises(InvalidArgumentError):
            ScriptedServer(script)


def test_the_page_on_testing_shows_python_that_runs():
    blocks = [block.text for block in Page("docs/testing.md").blocks() if block.language == "python"]
    assert len(blocks) == 3
    # The clock is the whole process's. It can't be moved while a lock of another test is held on a real server.
    for block in blocks:
        assert run(block) == ""
