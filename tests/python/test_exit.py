"""The end of the interpreter. The numbers are those of tests/faults/README.md."""

import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.observe import PATIENCE
from support.script import run, start
from support.server import RealServer

EXIT = """
    import asyncio, sys, threading, time
    from locktender import Client
    client = Client(sys.argv[1], response_timeout=60)
    kept = client.lock(sys.argv[2], ttl=600).acquire()
    body = client.lock(sys.argv[2] + ":body", ttl=600)
    body.__enter__()
    churning = threading.Event()

    def wait_for_ever():
        client.lock(sys.argv[2], ttl=600).acquire()

    def run_a_loop():
        async def main():
            async with client.lock(sys.argv[2], ttl=600):
                pass
        asyncio.run(main())

    def churn():
        while True:
            with client.lock(sys.argv[2] + ":churn", ttl=600):
                churning.set()

    for work in (wait_for_ever, wait_for_ever, run_a_loop, churn):
        threading.Thread(target=work, daemon=True).start()
    churning.wait()
    while not client.lock(sys.argv[2]).inspect().waiters:
        pass
    print("ends", flush=True)
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "raise SystemExit", "client.close()"])
def test_f36_exit_with_everything_under_way(server: RealServer, name, end):
    process = start(EXIT + "    " + end, server.url, name)
    assert process.stdout is not None and process.stdout.readline() == "ends\n"
    began = time.monotonic()
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert time.monotonic() - began < 4
    if end != "client.close()":
        assert (out, err) == ("", "")
    assert server.command("EXISTS", name, name + ":body", name + ":churn") == 0, "released best-effort"


def test_f36_exit_while_the_server_is_silent(servers, name):
    server = servers()
    program = """
        import os, signal, sys
        from locktender import Client
        client = Client(sys.argv[1])
        held = client.lock(sys.argv[2]).acquire()
        os.kill(int(sys.argv[3]), signal.SIGSTOP)
        print("ends", flush=True)
    """
    process = start(program, server.url, name, server.pid)
    assert process.stdout is not None and process.stdout.readline() == "ends\n"
    began = time.monotonic()
    try:
        assert process.communicate(timeout=PATIENCE) == ("", "") and process.returncode == 0
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
        client = Client(sys.argv[1], log_holds=True)
        held = client.lock(sys.argv[2], ttl=60).acquire()
    """
    assert run(program, server.url, name).split() == ["acquired", "lost", "released"]


def test_f07_a_global_hold_at_exit_is_silent(server: RealServer, name):
    program = """
        import sys
        from locktender import Client
        held = Client(sys.argv[1]).lock(sys.argv[2], ttl=600).acquire()
    """
    assert run(program, server.url, name) == ""
    assert server.command("EXISTS", name) == 0


def test_f36_a_daemon_thread_with_a_loop_does_not_disturb_the_exit(server: RealServer, name):
    program = """
        import asyncio, sys, threading
        from locktender import Client
        client = Client(sys.argv[1])
        inside = threading.Event()

        async def main():
            async with client.lock(sys.argv[2], ttl=600):
                inside.set()
                await Client(sys.argv[1]).lock(sys.argv[2], ttl=600).acquire_async()  # another client's: not refused at once

        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        inside.wait()
    """
    assert run(program, server.url, name) == ""
    assert server.command("EXISTS", name) == 0


def test_f36_a_daemon_thread_that_is_inside_when_the_interpreter_ends_does_not_abort_it(server: RealServer, name):
    """What begins before the exit and is in the middle of Python code when it comes; at a different moment in each program."""
    program = """
        import asyncio, sys, threading, time
        from locktender import Client
        client = Client(sys.argv[1], response_timeout=60)
        kept = client.lock(sys.argv[2], ttl=600).acquire()
        inside = threading.Event()

        async def main():
            inside.set()
            async with client.lock(sys.argv[2]):
                pass

        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        inside.wait()
        time.sleep(float(sys.argv[3]))
    """
    programs = 60 if "LOCKTENDER_LONG" in os.environ else 12
    with ThreadPoolExecutor(4) as threads:
        moments = [at * 0.012 / programs for at in range(programs)]
        ends = [threads.submit(run, program, server.url, f"{name}:{moment}", moment) for moment in moments]
    assert [end.result() for end in ends] == [""] * programs


@pytest.mark.parametrize("make", ["client.job(sys.argv[2]).run", "client.election(sys.argv[2]).lead"])
def test_f36_a_daemon_thread_that_is_in_its_work_when_the_interpreter_ends_does_not_abort_it(server: RealServer, name, make):
    program = f"""
        import sys, threading, time
        from locktender import Client
        client = Client(sys.argv[1])
        inside = threading.Event()

        def work(_):
            inside.set()
            while True:
                time.sleep(0.0001)

        threading.Thread(target=lambda: {make}(work), daemon=True).start()
        inside.wait()
    """
    assert run(program, server.url, name) == ""
    assert server.command("EXISTS", name) == 0


SLOW = """
    import asyncio, os, sys, threading, time, warnings
    from locktender import Client, InvalidArgumentError, LockError
    client = Client(sys.argv[1])
    inside = threading.Event()

    def slow(*_, **__):
        inside.set()
        for _ in range(300):
            time.sleep(0.001)
        try:
            client.lock("used again", ttl="in the middle of the exit")
        except InvalidArgumentError:
            os.write(1, b"went on ")

    class Slow:
        __repr__ = __fspath__ = __iter__ = __del__ = slow

        def __call__(self, loss):
            pass

    def drop_a_hold():
        warnings.showwarning = slow
        warnings.simplefilter("always")
        client.lock(sys.argv[2]).acquire()

    def drop_a_holds_callable():
        warnings.simplefilter("ignore")
        client.lock(sys.argv[2], on_lost=Slow()).acquire()

    def drop_a_clients_callable():
        Client(sys.argv[1], on_event=Slow())

    def drop_a_locks_callable():
        client.lock(sys.argv[2], on_lost=Slow())

    def drop_a_jobs_callable():
        client.job(sys.argv[2], on_lost=Slow())

    def drop_an_elections_callable():
        client.election(sys.argv[2], on_lost=Slow())

    def drop_an_operation():
        async def main():
            async with client.lock(sys.argv[2]) as held:
                held.extend(type("Seconds", (float,), {"__del__": slow})(1))

        warnings.simplefilter("ignore")
        asyncio.run(main())

    def fail_with_an_error():
        attempt = client.job(sys.argv[2]).begin()
        try:
            attempt.fail(type("Error", (Exception,), {"__str__": slow})())
        except LockError:
            pass  # the exit has given the attempt back

    def forget_the_errors_of_credentials():
        def credentials():
            raise type("Error", (Exception,), {"__del__": slow})

        while not inside.is_set():
            try:
                Client(sys.argv[1], credentials=credentials, unavailable_after=0.1).lock(sys.argv[2]).try_acquire()
            except LockError:
                pass

    def refuse_a_time():
        client.lock(sys.argv[2], ttl=Slow())

    def refuse_a_path():
        Client("rediss://127.0.0.1", ca_file=Slow())

    def refuse_servers():
        Client(Slow())

    threading.Thread(target=globals()[sys.argv[3]], daemon=True).start()
    inside.wait()
"""


@pytest.mark.parametrize("way", re.findall(r"def ([a-z]+_[a-z_]+)\(\)", SLOW))
def test_f36_code_of_the_program_that_runs_in_a_daemon_thread_when_the_interpreter_ends_does_not_abort_it(server: RealServer, name, way):
    assert set(run(SLOW, server.url, name, way).split()) == {"went", "on"}, "the exit has waited for it"


def test_f36_a_hold_that_a_daemon_thread_drops_while_the_interpreter_ends_does_not_abort_it(server: RealServer, name):
    """The daemon thread is granted the lock by the release that is the last thing the program does."""
    program = """
        import sys, threading
        from locktender import Client
        client = Client(sys.argv[1])
        held = client.lock(sys.argv[2], ttl=600).acquire()
        threading.Thread(target=lambda: client.lock(sys.argv[2], ttl=600).acquire(), daemon=True).start()
        while not client.lock(sys.argv[2]).inspect().waiters:
            pass
        held.release()
    """
    programs = 100 if "LOCKTENDER_LONG" in os.environ else 16
    with ThreadPoolExecutor(4) as threads:
        ends = [threads.submit(run, program, server.url, f"{name}:{at}", warnings="ignore") for at in range(programs)]
    assert [end.result() for end in ends] == [""] * programs


def test_f36_sys_exit_inside_a_body(server: RealServer, name):
    program = """
        import asyncio, sys
        from locktender import Client
        client = Client(sys.argv[1])

        async def main():
            async with client.lock(sys.argv[2] + ":async"):
                sys.exit(0)

        with client.lock(sys.argv[2]):
            asyncio.run(main())
    """
    assert run(program, server.url, name) == ""
    assert server.command("EXISTS", name, name + ":async") == 0


def test_f38_a_second_interpreter_is_refused_readably():
    program = """
        import sys
        from locktender import Client
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        second = interpreters.create()
        text = "try: import locktender\\nexcept ImportError as error: print(error, flush=True)"
        interpreters.run_string(second, text)
        with Client("memory://first").lock("a") as held:
            print(held.is_valid())
    """
    said = run(program, warnings="ignore").splitlines()
    # As of 3.12 the interpreter says so itself.
    told = "another interpreter" if sys.version_info < (3, 12) else "does not support loading in subinterpreters"
    assert said[-1] == "True" and told in said[0]
