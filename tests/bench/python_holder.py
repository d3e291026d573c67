"""Takes a lock at every line `acquire` of its standard input, gives it back at every other, and prints when that was (ns of the
monotonic clock): `python python_holder.py <locktender|asyncio|redis-py|python-redis-lock> <url>`."""

import sys
import time

NAME = "bench:line"


def locktender(url):
    from locktender import Client

    lock, held = Client(url).lock(NAME), []
    return lambda: held.append(lock.acquire()), lambda: held.pop().release()


def asyncio_locktender(url):
    import asyncio

    from locktender import Client

    loop, held = asyncio.new_event_loop(), []
    lock = Client(url).lock(NAME)
    acquire = lambda: held.append(loop.run_until_complete(lock.acquire_async()))
    return acquire, lambda: loop.run_until_complete(held.pop().release())


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
    "asyncio": asyncio_locktender,
    "redis-py": redis_py,
    "python-redis-lock": python_redis_lock,
}

acquire, release = SIDES[sys.argv[1]](sys.argv[2])
for line in sys.stdin:
    if line == "acquire\n":
        acquire()
        print(time.monotonic_ns(), flush=True)
    else:
        began = time.monotonic_ns()
        release()
        print(began, flush=True)
