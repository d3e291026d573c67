"""Plays the wheel with a Python for Windows: `python wheel.py [URL]`, without a URL in memory.

It plays what differs from other systems: Ctrl-C in a wait, both event loops of asyncio, and a process that is started anew, since Windows has no fork.
"""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

from locktender import AcquireTimeoutError, Client

# In seconds: longer than any play takes, and until Ctrl-C comes.
WAIT, SOON = 30, 0.5

# What the other process does with the lock that it gets.
CHILD = """
import pickle, sys
from locktender import AcquireTimeoutError
lock = pickle.load(sys.stdin.buffer)
try:
    print(lock.acquire().fence)
except AcquireTimeoutError:
    print("held")
"""


@contextmanager
def interrupted(what):
    """Fails unless Ctrl-C, which comes soon, ends the body. Windows, too, tells a program of it in a thread of its own."""
    threading.Timer(SOON, signal.raise_signal, [signal.SIGINT]).start()
    try:
        yield
    except KeyboardInterrupt:
        print(f"{what}: ended by Ctrl-C", flush=True)
    else:
        raise AssertionError(f"{what}: not ended by Ctrl-C")


async def waits(lock):
    async with lock:
        pass


async def contends(client):
    """A hundred tasks, one lock: each of them is alone, and its fence is higher than those before it."""
    inside, fences = [], []

    async def holds():
        async with client.lock("contended", wait=WAIT) as hold:
            assert not inside
            inside.append(hold)
            await asyncio.sleep(0)
            fences.append(inside.pop().fence)

    await asyncio.gather(*(holds() for _ in range(100)))
    assert fences == sorted(set(fences)), fences


def elsewhere(lock):
    """What another process gets of the lock."""
    return subprocess.run([sys.executable, "-c", CHILD], input=pickle.dumps(lock), stdout=subprocess.PIPE, check=True, timeout=WAIT).stdout.decode().strip()


def main():
    assert os.name == "nt" and not hasattr(os, "fork")
    url = sys.argv[1] if len(sys.argv) > 1 else "memory://wheel"
    client, other = Client(url), Client(url)
    busy = client.lock("busy", wait=WAIT)
    with other.lock("busy"):
        with interrupted("a thread that waits"), busy:
            pass
        with interrupted("a task that waits"):
            asyncio.run(waits(busy))
    # Nobody is left in the queue: the lock is free at once.
    with client.lock("busy", wait=0):
        pass
    for loop in (asyncio.ProactorEventLoop, asyncio.SelectorEventLoop):
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(contends(client))
        print(f"{loop.__name__}: 100 tasks", flush=True)
    if len(sys.argv) > 1:
        lock = client.lock("elsewhere", wait=0)
        with lock as hold:
            assert elsewhere(lock) == "held"
            fence = hold.fence
        assert int(elsewhere(lock)) > fence
        print("another process: held, then its own", flush=True)
    try:
        with other.lock("timeout"):
            client.lock("timeout", wait=0).acquire()
    except AcquireTimeoutError as error:
        assert f"pid={os.getpid()}" in str(error), error
    print("ok", flush=True)


if __name__ == "__main__":
    main()
