"""The Python sides: `python python_sides.py <sync|redis-py|asyncio|redis-asyncio|once|bare> <url> <seconds> <callers> [new]`.

With `new` each pair has a new name, and so a lock object of its own. Everything is imported where it is used: `once` and `bare` are
measured from the start of their processes to the end.
"""

import itertools
import os
import sys


def named(pair_of, names):
    """What makes a caller's pairs; with new names each pair is made by itself."""
    if not names:
        return pair_of

    def each_new(name):
        numbers = itertools.count()
        return lambda: pair_of(f"{name}:{os.getpid()}:{next(numbers)}")()

    return each_new


def sync(url, seconds, callers, *names):
    import meter
    from locktender import Client

    client = Client(url)

    def pair_of(name):
        lock = client.lock(name)
        return lambda: lock.acquire().release()

    meter.threads(seconds, callers, named(pair_of, names))
    client.close()


def redis_py(url, seconds, callers, *names):
    import meter
    import redis

    client = redis.Redis.from_url(url, max_connections=callers)

    def pair_of(name):
        lock = client.lock(name, timeout=10)

        def pair():
            lock.acquire()
            lock.release()

        return pair

    meter.threads(seconds, callers, named(pair_of, names))


async def with_asyncio(url, seconds, callers, *names):
    import meter
    from locktender import Client

    client = Client(url)

    def pair_of(name):
        lock = client.lock(name)

        async def pair():
            held = await lock.acquire_async()
            await held.release()

        return pair

    await meter.tasks(seconds, callers, named(pair_of, names))


async def redis_asyncio(url, seconds, callers, *names):
    import meter
    import redis.asyncio

    client = redis.asyncio.Redis.from_url(url, max_connections=callers)

    def pair_of(name):
        lock = client.lock(name, timeout=10)

        async def pair():
            await lock.acquire()
            await lock.release()

        return pair

    await meter.tasks(seconds, callers, named(pair_of, names))


def print_memory():
    """The most memory this process had; what started it doesn't count, as it would in `getrusage`."""
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM:"))
    print(f"memory_mb={int(peak.split()[1]) / 1024}")


def main(side, url, seconds, callers, *names):
    seconds, callers = float(seconds), int(callers)
    if side == "sync":
        sync(url, seconds, callers, *names)
    elif side == "redis-py":
        redis_py(url, seconds, callers, *names)
    elif side == "asyncio":
        import asyncio

        asyncio.run(with_asyncio(url, seconds, callers, *names))
    elif side == "redis-asyncio":
        import asyncio

        asyncio.run(redis_asyncio(url, seconds, callers, *names))
    elif side == "once":
        from locktender import Client

        with Client(url).lock("bench:once"):
            pass
        print_memory()
    elif side == "bare":
        print_memory()
    else:
        raise SystemExit(f"no side {side}")


if __name__ == "__main__":
    main(*sys.argv[1:])
