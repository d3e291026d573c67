"""Faults that need a process, a signal or a stalled interpreter. The numbers are those of tests/faults/README.md."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from locktender import AcquireTimeoutError, Client, UnavailableError
from support.observe import LOAD, PATIENCE, until
from support.script import start
from support.server import RealServer, free_port

BUSY_SLEEP = ctypes.PyDLL(None).usleep  # C code that keeps the interpreter


def test_f01_c_code_holds_the_interpreter_for_five_ttls_and_nobody_else_acquires(server: RealServer, client, name):
    rival = """
        import sys
        from locktender import Client
        with Client(sys.argv[1]) as client:
            print("ready", flush=True)
            print(client.lock(sys.argv[2]).acquire().fence)
    """
    with client.lock(name, ttl=2) as held:
        process = start(rival, server.url, name)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for _ in range(3):
            BUSY_SLEEP(3_400_000)
            assert held.is_valid() and process.poll() is None
        held.check()
    out, _ = process.communicate(timeout=PATIENCE)
    assert int(out) > held.fence


def test_f02_a_stopped_process_knows_that_it_lost(server: RealServer, client, name):
    program = """
        import sys, time
        from locktender import Client
        seen = []
        client = Client(sys.argv[1], on_event=seen.append)
        held = client.lock(sys.argv[2], ttl=0.4).acquire()
        print("held", flush=True)
        input()
        print(held.is_valid(), held.remaining(), flush=True)
        loss = held.wait_lost()
        release = held.release()
        print(loss.reason, release.outcome, release.next_owner, release.overrun > 0)
        client.close()
        print([event.kind for event in seen].count("lost"))
    """
    process = start(program, server.url, name)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "held\n"
    process.send_signal(signal.SIGSTOP)
    with client.lock(name, ttl=30) as mine:  # as soon as the key has expired
        process.stdin.write("\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=PATIENCE)
        assert server.holder(name) == mine.owner
    valid, loss, count = out.splitlines()
    assert valid == "False 0.0"
    assert loss in (f"expired taken {mine.owner} True", f"taken taken {mine.owner} True")
    assert (count, err, process.returncode) == ("1", "", 0)


def test_f07_a_dropped_hold_is_no_longer_renewed_and_warns(server: RealServer, name):
    seen = []
    with Client(server.url, on_event=seen.append) as client:
        held = client.lock(name, ttl=3).acquire()
        with pytest.warns(ResourceWarning, match="without release"):
            del held
            gc.collect()
        until(lambda: any(event.kind == "dropped" and "without release" in event.message for event in seen))
        assert client.metrics().value("locktender_holds_total", end="dropped") == 1
        assert server.command("EXISTS", name) == 1, "not released: the work may still run"
        until(lambda: server.command("EXISTS", name) == 0)


def test_f07_a_hold_in_a_cycle_is_collected(client, name):
    held = [client.lock(name, ttl=0.5).acquire()]
    held.append(held)
    with pytest.warns(ResourceWarning):
        del held
        gc.collect()


def test_f07_a_body_keeps_its_lock_alive(server: RealServer, client, name):
    seen = []
    with Client(server.url, on_event=seen.append) as own, own.lock(name, ttl=2):
        gc.collect()
        until(lambda: [event.kind for event in list(seen)].count("renewed") > 3)  # past its ttl
        assert client.lock(name).try_acquire() is None


def test_f18_an_unreachable_server(name):
    url = f"redis://127.0.0.1:{free_port()}"
    for wait, unavailable_after, longest in ((None, 0.4, 0.4), (0.2, PATIENCE, 0.2), (0, PATIENCE, 0.0)):
        with Client(url, unavailable_after=unavailable_after) as client:
            began = time.monotonic()
            with pytest.raises(UnavailableError) as caught:
                client.lock(name, wait=wait).acquire()
            assert time.monotonic() - began < longest + 1 + LOAD, "the wait, and one response timeout"
            assert [each.kind for each in caught.value.servers] == ["refused"]


def test_f18_a_silent_server(server: RealServer, proxy, name):
    proxy.black_hole()
    for wait, unavailable_after, longest in ((None, 0.6, 0.6), (0.3, PATIENCE, 0.3), (0, PATIENCE, 0.0)):
        with Client(proxy.url, response_timeout=0.2, connect_timeout=0.2, unavailable_after=unavailable_after) as client:
            began = time.monotonic()
            with pytest.raises(UnavailableError):
                client.lock(name, wait=wait).acquire()
            assert time.monotonic() - began < longest + 0.2 + LOAD, "the wait, and one response timeout"
    proxy.restore()
    until(lambda: server.command("EXISTS", name) == 0)


def test_f28_close_with_everything_under_way(server: RealServer, name):
    client = Client(server.url, response_timeout=PATIENCE)
    mine = [client.lock(f"{name}:{at}", ttl=600).acquire() for at in range(20)]
    server.command("SET", name, "foreign")
    ended = []

    def wait():
        try:
            client.lock(name).acquire()
        except Exception as error:
            ended.append(type(error).__name__)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: server.line(name))
    began = time.monotonic()
    client.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert time.monotonic() - began < 2
    assert ended == ["ClosedError"] * 4
    assert not any(held.is_valid() for held in mine)
    assert all(server.command("EXISTS", held.name) == 0 for held in mine)
    assert server.command("GET", name) == "foreign"


def test_f28_close_while_the_server_is_silent_is_bounded(servers, name):
    server = servers()
    client = Client(server.url, response_timeout=0.3)
    held = client.lock(name).acquire()
    server.pause()
    began = time.monotonic()
    client.close()
    assert time.monotonic() - began < 1
    assert not held.is_valid()
    server.resume()


def test_f08_a_killed_owner_frees_the_lock_within_a_ttl(server: RealServer, client, name):
    program = """
        import sys, time
        from locktender import Client
        held = Client(sys.argv[1]).lock(sys.argv[2], ttl=1).acquire()
        print("held", flush=True)
        time.sleep(60)
    """
    process = start(program, server.url, name)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    process.kill()
    process.communicate()
    began = time.monotonic()
    with client.lock(name):
        assert time.monotonic() - began < 1 + LOAD


def test_a_subprocess_is_not_disturbed(client, name):
    with client.lock(name) as held:
        assert subprocess.run([sys.executable, "-c", "pass"]).returncode == 0
        assert os.getpid() and held.is_valid()
        with pytest.raises(AcquireTimeoutError):
            client.lock(name, wait=0).acquire()
