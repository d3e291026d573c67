"""Ctrl-C at any moment. The numbers are those of tests/faults/README.md."""

import ctypes
import itertools
import signal
import sys
import threading
import time

import pytest
from locktender import Client
from support.observe import LOAD, PATIENCE, PROMPTLY, until
from support.script import run, start
from support.server import RealServer


def test_f34_ctrl_c_ends_a_blocking_acquire_and_leaves_no_key(server: RealServer, client, name):
    program = """
        import sys, time
        from locktender import Client
        client = Client(sys.argv[1])
        lock = client.lock(sys.argv[2], ttl=600)
        for _ in range(5):
            try:
                lock.acquire()
            except KeyboardInterrupt:
                print(time.time(), flush=True)
            input()
        print(lock.acquire().release().outcome)
    """
    took = []
    with client.lock(name):
        process = start(program, server.url, name)
        assert process.stdout is not None and process.stdin is not None
        for _ in range(5):
            until(lambda: server.line(name))  # it waits
            sent = time.time()
            process.send_signal(signal.SIGINT)
            took.append(float(process.stdout.readline()) - sent)
            until(lambda: not server.line(name))
            if len(took) < 5:
                print(file=process.stdin, flush=True)
    assert max(took) < 0.2, took
    assert server.command("EXISTS", name) == 0, "the attempts were given up"
    out, err = process.communicate("\n", timeout=PATIENCE)
    assert (out, err, process.returncode) == ("released\n", "", 0)


def test_f34_ctrl_c_at_any_point_of_many_acquires(server: RealServer, name):
    program = """
        import signal, sys
        from locktender import Client
        client = Client(sys.argv[1])
        lock = client.lock(sys.argv[2], ttl=600)
        interrupted = 0
        for at in range(60):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + at * 0.00004)
            try:
                while True:
                    with lock:
                        pass
            except KeyboardInterrupt:
                interrupted += 1
        print(interrupted)
    """
    interrupting = "import signal; signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    lines = [line[8:] for line in program.splitlines()]
    assert run(interrupting + "\n".join(lines), server.url, name) == "60\n"
    until(lambda: server.command("EXISTS", name) == 0, PROMPTLY)


@pytest.mark.parametrize("skip", [False, True])
def test_f34_ctrl_c_on_any_line_of_a_decorated_call_leaves_no_key(client, name, skip):
    """A trace function stands in for the signal: it strikes wherever it is told to."""
    lock = client.lock(name, ttl=600)

    @(lock.skip_if_busy if skip else lock)
    def work():
        return "done"

    def call(strike: int) -> bool:
        """Whether it was interrupted, on that line of it."""
        lines = itertools.count()

        def trace(frame, event, _):
            if frame.f_code is not work.__code__:
                return None
            if event == "line" and next(lines) == strike:
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            return work() != "done"
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)

    struck = 0
    while call(struck):
        struck += 1
        until(lambda: lock.inspect() is None)
    assert struck > 5


def test_f24_ctrl_c_inside_the_body(server: RealServer, name):
    program = """
        import os, signal, sys, time
        from locktender import Client
        client = Client(sys.argv[1])
        try:
            with client.lock(sys.argv[2], ttl=600):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
        except KeyboardInterrupt:
            print(client.lock(sys.argv[2]).inspect())
    """
    assert run(program, server.url, name) == "None\n"


@pytest.mark.parametrize("use", ["", "held = lock(sys.argv[2], ttl=600).acquire()", "leadership = election(sys.argv[2], ttl=600).campaign()"])
def test_a_program_that_ctrl_c_ends_ends_by_the_signal(server: RealServer, name, use):
    program = f"""
        import sys, time
        from locktender import configure, election, lock
        configure(sys.argv[1])
        {use}
        print("works", flush=True)
        # Not in one piece: a signal that comes just before a sleep doesn't end it.
        for _ in range(6_000):
            time.sleep(0.1)
    """
    process = start(program, server.url, name)
    assert process.stdout is not None and process.stdout.readline() == "works\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    # A shell that runs it in a loop ends then, too.
    assert (out, err.splitlines()[-1], process.returncode) == ("", "KeyboardInterrupt", -signal.SIGINT)
    assert server.command("EXISTS", name) == 0, "given back"


class TimeLimit(BaseException):
    """What dramatiq and others set for the thread of a task that takes too long."""


WAITS = {
    "acquire": lambda client, name: client.lock(name).acquire(),
    "with": lambda client, name: client.lock(name).__enter__(),
    "begin": lambda client, name: client.job(name).begin(),
    "run": lambda client, name: client.job(name).run(lambda attempt: None),
    "campaign": lambda client, name: client.election(name).campaign(),
    "lead": lambda client, name: client.election(name).lead(lambda leadership: None),
    "wait_lost": lambda client, name: client.lock(name + ":other").acquire().wait_lost(),
    "wait_lost for a while": lambda client, name: client.lock(name + ":other").acquire().wait_lost(600),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("way", WAITS)
def test_an_exception_that_another_thread_sets_ends_a_wait(server: RealServer, client, name, way):
    seen = []

    def wait():
        try:
            WAITS[way](Client(server.url, wait=600), name)
        except BaseException as error:
            seen.append((type(error), time.monotonic()))

    with client.lock(name):
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        until(lambda: server.command("EXISTS", name + ":other") if "lost" in way else server.line(name))
        ident, began = ctypes.c_ulong(thread.ident), time.monotonic()
        assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(TimeLimit)) == 1
        thread.join(PATIENCE)
        [(kind, ended)] = seen
        assert kind is TimeLimit and ended - began < 0.3 + LOAD
        until(lambda: not server.line(name))
    assert server.command("EXISTS", name) == 0, "the wait was given up"
