"""A program that forks many children of a parent with a history, and judges them by their exit codes and by the time they take.

    python tests/python/support/forks.py URL HISTORY CHILDREN SEED
"""

import faulthandler
import logging
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from locktender import AcquireTimeoutError, Client

TTL = 0.9
PATIENCE = 10.0
"""How long a child may take, all its work included."""

TOGETHER = 16
"""How many children are alive at once."""


def tell(client: Client, name: str, draw: random.Random, most: int) -> None:
    """Drops holds, each of which is a warning. Whether a child crashes depends on addresses, so lengths are drawn at random."""
    for _ in range(draw.randint(1, most)):
        client.lock(name + "x" * draw.randint(1, 600) + str(draw.random()), ttl=0.05 + draw.random() / 20).acquire()


class Parent:
    """A process that has used locks, and whose threads go on with it while it forks."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.draw = random.Random(seed)
        self.client = Client(url, ttl=TTL)
        self.name = f"fork:{os.getpid()}:{seed}"
        self.kept: list[object] = []

    def thread(self, work: Callable[[], object]) -> None:
        """Does it again and again on a thread of its own."""

        def again() -> None:
            while True:
                work()

        threading.Thread(target=again, daemon=True).start()

    def idle(self) -> None:
        """Has used nothing."""

    def used(self) -> None:
        for _ in range(self.draw.randint(1, 12)):
            with self.client.lock(self.name + "x" * self.draw.randint(0, 700)):
                pass

    def told(self) -> None:
        """Events were delivered to logging, so that their thread is asleep."""
        tell(self.client, self.name, self.draw, 12)
        time.sleep(0.05)

    def telling(self) -> None:
        """Events are delivered all the time."""
        self.told()
        self.thread(self.told)

    def working(self) -> None:
        """Threads take and give back."""
        for at in range(3):
            self.thread(lambda at=at: self.client.lock(f"{self.name}:{at}").acquire().release())

    def waiting(self) -> None:
        """Threads wait in line, and sleep until they are told."""
        self.kept.append(self.client.lock(self.name).acquire())
        for _ in range(3):
            self.thread(self.wait)
        time.sleep(0.05)

    def wait(self) -> None:
        with suppress(AcquireTimeoutError):
            self.client.lock(self.name, wait=0.5, fair=self.draw.random() < 0.5).acquire().release()

    def renewing(self) -> None:
        self.kept += [self.client.lock(f"{self.name}:{at}", ttl=0.2).acquire() for at in range(50)]

    def closing(self) -> None:
        """Clients come and go."""

        def visit() -> None:
            with Client(self.url) as client:
                client.lock(self.name + ":visit").acquire()

        self.thread(visit)


HISTORIES = ("idle", "used", "told", "telling", "working", "waiting", "renewing", "closing")


def child(parent: Parent, number: int) -> None:
    """What a child does, with its parent's client or its own."""
    client = parent.client if number % 2 else Client(parent.url, ttl=TTL)
    with client.lock(f"{parent.name}:child:{number}") as held:
        held.check()
    tell(client, parent.name, random.Random(number), 6)
    time.sleep(0.02)  # in which its own thread delivers what it told


def fork(parent: Parent, number: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        faulthandler.dump_traceback_later(PATIENCE, file=sys.__stderr__)
        child(parent, number)
        code = 0
    except BaseException as error:
        print(f"child {number}: {error!r}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def judge(pids: dict[int, float], codes: Counter[str]) -> None:
    """Waits for one child; those that hang are ended."""
    for pid, until in list(pids.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            codes[str(os.waitstatus_to_exitcode(status))] += 1
        elif time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            codes["hangs"] += 1
        else:
            continue
        del pids[pid]
        return
    time.sleep(0.001)


def main(url: str, history: str, children: int, seed: int) -> None:
    logging.basicConfig(level=logging.WARNING, stream=open(os.devnull, "w"))  # noqa: SIM115
    parent = Parent(url, seed)
    getattr(parent, history)()
    pids: dict[int, float] = {}
    codes: Counter[str] = Counter()
    for number in range(children):
        while len(pids) >= TOGETHER:
            judge(pids, codes)
        pids[fork(parent, number)] = time.monotonic() + PATIENCE + 2
    while pids:
        judge(pids, codes)
    print(dict(codes))
    sys.stdout.flush()
    os._exit(0)  # its threads go on for ever


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
