"""Threads that do their own I/O: one thread drives for all, and may be interrupted, forked or closed at any moment."""

import signal
import threading

from locktender import Client, ClosedError
from support.observe import PATIENCE, until
from support.script import run, start
from support.server import RealServer


def test_f34_ctrl_c_in_the_driver_leaves_the_others_waiting(server: RealServer, proxy, name):
    program = """
        import sys, threading
        from locktender import Client
        client = Client(sys.argv[1], response_timeout=60)
        with client.lock(sys.argv[2]):
            pass
        served = []

        def other(number):
            with client.lock(f"{sys.argv[2]}:{number}"):
                served.append(number)

        def start_others():
            input()
            for thread in others:
                thread.start()

        others = [threading.Thread(target=other, args=(number,)) for number in range(8)]
        starter = threading.Thread(target=start_others)
        print("ready", flush=True)
        input()
        starter.start()
        try:
            client.lock(sys.argv[2]).acquire()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        for thread in (starter, *others):
            thread.join()
        print(len(served))
    """
    process = start(program, proxy.url, name)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    proxy.hold_answers()
    print(file=process.stdin, flush=True)
    until(lambda: server.command("EXISTS", name))  # it reads now, for all who come
    print(file=process.stdin, flush=True)
    locks = [f"{name}:{number}" for number in range(8)]
    until(lambda: server.command("EXISTS", *locks) == 8)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    proxy.let_answers_go()
    assert process.communicate(timeout=PATIENCE) == ("8\n", "")
    until(lambda: not server.command("EXISTS", name))


def test_f33_fork_while_a_thread_drives(server: RealServer, proxy, name):
    program = """
        import os, sys, threading, warnings
        from locktender import Client
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork with threads
        client = Client(sys.argv[1])
        with client.lock(sys.argv[2]):
            pass
        print("ready", flush=True)
        input()
        fences = []
        def drive():
            for _ in range(5):
                with client.lock(sys.argv[2]) as held:
                    fences.append(held.fence)
        threads = [threading.Thread(target=drive) for _ in range(4)]
        for thread in threads:
            thread.start()
        children = []
        for number in range(4):
            child = os.fork()
            if not child:
                with client.lock(f"{sys.argv[2]}:{number}") as held:
                    os._exit(0 if held.is_valid() else 1)
            children.append(child)
        ends = [os.waitpid(child, 0)[1] for child in children]
        for thread in threads:
            thread.join()
        print(ends, len(set(fences)))
    """
    process = start(program, proxy.url, name)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    proxy.latency(to_client=0.02)
    out, _ = process.communicate("\n", timeout=PATIENCE)
    assert out == "[0, 0, 0, 0] 20\n"


def test_f28_close_in_one_thread_ends_the_waits_of_others(server: RealServer, proxy, name):
    client = Client(proxy.url)
    with client.lock(name):
        pass
    proxy.black_hole()
    raised, before = [], proxy.client_bytes()

    def wait(number: int) -> None:
        try:
            client.lock(f"{name}:{number}").acquire()
        except ClosedError as error:
            raised.append(error)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: proxy.client_bytes() > before + 4 * 100)  # each has asked
    client.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(raised) == 4


def test_many_threads_on_one_lock_and_on_their_own(server: RealServer, name):
    program = """
        import sys, threading
        from locktender import Client
        client, name, fences = Client(sys.argv[1]), sys.argv[2], []
        def use(lock, count):
            for _ in range(count):
                with lock as held:
                    fences.append(held.fence)
        def all_of(arguments):
            threads = [threading.Thread(target=use, args=each) for each in arguments]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        all_of([(client.lock(f"{name}:{number}"), 4) for number in range(256)])
        print(len(fences))
        fences.clear()
        shared = client.lock(name)
        all_of([(shared, 1)] * 256)
        print(len(set(fences)), fences == sorted(fences))
    """
    assert run(program, server.url, name) == "1024\n256 True\n"
