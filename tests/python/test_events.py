"""Events: to `logging`, and to callbacks."""

import logging
import threading

import pytest

from locktender import AcquireTimeoutError, Client
from support.observe import PATIENCE, until
from support.server import RealServer


def kinds(seen):
    return [event.kind for event in list(seen)]


def test_a_callback_gets_every_event_on_a_thread_of_its_own(server: RealServer, name):
    seen, threads = [], set()

    def on_event(event):
        seen.append(event)
        threads.add(threading.current_thread().name)

    with Client(server.url, on_event=on_event, response_timeout=PATIENCE) as client:
        with client.lock(name, ttl=60) as held:
            held.extend(90)
            assert client.lock(name).try_acquire() is None
        until(lambda: "released" in kinds(seen))
    assert [kind for kind in kinds(seen) if kind != "round"] == ["acquired", "extended", "not_acquired", "released"]
    acquired = next(event for event in seen if event.kind == "acquired")
    assert (acquired.lock_name, acquired.owner, acquired.fence, acquired.level) == (name, held.owner, held.fence, logging.DEBUG)
    assert acquired.took is not None and acquired.took >= 0
    refused = next(event for event in seen if event.kind == "not_acquired")
    assert refused.holder == held.owner and name in str(refused) and repr(refused).startswith("LockEvent(kind='not_acquired'")
    assert threads == {"locktender-events"}


def test_the_logger_gets_structured_records(client, name, caplog):
    caplog.set_level(logging.DEBUG, "locktender")
    with client.lock(name) as held:
        pass
    record = until(lambda: [r for r in caplog.records if r.name == "locktender" and getattr(r, "event", 0) == "released"])[0]
    assert (record.lock_name, record.owner, record.fence, record.levelno) == (name, held.owner, held.fence, logging.DEBUG)


def test_the_life_of_holds_is_logged_at_info_if_the_client_says_so(server: RealServer, name, caplog):
    caplog.set_level(logging.INFO, "locktender")
    for log_holds, logged in ((None, []), (False, []), (True, ["acquired", "extended", "released"])):
        caplog.clear()
        with Client(server.url, log_holds=log_holds, response_timeout=PATIENCE) as client:
            with client.lock(name, ttl=60) as held:
                held.extend(90)
        until(lambda: [r.event for r in caplog.records if r.name == "locktender"] == logged)


def test_what_others_wrote_is_one_short_line_of_a_log_and_whole_in_its_field(server: RealServer, name, caplog):
    caplog.set_level(logging.DEBUG, "locktender")
    foreign = "\x1b[2J\nERROR:root:all is lost" + "x" * 900
    server.command("SET", name, foreign)
    with Client(server.url, response_timeout=PATIENCE) as client:
        assert client.lock(name).try_acquire() is None
    [record] = until(lambda: [r for r in caplog.records if getattr(r, "event", "") == "not_acquired"])
    line = record.getMessage()
    assert "\\u{1b}[2J\\nERROR" in line and line.isprintable() and len(line) < len(name) + 300
    assert record.holder == foreign


def test_a_loss_is_logged_as_an_error(client, server: RealServer, name, caplog):
    held = client.lock(name, ttl=2.5).acquire()
    server.command("DEL", name)
    held.wait_lost(PATIENCE)
    [record] = until(lambda: [r for r in caplog.records if getattr(r, "event", "") == "lost"])
    assert (record.levelno, record.reason, record.lock_name) == (logging.ERROR, "missing", name)
    assert held.release().outcome == "expired"


def test_a_server_that_fails_and_comes_back_is_reported(servers, name):
    server, seen = servers(), []
    with Client(server.url, on_event=seen.append, response_timeout=0.2) as client:
        held = client.lock(name, ttl=0.5).acquire()
        server.kill()
        until(lambda: "server_failed" in kinds(seen))
        server.restart_empty()
        until(lambda: "server_recovered" in kinds(seen))
        failed = next(event for event in seen if event.kind == "server_failed")
        assert failed.server and failed.message
        held.wait_lost(PATIENCE)


def test_another_thread_that_waits_is_not_warned(server: RealServer, name):
    seen = []
    with Client(server.url, on_event=seen.append) as client, client.lock(name):
        thread = threading.Thread(target=pytest.raises, args=(AcquireTimeoutError, client.lock(name, wait=0.05).acquire))
        thread.start()
        thread.join(PATIENCE)
        until(lambda: {"busy", "timed_out"} <= set(kinds(seen)))
    assert "warning" not in kinds(seen)


def test_a_callback_that_fails_is_logged_and_called_again(server: RealServer, name, caplog):
    seen = []

    def on_event(event):
        seen.append(event)
        raise ValueError("of the callback")

    with Client(server.url, on_event=on_event) as client:
        with client.lock(name):
            pass
        until(lambda: "released" in kinds(seen))
    assert any("callback failed" in record.message for record in caplog.records)


def test_a_callback_may_use_locks(server: RealServer, name):
    taken = []

    def on_event(event):
        if event.kind == "released" and event.lock_name == name:
            with client.lock(name + ":2") as held:
                taken.append(held.fence)

    with Client(server.url, on_event=on_event) as client:
        with client.lock(name):
            pass
        until(lambda: taken)
