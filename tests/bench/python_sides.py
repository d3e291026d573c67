"""The Python sides: `python python_sides.py <sync|redis-py|asyncio|redis-asyncio|once|bare> <url> <seconds> <callers>`.

Everything is imported where it is used: `once` and `bare` are measured from the start of their processes to the end.
"""

import sys


def sync(url, seconds, callers):
    import meter
    from locktender import Client

    client = Client(url)

    def pair_of(name):
        lock = client.lock(name)
        return lambda: lock.acquire().release()

    meter.threads(seconds, callers, pair_of)
    client.close()


def redis_py(url, seconds, callers):
    import meter
    import redis

    client = redis.Redis.from_url(url, max_connections=callers)

    def pair_of(name):
        lock = client.lock(name, timeout=10)

        def pair():
            lock.acquire()
            lock.release()

        return pair

    meter.threads(seconds, callers, pair_of)


async def with_asyncio(url, seconds, callers):
    import meter
    from locktender import Client

    client = Client(url)

    def pair_of(name):
        lock = client.lock(name)

        async def pair():
            held = await lock.acquire_async()
            await held.release()

        return pair

    await meter.tasks(seconds, callers, pair_of)


async def redis_asyncio(url, seconds, callers):
    import meter
    import redis.asyncio

    client = redis.asyncio.Redis.from_url(url, max_connections=callers)

    def pair_of(name):
        lock = client.lock(name, timeout=10)

        async def pair():
            await lock.acquire()
            await lock.release()

        return pair

    await meter.tasks(seconds, callers, pair_of)


def print_memory():
    """The most memory this process had; what started it doesn't count, as it would in `getrusage`."""
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM:"))
    print(f"memory_mb={int(peak.split()[1]) / 1024}")


def main(side, url, seconds, callers):
    seconds, callers = float(seconds), int(callers)
    if side == "sync":
        sync(url, seconds, callers)
    elif side == "redis-py":
        redis_py(url, seconds, callers)
    elif side == "asyncio":
        import asyncio

        asyncio.run(with_asyncio(url, seconds, callers))
    elif side == "redis-asyncio":
        import asyncio

        asyncio.run(redis_asyncio(url, seconds, callers))
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
