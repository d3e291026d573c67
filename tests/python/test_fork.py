"""Forked children: os.fork and multiprocessing; servers that fork are in test_prefork.py. The numbers are those of tests/faults/README.md."""

import pytest
from support.script import run
from support.server import RealServer

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
    parents = client.lock(name, ttl=3)
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
    left = held.remaining()
    while held.remaining() <= left:  # it is still renewed
        pass
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
        with client.lock(name + ":child") as own:
            own.check()

    print([in_child(work) for _ in range(20)] == [0] * 20)
    stop.set()
    """
    assert run(program, server.url, name, warnings="ignore") == "True\n"


def test_f33_a_child_has_places_of_its_own_and_leaves_those_of_its_parent(server: RealServer, name):
    program = FORK + """
    import threading, time
    holder = Client(url)
    held = holder.lock(name, ttl=60).acquire()

    def visit(who):
        with client.lock(name, ttl=60, fair=True, wait=20):
            print(who, flush=True)

    def until(waiters):
        while holder.lock(name).inspect().waiters != waiters:
            time.sleep(0.01)

    waiter = threading.Thread(target=visit, args=("parent",))
    waiter.start()
    until(1)
    print(in_child(lambda: None), flush=True)
    until(1)
    pid = os.fork()
    if pid == 0:
        visit("child")
        os._exit(0)
    until(2)
    held.release()
    waiter.join()
    print(os.waitpid(pid, 0)[1], holder.lock(name).inspect())
    """
    assert run(program, server.url, name, warnings="ignore") == "0\nparent\nchild\n0 None\n"


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

        @lock(sys.argv[2], wait=60)
        def work(at):
            return at

        if __name__ == "__main__":
            work(0)
            with multiprocessing.get_context("fork").Pool(4, maxtasksperchild=1) as pool:
                print(sum(pool.map(work, range(60), chunksize=1)))
    """
    assert run(program, server.url, name, warnings="ignore") == "1770\n"


def test_f33_multiprocessing_with_spawn_and_forkserver(server: RealServer, name, tmp_path):
    """Their children import the program anew."""
    (tmp_path / "children.py").write_text("""
import multiprocessing, sys
from locktender import Client

client = Client(sys.argv[1])

@client.lock(sys.argv[2], wait=60)
def work(at):
    return at

if __name__ == "__main__":
    work(0)
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(sum(pool.map(work, range(10))))
            pool.close()
            pool.join()
""")
    program = """
        import runpy, sys
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    assert run(program, tmp_path / "children.py", server.url, name, warnings="ignore") == "45\n45\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("whose", ["client", "Client(sys.argv[1])"], ids=["inherited", "own"])
def test_f33_a_child_of_multiprocessing_gives_back_what_it_holds_at_its_end(server: RealServer, name, tmp_path, method, whose):
    """The children of most methods end without the handlers of atexit."""
    (tmp_path / "children.py").write_text(f"""
import multiprocessing, sys
from locktender import Client

client = Client(sys.argv[1])

def work():
    global held
    held = {whose}.lock(sys.argv[2], ttl=600).acquire()

if __name__ == "__main__":
    mine = client.lock(sys.argv[2] + ":mine").acquire()
    child = multiprocessing.get_context("{method}").Process(target=work)
    child.start()
    child.join()
    print(child.exitcode, client.lock(sys.argv[2]).inspect(), mine.is_valid())
""")
    program = """
        import runpy, sys
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    assert run(program, tmp_path / "children.py", server.url, name, warnings="ignore") == "0 None True\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_f33_a_child_of_multiprocessing_keeps_its_locks_until_its_threads_have_ended(server: RealServer, name, tmp_path, method):
    """Such a child runs its handlers first, and waits for its threads then."""
    (tmp_path / "children.py").write_text(f"""
import multiprocessing, sys, threading
from locktender import Client

def work():
    client = Client(sys.argv[1])
    holds = threading.Event()

    def hold():
        with client.lock(sys.argv[2]) as hold:
            holds.set()
            threading.main_thread().join(0.5)
            print(hold.is_valid(), flush=True)
        with client.lock(sys.argv[2]) as hold:
            print(hold.is_valid(), flush=True)

    threading.Thread(target=hold).start()
    holds.wait()

if __name__ == "__main__":
    child = multiprocessing.get_context("{method}").Process(target=work)
    child.start()
    child.join(30)
    print(child.exitcode)
    child.kill()
""")
    program = """
        import runpy, sys
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
    """
    assert run(program, tmp_path / "children.py", server.url, name, warnings="ignore") == "True\nTrue\n0\n"


@pytest.mark.parametrize("end", ["close()", "throw(RuntimeError())"])
def test_f33_a_child_leaves_the_acquires_of_its_parent_alone(server: RealServer, name, end):
    program = FORK + f"""
    import asyncio

    async def main():
        held = client.lock(name).acquire()
        waiting = asyncio.create_task(client.lock(name, fair=True).acquire_async())
        while not client.lock(name).inspect().waiters:
            await asyncio.sleep(0.01)
        def work():
            try:
                waiting.get_coro().{end}
            except RuntimeError:
                pass
        print(in_child(work))
        print(client.lock(name).inspect().waiters)
        await asyncio.to_thread(held.release)
        granted = await waiting
        print(granted.is_valid(), (await granted.release()).outcome)
    asyncio.run(main())
    """
    assert run(program, server.url, name) == "0\n1\nTrue released\n"
