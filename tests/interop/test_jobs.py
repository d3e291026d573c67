"""Jobs that workers of three languages share, while they are killed and paused at random."""

import itertools
import os
import random
import signal
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest
from locktender import Client
from peers import Peer
from support.observe import PATIENCE
from support.server import RealServer

LANGUAGES = ("rust", "python", "node")
MAX_ATTEMPTS = 60
WORK_MS = 200


class Crew:
    """Workers that ask for the jobs again and again, and are killed or paused now and then until `calm`."""

    def __init__(self, url: str, names: list[str], file: Path, seed: int) -> None:
        self._url = url
        self._open = set(names)
        self._file = file
        self._random = random.Random(seed)
        self._started = itertools.count()
        self.calm = threading.Event()
        self.killed = self.paused = 0

    def work(self, language: str) -> None:
        while self._open:
            with Peer(language, self._url) as peer:
                self._work_until_killed(peer)

    def _work_until_killed(self, peer: Peer) -> None:
        # Of three workers one is killed and one paused, so that both happen in every run.
        started = next(self._started)
        doomed, pauses = started % 3 < 2, started % 3 == 1
        # After its start, for a worker that is killed before has done nothing.
        dies = time.monotonic() + 0.3 + self._random.random() / 2
        ended = threading.Event()

        def kill() -> None:
            if ended.wait(max(0.0, dies - time.monotonic())) or self.calm.is_set():
                return
            if pauses:
                self.paused += 1
                os.kill(peer.pid, signal.SIGSTOP)
                # Longer than a lease: it comes back late.
                ended.wait(0.5)
                os.kill(peer.pid, signal.SIGCONT)
            else:
                self.killed += 1
                peer.kill_now()

        killer = threading.Thread(target=kill) if doomed else None
        if killer:
            killer.start()
        try:
            while still_open := sorted(self._open):
                some = self._random.sample(still_open, min(len(still_open), 10))
                answer = peer.try_ask("work", names=some, file=str(self._file), max_attempts=MAX_ATTEMPTS, ms=WORK_MS)
                if answer is None:
                    return
                assert "done" in answer, answer
                if answer["done"] == len(some):
                    self._open.difference_update(some)
        finally:
            ended.set()
            if killer:
                killer.join()


@pytest.mark.parametrize(
    ("workers", "jobs", "seconds"), [(6, 40, 10), pytest.param(20, 3_000, 120, marks=pytest.mark.long)], ids=["6 workers", "20 workers"]
)
def test_each_job_is_done_once_however_many_of_its_workers_are_killed_or_paused(
    server: RealServer, tmp_path: Path, name: str, workers: int, jobs: int, seconds: int
):
    file, names = tmp_path / "begun", [f"{name}:{number}" for number in range(jobs)]
    file.touch()
    crew = Crew(server.url, names, file, seed=jobs)
    threads = [threading.Thread(target=crew.work, args=(LANGUAGES[n % 3],), daemon=True) for n in range(workers)]
    for thread in threads:
        thread.start()
    # Those that are alive then finish what is left.
    timer = threading.Timer(seconds, crew.calm.set)
    timer.start()
    for thread in threads:
        thread.join(seconds + 2 * PATIENCE)
        assert not thread.is_alive(), "a worker goes on"
    timer.cancel()
    begun = defaultdict(list)
    for line in file.read_text().splitlines():
        job, number, fence = line.rsplit(" ", 2)
        begun[job].append((int(number), int(fence)))
    assert crew.killed >= 2 and crew.paused >= 1
    with Client(server.url) as client:
        for job in names:
            status = client.job(job).status()
            # A worker that was paused adds its line late.
            attempts = sorted(begun[job])
            numbers, fences = [number for number, _ in attempts], [fence for _, fence in attempts]
            assert status.state == "done", status
            assert status.attempts <= MAX_ATTEMPTS
            # No attempt began twice, nor behind the one that is done.
            assert numbers == sorted(set(numbers)) and fences == sorted(set(fences)), attempts
            assert (numbers[-1], fences[-1]) == (status.attempts, status.result), (attempts, status)
