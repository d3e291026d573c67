"""A holder in Python: it acquires a lock at every line `acquire` of its standard input, and releases it at every other line. It prints
the times (ns of the monotonic clock): `python python_holder.py <locktender|asyncio|redis-py|python-redis-lock> <url>`."""

import sys
import time

NAME = "bench:line"


def locktender(url):
    from locktender import Client

    lock, held = Client(url).lock(NAME), []
    return lambda: held.append(lock.acquire()), lambda: held.pop().release()


def redis_py(url):
    import redis

    lock = redis.Redis.from_url(url).lock(NAME, timeout=60)
    return lock.acquire, lock.release


def python_redis_lock(url):
    import redis
    import redis_lock

    # One object is one hold there.
    client, held = redis.StrictRedis.from_url(url), []

    def acquire():
        held.append(redis_lock.Lock(client, NAME, expire=60))
        held[0].acquire()

    return acquire, lambda: held.pop().release()


SIDES = {
    "locktender": locktender,
    "redis-py": redis_py,
    "python-redis-lock": python_redis_lock,
}


def holds(side, url):
    acquire, release = SIDES[side](url)
    for line in sys.stdin:
        if line == "acquire\n":
            acquire()
            print(time.monotonic_ns(), flush=True)
        else:
            began = time.monotonic_ns()
            release()
            print(began, flush=True)


async def holds_in_a_loop(url):
    import asyncio

    from locktender import Client

    lines, lock, held = asyncio.StreamReader(), Client(url).lock(NAME), []
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        if line == b"acquire\n":
            held.append(await lock.acquire_async())
            print(time.monotonic_ns(), flush=True)
        else:
            began = time.monotonic_ns()
            await held.pop().release()
            print(began, flush=True)


if sys.argv[1] == "asyncio":
    import asyncio

    asyncio.run(holds_in_a_loop(sys.argv[2]))
else:
    holds(*sys.argv[1:])
