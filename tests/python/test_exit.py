"""The end of the interpreter. The numbers are those of test_faults.py."""

import time

import pytest
from support.script import PATIENCE, run, start
from support.server import RealServer

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


def test_f36_a_daemon_thread_with_a_loop_does_not_disturb_the_exit(server: RealServer, name):
    program = """
        import asyncio, sys, threading
        from locktender import Client
        client = Client(sys.argv[1])
        inside = threading.Event()

        async def main():
            async with client.lock(sys.argv[2], ttl=60):
                inside.set()
                await client.lock(sys.argv[2]).acquire_async()

        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        inside.wait(10)
    """
    assert run(program, server.url, name) == ""
    assert server.command("EXISTS", name) == 0


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


def test_f38_a_second_interpreter_is_told_readably():
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
    assert said[-1] == "True" and "another interpreter" in said[0]
