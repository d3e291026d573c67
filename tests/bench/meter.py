"""The meter of a Python side: pairs of acquire and release, after a warm-up, with the fields of core/benches/sides/meter.rs."""

import asyncio
import threading
import time

WARM_UP = 0.3


class Tally:
    """What one caller counts."""

    def __init__(self, begin, seconds):
        self.begin, self.end = begin, begin + seconds
        self.last = time.perf_counter()
        self.times, self.all = [], 0

    def count(self):
        """Counts a pair; whether to go on."""
        now = time.perf_counter()
        self.all += 1
        if self.last >= self.begin:
            self.times.append(now - self.last)
        self.last = now
        return now < self.end


def report(tallies, begin, cpu):
    seconds = time.perf_counter() - begin
    times = sorted(took for tally in tallies for took in tally.times)
    fields = {
        "pairs": len(times),
        "all_pairs": sum(tally.all for tally in tallies),
        "seconds": seconds,
        "pairs_per_second": len(times) / seconds,
        "us_per_pair": seconds * 1e6 / len(times),
        "p50_us": times[len(times) // 2] * 1e6,
        "p99_us": times[len(times) * 99 // 100] * 1e6,
        "cpu_us_per_pair": cpu * 1e6 / len(times),
    }
    print(*(f"{name}={value}" for name, value in fields.items()))


def names(callers):
    return [f"bench:{caller:03}" for caller in range(callers)]


def threads(seconds, callers, pair_of):
    """`pair_of(name)` gives what a caller does over and over; each has a thread."""
    pairs = [pair_of(name) for name in names(callers)]
    pairs[0]()
    begin = time.perf_counter() + WARM_UP
    tallies = [Tally(begin, seconds) for _ in pairs]

    def caller(pair, tally):
        pair()
        while tally.count():
            pair()

    running = [threading.Thread(target=caller, args=arguments) for arguments in zip(pairs, tallies, strict=True)]
    for thread in running:
        thread.start()
    time.sleep(max(0, begin - time.perf_counter()))
    before = time.process_time()
    for thread in running:
        thread.join()
    report(tallies, begin, time.process_time() - before)


async def tasks(seconds, callers, pair_of):
    """The same with a task for each caller."""
    pairs = [pair_of(name) for name in names(callers)]
    await pairs[0]()
    begin = time.perf_counter() + WARM_UP
    tallies = [Tally(begin, seconds) for _ in pairs]

    async def caller(pair, tally):
        await pair()
        while tally.count():
            await pair()

    running = [asyncio.create_task(caller(pair, tally)) for pair, tally in zip(pairs, tallies, strict=True)]
    await asyncio.sleep(max(0, begin - time.perf_counter()))
    before = time.process_time()
    await asyncio.gather(*running)
    report(tallies, begin, time.process_time() - before)
