"""Green threads: gevent's and eventlet's, where `threading`, `time` and sockets are theirs (monkey patching)."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.observe import PATIENCE, until
from support.prefork import GUNICORN_WORKERS, asked, listens, ready_workers, running
from support.script import run
from support.server import RealServer

# The few words of both that the programs below use.
GEVENT = """
import gevent, gevent.pool
if patched:
    from gevent import monkey
    monkey.patch_all()
spawn, sleep, Timeout = gevent.spawn, gevent.sleep, gevent.Timeout
join = gevent.Greenlet.get
kill = gevent.kill
in_native_thread = lambda work: gevent.get_hub().threadpool.apply(work)
"""

EVENTLET = """
import eventlet, eventlet.tpool
if patched:
    eventlet.monkey_patch()
spawn, sleep, Timeout = eventlet.spawn, eventlet.sleep, eventlet.Timeout
join = eventlet.greenthread.GreenThread.wait
kill = eventlet.kill
in_native_thread = eventlet.tpool.execute
"""

PROGRAM = """
import logging, sys, threading, time
from locktender import Client

url, name = sys.argv[1:]
log = []

class Handler(logging.Handler):
    def emit(self, record):
        log.append(record)

logging.basicConfig(level=logging.INFO, handlers=[Handler()])
client = Client(url, log_holds=True)
lock = client.lock(name, ttl=60)
ticks = 0

def ticking():
    global ticks
    while True:
        ticks += 1
        sleep(0)

def after_ticks(number):
    began = ticks
    while ticks < began + number:
        sleep(0)

def logged(event):
    while not any(record.event == event for record in list(log)):
        sleep(0.001)
"""


@pytest.fixture(params=["gevent", "eventlet"])
def green(request: pytest.FixtureRequest, server: RealServer, name: str):
    """green(program) runs a program that has a lock and the words above, and gives what it prints."""

    def run_it(program: str, patched: bool = True) -> str:
        words = f"patched = {patched}\n{GEVENT if request.param == 'gevent' else EVENTLET}\n{PROGRAM}\n{program}"
        # eventlet says that it is deprecated.
        return run(words, server.url, name, warnings="error" if request.param == "gevent" else "ignore")

    return run_it


def test_the_first_lock_of_a_patched_program(green, server: RealServer, name):
    program = """
with lock as held:
    print(held.is_valid())
logged("acquired")
logged("released")
print(client.lock(name).inspect(), [thread.name for thread in threading.enumerate()][0])
"""
    assert green(program) == "True\nNone MainThread\n"
    assert server.command("EXISTS", name) == 0


@pytest.mark.parametrize("patched", [True, False])
def test_a_greenlet_that_waits_blocks_no_other(green, patched):
    """The holder, too, goes on only after the others have run: counted, not timed."""
    program = """
def hold():
    with lock as held:
        order.append("held")
        after_ticks(200)
        order.append("released")

def wait():
    with lock:
        order.append("waited")

order = []
spawn(ticking)
holder = spawn(hold)
after_ticks(20)
while not order:
    sleep(0)
waiter = spawn(wait)
join(holder)
join(waiter)
with lock:
    print(order)
"""
    assert green(program, patched) == "['held', 'released', 'waited']\n"


def test_a_hub_that_has_not_run_yet(green):
    """It lets the others begin as soon as somebody waits."""
    program = """
from locktender import _threads

def release(held):
    released.append(held.release().outcome)

taken, released = [], []
_threads.start("a native thread", lambda: taken.append(lock.acquire()))
while not taken:
    pass
releaser = spawn(release, taken[0])
with lock:
    join(releaser)
    print(released)
"""
    assert green(program) == "['released']\n"


def test_many_greenlets_share_one_lock(green):
    """Every exit ends its own entry, and none takes another greenlet for itself."""
    program = """
inside, fences = 0, []

def work(_):
    global inside
    with lock as held:
        inside += 1
        assert inside == 1
        fences.append(held.fence)
        sleep(0)
        assert held.is_valid() and inside == 1
        inside -= 1

spawn(ticking)
for each in [spawn(work, number) for number in range(60)]:
    join(each)
print(len(fences), fences == sorted(set(fences)), client.lock(name).inspect())
print([record.event for record in log if record.levelno > logging.INFO])
"""
    assert green(program) == "60 True None\n[]\n"


def test_what_is_thrown_into_a_waiting_greenlet_ends_the_wait(green, server: RealServer, name):
    program = """
def wait():
    lock.acquire()

def wait_a_little():
    try:
        with Timeout(0.1):
            lock.acquire()
    except Timeout:
        print("timeout")

spawn(ticking)
with lock:
    for _ in range(3):
        waiter = spawn(wait)
        while client.lock(name).inspect().waiters == 0:
            sleep(0)
        kill(waiter)
        join(spawn(wait_a_little))
        while client.lock(name).inspect().waiters:
            sleep(0)
print(client.lock(name).inspect())
"""
    assert green(program) == "timeout\ntimeout\ntimeout\nNone\n"
    assert server.command("EXISTS", name) == 0
    assert not server.line(name)


def test_a_killed_greenlet_leaves_no_key_whenever_it_is_killed(green, server: RealServer, name):
    program = """
def work():
    while True:
        with lock:
            sleep(0)

spawn(ticking)
for number in range(60):
    waiters = [spawn(work), spawn(work)]
    after_ticks(number)
    for waiter in waiters:
        kill(waiter)
with client.lock(name, wait=10):
    print("free")
"""
    assert green(program) == "free\n"
    until(lambda: server.command("EXISTS", name) == 0)


def test_native_threads_beside(green):
    program = """
def work():
    for _ in range(20):
        with lock as held:
            fences.append(held.fence)
    return "worked"

fences = []
spawn(ticking)
greenlets = [spawn(work) for _ in range(3)]
asked = [spawn(in_native_thread, work) for _ in range(3)]
print({join(each) for each in greenlets + asked}, len(set(fences)))
"""
    assert green(program) == "{'worked'} 120\n"


def test_a_loss_is_reported_while_others_run(green, server: RealServer, name):
    program = """
def watch(held):
    return held.wait_lost(60)

spawn(ticking)
held = client.lock(name, ttl=1).acquire()
print(held.wait_lost(0.01))
watcher = spawn(watch, held)
after_ticks(20)
assert client.lock(name + ":else").try_acquire().release().outcome == "released"
print("DEL", flush=True)
import redis
redis.Redis.from_url(url).delete(name)
before = ticks
loss = join(watcher)
print(loss.reason, ticks > before)
logged("lost")
"""
    assert green(program) == "None\nDEL\nmissing True\n"


def test_the_exit_gives_locks_back(green, server: RealServer, name):
    program = """
def hold(number):
    held = client.lock(f"{name}:{number}", ttl=60).acquire()
    after_ticks(1000000)
    held.release()

spawn(ticking)
held = lock.acquire()
for number in range(5):
    spawn(hold, number)
while sum(record.event == "acquired" for record in list(log)) < 6:
    sleep(0)
print("ends")
"""
    assert green(program) == "ends\n"
    assert server.command("KEYS", name + "*") == []


def test_a_forked_child_takes_nothing_of_its_parents(server: RealServer, name):
    """With gevent; eventlet's hub doesn't survive a fork."""
    program = """
import os
order = []

def wait():
    with lock:
        order.append("waited")

spawn(ticking)
held = lock.acquire()
waiters = [spawn(wait) for _ in range(3)]
while client.lock(name).inspect().waiters == 0:
    sleep(0)
child = os.fork()
if child == 0:
    after_ticks(100)
    with client.lock(name + ":child") as own:
        print(own.is_valid(), held.is_valid(), lock.try_acquire(), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
held.release()
for waiter in waiters:
    join(waiter)
print(status, order)
"""
    words = f"patched = True\n{GEVENT}\n{PROGRAM}\n{program}"
    # CPython 3.12 warns of a fork with several threads.
    assert run(words, server.url, name, warnings="ignore") == "True False None\n0 ['waited', 'waited', 'waited']\n"


SERVICE = """
import os
from locktender import Client

name = os.environ["LOCK"]
client = Client(os.environ["SERVER"])
inside = set()

def work(number):
    with client.lock(name, wait=60) as held:
        inside.add(number)
        alone = len(inside) == 1
        pause()
        inside.remove(number)
        return f"{held.fence} {alone and held.is_valid()}"
"""

GUNICORN = """
from time import sleep

def pause():
    sleep(0.005)

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [work(object()).encode()]
"""

CELERY = """
from time import sleep
from celery import Celery

def pause():
    sleep(0.005)

app = Celery("green", broker=os.environ["SERVER"] + "/7", backend=os.environ["SERVER"] + "/8")
app.conf.broker_connection_retry_on_startup = True
app.task(name="work")(work)
"""

ASK = """
    from green import app
    sent = [app.send_task("work", [number]) for number in range(30)]
    print(*(each.get(timeout=60) for each in sent), sep="\\n")
"""


@pytest.fixture
def environment(server: RealServer, name: str, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "SERVER": server.url, "LOCK": name, "PYTHONPATH": str(tmp_path)}


def judge(lines: list[str]) -> None:
    """Every answer had the lock alone."""
    fences, alone = zip(*(line.split() for line in lines))
    assert set(alone) == {"True"} and len(set(fences)) == len(fences) == 30


def test_gunicorn_with_gevent(server: RealServer, name, tmp_path, environment):
    (tmp_path / "green.py").write_text(SERVICE + GUNICORN)
    (tmp_path / "gunicorn.conf.py").write_text(GUNICORN_WORKERS)
    path = tmp_path / "http"
    command = ("gunicorn", "--worker-class=gevent", "--workers=2", f"--bind=unix:{path}", "--no-control-socket", "green:app")
    with running(tmp_path, environment, *command) as master:
        until(lambda: listens(path) or master.poll() is not None, 20)
        with ThreadPoolExecutor(15) as threads:
            judge(list(threads.map(lambda _: asked(path), range(30))))
        until(lambda: ready_workers(tmp_path) == 2, PATIENCE)
    log = (tmp_path / "log").read_text()
    assert master.returncode == 0 and "Traceback" not in log, log
    assert server.command("EXISTS", name) == 0


@pytest.mark.parametrize("pool", ["gevent", "eventlet"])
def test_celery_with_green_threads(server: RealServer, name, tmp_path, environment, pool):
    (tmp_path / "green.py").write_text(SERVICE + CELERY)
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING")
    command = ("celery", "--app=green", "worker", f"--pool={pool}", "--concurrency=10", *quiet)
    with running(tmp_path, environment, *command) as worker:
        judge(run(ASK, warnings="ignore", env=environment).splitlines())
    log = (tmp_path / "log").read_text()
    assert worker.returncode == 0 and "Traceback" not in log, log
    assert server.command("EXISTS", name) == 0
