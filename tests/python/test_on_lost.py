"""`on_lost`: a callable that gets a loss at once, also if nothing can be cancelled."""

import asyncio
import functools
import gc
import logging
import threading
import weakref

import pytest
from locktender import Client, InvalidArgumentError, LockLostError
from locktender.testing import ScriptedServer
from support.observe import PATIENCE, until
from support.script import run
from support.server import RealServer


class Stop(threading.Event):
    """Keeps what it is called with."""

    def __init__(self):
        super().__init__()
        self.lost = []

    def __call__(self, lost):
        self.lost.append((lost, threading.current_thread().name))
        self.set()


def test_a_blocking_body_hears_of_the_loss_before_its_end(client, server: RealServer, name):
    stop = Stop()
    with pytest.raises(LockLostError) as caught, client.lock(name, ttl=2.5, on_lost=stop) as held:
        server.command("DEL", name)
        assert stop.wait(PATIENCE) and not held.is_valid()
    [(lost, thread)] = stop.lost
    assert (lost.lock_name, lost.reason, lost.code) == (name, caught.value.reason, "LOCK_LOST") == (name, "missing", "LOCK_LOST")
    assert thread == "locktender-events"


def test_every_way_to_hold_takes_it(server: RealServer, name):
    stop = Stop()
    with Client(server.url, on_lost=stop, ttl=0.3) as client:
        lock = client.lock(name)
        ticket = client.lock(name + ":b").acquire().hand_over()
        holds = [lock.acquire(), client.adopt(ticket), client.lock(name + ":c").try_acquire()]
        for held in holds:
            server.command("DEL", held.name)
        until(lambda: {lost.lock_name for lost, _ in stop.lost} == {held.name for held in holds}, PATIENCE)


@pytest.mark.parametrize("of", ["lock", "client", "attempt", "leadership"])
def test_a_body_under_asyncio_is_notified_and_cancelled(name, of):
    stop = Stop()

    async def main():
        server = ScriptedServer("always extend: gone")
        with Client(server, ttl=2.5, on_lost=stop if of == "client" else None) as client:
            if of == "attempt":
                held = await client.job(name, on_lost=stop).begin_async()
            elif of == "leadership":
                held = await client.election(name, on_lost=stop).campaign_async()
            else:
                held = client.lock(name, on_lost=stop if of == "lock" else None)
            with pytest.raises(LockLostError):
                async with held:
                    await asyncio.sleep(PATIENCE)
                    raise AssertionError("the loss ends it")
            assert await asyncio.to_thread(stop.wait, PATIENCE)
            assert [lost.reason for lost, _ in stop.lost] == ["missing"]

    asyncio.run(main())


def test_only_flag_turns_the_cancellation_off(name):
    async def main():
        with Client(ScriptedServer("always extend: gone"), ttl=2.5, on_lost=Stop()) as client:
            with pytest.raises(LockLostError):
                async with client.lock(name, on_lost="continue") as held:
                    assert await held.wait_lost(PATIENCE)
                    await asyncio.sleep(0)
                    ended = True
        assert ended

    asyncio.run(main())


def test_what_it_raises_is_logged_and_nothing_else(client, server: RealServer, name, caplog, capfd):
    after = Stop()

    def failing(lost):
        raise SystemExit("of the callable")

    with caplog.at_level(logging.ERROR, "locktender"):
        for on_lost in (failing, after):
            held = client.lock(name, ttl=0.3, on_lost=on_lost).acquire()
            server.command("DEL", name)
            assert held.wait_lost(PATIENCE)
        assert after.wait(PATIENCE)
    assert [record.exc_info[0] for record in caplog.records if "on_lost callback failed" in record.message] == [SystemExit]
    assert capfd.readouterr() == ("", "")


def test_without_a_loss_it_is_never_called_and_let_go(client, name):
    stop = Stop()
    gone = weakref.ref(stop)
    with client.lock(name, on_lost=stop):
        pass
    handed = client.lock(name, on_lost=stop).acquire()
    client.adopt(handed.hand_over(), on_lost=stop).release()
    assert stop.lost == []
    del handed, stop
    gc.collect()
    assert gone() is None


def test_a_client_and_its_callable_are_collected(name):
    class Service:
        def __init__(self):
            self.client = Client(f"memory://{name}", on_lost=self.stop)
            self.lock = self.client.lock(name, on_lost=self.stop)

        def stop(self, lost):
            raise AssertionError("it isn't lost")

    gone = weakref.ref(Service())
    gc.collect()
    assert gone() is None


def test_a_loss_right_before_the_exit_is_reported(name):
    """Also if the exit itself closes the client: the thread that tells is a daemon's, which begins no operation then."""
    program = """
        import sys
        from locktender import Client
        client = Client("memory://exit")
        held = client.lock(sys.argv[1], on_lost=lambda lost: print(lost.reason, flush=True)).acquire()
        if sys.argv[2] == "closes":
            client.close()
    """
    for way in ("closes", "ends"):
        assert run(program, name, way) == "closed\n"


def test_anything_else_is_refused(client, name):
    for wrong in ("stop", 7, True):
        with pytest.raises(InvalidArgumentError, match='on_lost: must be "cancel", "continue" or a callable'):
            client.lock(name, on_lost=wrong)


def test_an_async_def_is_refused(client, name):
    """No loop would run what a call of it returns."""

    async def notify(lost):
        raise AssertionError("nobody awaits it")

    class Notifier:
        async def __call__(self, lost):
            raise AssertionError("nobody awaits it")

    for callback in (notify, Notifier(), functools.partial(notify)):
        for make in (
            lambda: client.lock(name, on_lost=callback),
            lambda: client.job(name, on_lost=callback),
            lambda: client.election(name, on_lost=callback),
            lambda: client.adopt("ticket", on_lost=callback),
            lambda: Client(f"memory://{name}", on_lost=callback),
        ):
            with pytest.raises(InvalidArgumentError, match="on_lost: .*`async def`.*"):
                make()
        with pytest.raises(InvalidArgumentError, match="on_event: .*`async def`.*"):
            Client(f"memory://{name}", on_event=callback)
