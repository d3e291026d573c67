"""Ctrl-C, wherever it strikes. The numbers are those of test_faults.py."""

import signal
import time

from support.observe import until
from support.script import PATIENCE, run, start
from support.server import RealServer


def test_f34_ctrl_c_ends_a_blocking_acquire_and_leaves_no_key(server: RealServer, client, name):
    program = """
        import sys, time
        from locktender import Client
        client = Client(sys.argv[1])
        lock = client.lock(sys.argv[2], ttl=60)
        print("waiting", flush=True)
        try:
            lock.acquire()
        except KeyboardInterrupt:
            print(time.time(), flush=True)
        input()
        print(lock.acquire().release().outcome)
    """
    held = client.lock(name).acquire()
    process = start(program, server.url, name)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)  # somewhere in the wait
    sent = time.time()
    process.send_signal(signal.SIGINT)
    assert float(process.stdout.readline()) - sent < 0.2
    held.release()
    time.sleep(0.3)
    assert server.command("EXISTS", name) == 0, "the attempt was given up"
    out, err = process.communicate("\n", timeout=PATIENCE)
    assert (out, err, process.returncode) == ("released\n", "", 0)


def test_f34_ctrl_c_at_any_point_of_many_acquires(server: RealServer, name):
    program = """
        import signal, sys
        from locktender import Client
        client = Client(sys.argv[1])
        lock = client.lock(sys.argv[2], ttl=60)
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
    until(lambda: server.command("EXISTS", name) == 0, within=1)


def test_f24_ctrl_c_inside_the_body(server: RealServer, name):
    program = """
        import os, signal, sys, time
        from locktender import Client
        client = Client(sys.argv[1])
        try:
            with client.lock(sys.argv[2], ttl=60):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
        except KeyboardInterrupt:
            print(client.lock(sys.argv[2]).inspect())
    """
    assert run(program, server.url, name) == "None\n"
