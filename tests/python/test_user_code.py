"""The program's own code, wherever the library calls it: one table of places, and of what such code may do there.

Whatever it does, a lock that is held is still renewed afterwards, a loss is told, a release works, and nothing is printed.
"""

import pytest
from support.script import run
from support.server import RealServer

PROGRAM = """
import asyncio, datetime, gc, logging, os, pickle, signal, sys, threading, time, warnings
from locktender import Client, LockLostError

url, name, place = sys.argv[1:]
events, unraisable, ended_threads = [], [], []
sys.unraisablehook = unraisable.append
threading.excepthook = ended_threads.append
logging.raiseExceptions = False  # what a handler raises is logging's to print, and it isn't asked about here

def until(observed, within=10):
    deadline = time.monotonic() + within
    while not observed():
        assert time.monotonic() < deadline, "not observed"
        time.sleep(0.005)

class Odd(BaseException):
    pass

# What it may do.

def raises():
    raise ValueError("of the program")

def raises_a_base_exception():
    raise Odd

def exits():
    raise SystemExit(3)

def blocks():
    time.sleep(1)

def locks():
    with victim.lock(name + ":again", wait=5):
        pass

def closes():
    victim.close()

def forks():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

ACTS = [raises, raises_a_base_exception, exits, blocks, locks, closes, forks]
RAISE = {raises, raises_a_base_exception, exits}
IN_THE_BACKGROUND = {
    "on_event", "handler", "formatter", "log_filter", "finalizer", "warning", "warning_of_a_coroutine"
}
act = None
done = threading.Event()

def strike(*_):
    global act
    doing, act = act, None
    if doing is not None:  # once: to lock makes new events
        try:
            doing()
        finally:
            done.set()

# Where: each is given a lock of `victim`, and has the library call `strike`.

class Number(int):
    def __float__(self):
        strike()
        return 5.0

class Period(datetime.timedelta):
    def total_seconds(self):
        strike()
        return 5.0

class Finalized(float):
    def __del__(self):
        strike()

class Shown:
    def __repr__(self):
        strike()
        return "shown"

class Path:
    def __fspath__(self):
        strike()
        return "/nowhere"

class Formatted:
    def __format__(self, specification):
        strike()
        return "formatted"

class App(str):
    def __reduce__(self):
        strike()
        return str, ("app",)

class Failure(Exception):
    def add_note(self, note):
        strike()

class Guarded(Exception):
    def __setattr__(self, attribute, value):
        strike()

class Servers:
    def __iter__(self):
        strike()
        return iter([url])

def on_event(lock):
    with Client(url, on_event=strike) as client, client.lock(lock.name):
        done.wait(10)

def logs(lock):
    with lock:
        done.wait(10)

def handler(lock):
    class Handler(logging.Handler):
        emit = strike
    with_logging(lock, Handler())

def formatter(lock):
    class Formatter(logging.Formatter):
        def format(self, record):
            strike()
            return "formatted"
    with open(os.devnull, "w") as nowhere:
        made = logging.StreamHandler(nowhere)
        made.setFormatter(Formatter())
        with_logging(lock, made)

def with_logging(lock, handler):
    logger = logging.getLogger("locktender")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        logs(lock)
    finally:
        logger.removeHandler(handler)

def log_filter(lock):
    logger = logging.getLogger("locktender")
    keep = lambda record: strike() or True
    logger.addFilter(keep)
    logger.setLevel(logging.DEBUG)
    try:
        logs(lock)
    finally:
        logger.removeFilter(keep)

def name_of_a_decorator(lock):
    def named():
        strike()
        return lock.name
    victim.lock(named)(lambda: None)()

def template_of_a_decorator(lock):
    victim.lock(lock.name + ":{what}")(lambda what: None)(Formatted())

def finalizer(lock):
    for _ in range(2):
        with victim.lock(lock.name, ttl=Finalized(5)):
            pass
    gc.collect()

def warning(lock):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = strike
        lock.acquire()  # dropped
        gc.collect()

def warning_of_a_coroutine(lock):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = strike
        lock.acquire_async()
        gc.collect()

def number(lock):
    victim.lock(lock.name, ttl=Number(5)).acquire().release()

def period(lock):
    held = lock.acquire()
    try:
        held.extend(Period(seconds=5))
    finally:
        held.release()

def refusal(lock):
    victim.lock(lock.name, ttl=Shown())

def path(lock):
    Client(url, tls_ca=Path())

def servers(lock):
    Client(Servers()).close()

def pickling(lock):
    pickle.dumps(Client(url, app=App("app")))

def signal_handler(lock):
    signal.signal(signal.SIGALRM, strike)
    with victim.lock(lock.name) as held:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        held.wait_lost(0.2)

def body(lock):
    with lock:
        strike()

def failed_body(lock, error=Failure):
    with victim.lock(lock.name, ttl=1.2) as held:
        redis.delete(lock.name)
        held.wait_lost(10)
        raise error

def failed_body_with_slots(lock):
    failed_body(lock, Guarded)

def in_a_loop(main):
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()

def done_callback(lock):
    async def main():
        task = asyncio.ensure_future(lock.acquire_async())
        task.add_done_callback(strike)
        held = await task
        await held.release()
    in_a_loop(main)

def cancelled_body(lock):
    async def main():
        async with victim.lock(lock.name, ttl=1.2):
            redis.delete(lock.name)
            try:
                await asyncio.sleep(10)
            finally:
                strike()
    in_a_loop(main)

def loop_method(lock):
    class Loop(asyncio.SelectorEventLoop):
        def create_future(self):
            strike()
            return super().create_future()
    async def main():
        async with lock:
            pass
    loop = Loop()
    loop.set_exception_handler(lambda *_: None)
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()

# And what must hold.

import redis as redis_py
redis = redis_py.Redis.from_url(url)
main = Client(url, on_event=events.append)
held = main.lock(name, ttl=3).acquire()
took_place = 0
for does in ACTS:
    victim = Client(url)
    done.clear()
    act = does
    try:
        globals()[place](victim.lock(f"{name}:{does.__name__}", ttl=3, wait=5))
    except BaseException as error:
        # What runs in the background reaches no caller, and an error of the body is the caller's.
        assert not isinstance(error, AssertionError) and (does not in RAISE or place not in IN_THE_BACKGROUND), repr(error)
        assert does is not raises or "failed_body" not in place or isinstance(error, (Failure, Guarded)), repr(error)
    assert done.wait(10), f"{does.__name__} never came to act"
    victim.close()

left = [held.remaining()]
def is_renewed():  # the first look may have come right behind a renewal, and never see that much again
    left.append(held.remaining())
    return left[-1] > left[-2]
until(is_renewed)
doomed = main.lock(name + ":doomed", ttl=3).acquire()
redis.delete(name + ":doomed")
assert doomed.wait_lost(10).reason == "missing"
until(lambda: any(event.kind == "lost" and event.lock_name == name + ":doomed" for event in list(events)))
try:
    doomed.check()
except LockLostError:
    pass
del doomed
print(held.is_valid(), held.release().outcome, ended_threads)
"""

PLACES = [
    "on_event",
    "handler",
    "formatter",
    "log_filter",
    "name_of_a_decorator",
    "template_of_a_decorator",
    "finalizer",
    "warning",
    "warning_of_a_coroutine",
    "number",
    "period",
    "refusal",
    "path",
    "servers",
    "pickling",
    "signal_handler",
    "body",
    "failed_body",
    "failed_body_with_slots",
    "done_callback",
    "cancelled_body",
    "loop_method",
]


@pytest.mark.parametrize("place", PLACES)
def test_the_programs_code_may_do_what_it_likes(server: RealServer, name, place):
    # A fork with several threads is what CPython 3.12 warns of.
    assert run(PROGRAM, server.url, name, place, warnings="ignore") == "True released []\n"


def test_a_child_that_returns_from_a_callback_ends(server: RealServer, name):
    """Its only thread is the one that delivers the parent's events."""
    program = """
        import os, sys, time
        from locktender import Client
        children = []

        def on_event(event):
            if not children:
                children.append(os.fork())

        with Client(sys.argv[1], on_event=on_event) as client:
            with client.lock(sys.argv[2]):
                while not children:
                    time.sleep(0.001)
            print(os.waitpid(children[0], 0)[1])
    """
    assert run(program, server.url, name, warnings="ignore") == "0\n"
