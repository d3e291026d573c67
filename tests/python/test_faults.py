"""Faults that need a process, a signal or a stalled interpreter. The numbers are those of tests/faults."""

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
from support.observe import until
from support.script import PATIENCE, run, start
from support.server import RealServer, free_port

BUSY_SLEEP = ctypes.PyDLL(None).usleep  # C code that keeps the interpreter


def test_f01_c_code_holds_the_interpreter_for_five_ttls(client, name):
    with client.lock(name, ttl=0.3) as held:
        for _ in range(3):
            BUSY_SLEEP(500_000)
            assert held.is_valid()
        held.check()


def test_f01_nobody_else_acquires_meanwhile(server: RealServer, client, name):
    rival = """
        import sys
        from locktender import Client
        with Client(sys.argv[1]) as client:
            print("ready", flush=True)
            print(client.lock(sys.argv[2]).acquire().fence)
    """
    with client.lock(name, ttl=0.3) as held:
        process = start(rival, server.url, name)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        BUSY_SLEEP(1_500_000)
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
        loss = held.wait_lost(5)
        release = held.release()
        print(loss.reason, release.outcome, release.rival, release.overrun > 0)
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
        assert server.command("GET", name) == mine.owner
    valid, loss, count = out.splitlines()
    assert valid == "False 0.0"
    assert loss in (f"expired taken {mine.owner} True", f"taken taken {mine.owner} True")
    assert (count, err, process.returncode) == ("1", "", 0)


def test_f07_a_dropped_hold_is_no_longer_renewed_and_warns(server: RealServer, name):
    seen = []
    with Client(server.url, on_event=seen.append) as client:
        held = client.lock(name, ttl=0.5).acquire()
        with pytest.warns(ResourceWarning, match="without release"):
            del held
            gc.collect()
        until(lambda: any(event.kind == "warning" and "without release" in event.message for event in seen))
        assert server.command("EXISTS", name) == 1, "not released: the work may still run"
        until(lambda: server.command("EXISTS", name) == 0)


def test_f07_a_hold_in_a_cycle_is_collected(client, name):
    held = [client.lock(name, ttl=0.5).acquire()]
    held.append(held)
    with pytest.warns(ResourceWarning):
        del held
        gc.collect()


def test_f07_a_body_keeps_its_lock_alive(client, name):
    with client.lock(name, ttl=0.3):
        gc.collect()
        time.sleep(0.5)
        assert client.lock(name).try_acquire() is None


def test_f18_an_unreachable_server(name):
    with Client(f"redis://127.0.0.1:{free_port()}", unavailable_after=0.4) as client:
        for wait, longest in ((None, 0.4), (0.2, 0.2), (0, 0.0)):
            began = time.monotonic()
            with pytest.raises(UnavailableError) as caught:
                client.lock(name, wait=wait).acquire()
            assert time.monotonic() - began < longest + 1.2, "wait, and one response timeout"
            assert [each.kind for each in caught.value.servers] == ["refused"]


def test_f18_a_silent_server(server: RealServer, proxy, name):
    with Client(proxy.url, response_timeout=0.2, unavailable_after=0.6, connect_timeout=0.2) as client:
        proxy.black_hole()
        for wait in (None, 0.3, 0):
            began = time.monotonic()
            with pytest.raises(UnavailableError):
                client.lock(name, wait=wait).acquire()
            assert time.monotonic() - began < 2
    proxy.restore()
    until(lambda: server.command("EXISTS", name) == 0)


def test_f28_close_with_everything_under_way(server: RealServer, name):
    client = Client(server.url)
    mine = [client.lock(f"{name}:{at}", ttl=30).acquire() for at in range(20)]
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
    began = time.monotonic()
    client.close()
    for thread in threads:
        thread.join(5)
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


EXIT = """
    import asyncio, sys, threading, time
    from locktender import Client
    client = Client(sys.argv[1])
    kept = client.lock(sys.argv[2], ttl=60).acquire()
    body = client.lock(sys.argv[2] + ":body", ttl=60)
    body.__enter__()

    def wait_for_ever():
        client.lock(sys.argv[2]).acquire()

    def run_a_loop():
        async def main():
            async with client.lock(sys.argv[2]):
                pass
        asyncio.run(main())

    def churn():
        while True:
            with client.lock(sys.argv[2] + ":churn"):
                pass

    for work in (wait_for_ever, wait_for_ever, run_a_loop, churn):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.2)
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "raise SystemExit", "client.close()"])
def test_f36_exit_with_everything_under_way(server: RealServer, name, end):
    began = time.monotonic()
    process = start(EXIT + "    " + end, server.url, name)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert time.monotonic() - began < 4
    if end != "client.close()":
        assert (out, err) == ("", "")
    for key in (name, name + ":body", name + ":churn"):
        assert server.command("EXISTS", key) == 0, "released best-effort"


def test_f36_exit_while_the_server_is_silent(servers, name):
    server = servers()
    program = """
        import os, signal, sys
        from locktender import Client
        client = Client(sys.argv[1])
        held = client.lock(sys.argv[2]).acquire()
        os.kill(int(sys.argv[3]), signal.SIGSTOP)
    """
    began = time.monotonic()
    try:
        assert run(program, server.url, name, server.pid) == ""
    finally:
        server.resume()
    assert time.monotonic() - began < 4


def test_f36_exit_at_once(server: RealServer, name):
    for end in ("os._exit(0)", "sys.exit(0)"):
        program = f"""
        import os, sys
        from locktender import Client
        client = Client(sys.argv[1])
        held = client.lock(sys.argv[2], ttl=0.5).acquire()
        {end}
        """
        assert run(program, server.url, name + end) == ""


def test_f36_exit_with_logging_tells_the_last_events(server: RealServer, name):
    program = """
        import logging, sys
        from locktender import Client
        logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(event)s")
        client = Client(sys.argv[1])
        held = client.lock(sys.argv[2]).acquire()
    """
    assert run(program, server.url, name).split() == ["acquired", "lost", "released"]


def test_f07_a_global_hold_at_exit_is_silent(server: RealServer, name):
    program = """
        import sys
        from locktender import Client
        held = Client(sys.argv[1]).lock(sys.argv[2]).acquire()
    """
    assert run(program, server.url, name) == ""
    assert server.command("EXISTS", name) == 0


FORK = """
    import os, sys
    from locktender import Client, ForkedError, InvalidArgumentError

    def in_child(work):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                work()
                code = 0
            except BaseException as error:
                print(repr(error), flush=True)
            finally:
                sys.stdout.flush()
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    url, name = sys.argv[1:]
    client = Client(url)
"""


def test_f33_fork_before_first_use(server: RealServer, name):
    program = FORK + """
    def work():
        with client.lock(name) as held:
            print(held.is_valid())
    print(in_child(work))
    work()
    """
    assert run(program, server.url, name) == "True\n0\nTrue\n"


def test_f33_fork_after_first_use(server: RealServer, name):
    program = FORK + """
    import asyncio, gc, logging
    logging.basicConfig(level=logging.CRITICAL)
    parents = client.lock(name, ttl=1)
    held = parents.acquire()
    asyncio.run(client.lock("a").inspect_async())

    def work():
        global held
        print(held.is_valid(), held.remaining())
        for call in (held.release, held.extend, held.check, held.hand_over):
            try:
                call()
            except ForkedError as error:
                print(error.code)
        print(client.lock(name).try_acquire())
        with client.lock(name + ":child") as own:
            print(own.is_valid())
        async def main():
            async with client.lock(name + ":async") as own:
                return own.is_valid()
        print(asyncio.run(main()))
        del held
        gc.collect()

    for _ in range(3):
        print(in_child(work))
    print(held.is_valid(), held.release().outcome)
    """
    child = "False 0.0\n" + "FORKED\n" * 4 + "None\nTrue\nTrue\n0\n"
    assert run(program, server.url, name) == child * 3 + "True released\n"


def test_f33_fork_while_other_threads_are_at_it(server: RealServer, name):
    program = FORK + """
    import threading
    stop = threading.Event()

    def churn(at):
        lock = client.lock(f"{name}:{at}")
        while not stop.is_set():
            with lock:
                pass

    threads = [threading.Thread(target=churn, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()

    def work():
        with client.lock(name + ":child", wait=5) as own:
            own.check()

    print([in_child(work) for _ in range(20)] == [0] * 20)
    stop.set()
    """
    assert run(program, server.url, name, warnings="ignore") == "True\n"


def test_f33_a_child_that_ends_like_any_program(server: RealServer, name):
    program = FORK + """
    held = client.lock(name).acquire()
    pid = os.fork()
    if pid == 0:
        mine = Client(url).lock(name + ":child").acquire()
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(code, held.is_valid(), held.release().outcome)
    """
    assert run(program, server.url, name) == "0 True released\n"
    assert server.command("EXISTS", name + ":child") == 0


def test_f33_multiprocessing(server: RealServer, name, tmp_path):
    program = """
        import multiprocessing, sys
        from locktender import Client, lock, configure
        configure(sys.argv[1])

        @lock(sys.argv[2], wait=10)
        def work(at):
            return at

        if __name__ == "__main__":
            work(0)
            with multiprocessing.get_context("fork").Pool(4) as pool:
                print(sum(pool.map(work, range(20))))
    """
    assert run(program, server.url, name, warnings="ignore") == "190\n"


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
    with client.lock(name, wait=5):
        assert time.monotonic() - began < 1.5


def test_a_subprocess_is_not_disturbed(client, name):
    with client.lock(name) as held:
        assert subprocess.run([sys.executable, "-c", "pass"]).returncode == 0
        assert os.getpid() and held.is_valid()
        with pytest.raises(AcquireTimeoutError):
            client.lock(name, wait=0).acquire()
