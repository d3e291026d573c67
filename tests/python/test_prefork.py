"""Servers and workers that load the program, use it, and then fork (F33): gunicorn --preload and Celery's prefork pool."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.observe import until
from support.prefork import asked, listens, running
from support.script import run
from support.server import RealServer

# What both do: the process that forks has used its client, and holds a lock that its children inherit.
PROGRAM = """
import os
from locktender import Client, ForkedError

name = os.environ["LOCK"]
client = Client(os.environ["SERVER"])
boot = None

def before_the_fork():
    global boot
    boot = client.lock(name + ":boot", ttl=3).acquire()

def work():
    try:
        boot.check()
    except ForkedError as error:
        inherited = error.code
    with client.lock(name, wait=60) as held:
        return f"{os.getpid()} {held.fence} {inherited} {boot.is_valid()} {held.is_valid()}"
"""

GUNICORN = """
before_the_fork()

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [work().encode()]
"""

CELERY = """
from celery import Celery
from celery.signals import worker_init

app = Celery("prefork", broker=os.environ["SERVER"] + "/5", backend=os.environ["SERVER"] + "/6")
app.conf.broker_connection_retry_on_startup = True

@worker_init.connect
def starting(**_):
    before_the_fork()

app.task(name="work")(work)
"""

ASK = """
    from prefork import app
    sent = [app.send_task("work") for _ in range(12)]
    print(*(each.get(timeout=60) for each in sent), sep="\\n")
"""


@pytest.fixture
def environment(server: RealServer, name: str, tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "SERVER": server.url, "LOCK": name, "PYTHONPATH": str(tmp_path)}


def renews(server: RealServer, name: str) -> None:
    """The master's lock is prolonged, after the forks. It has a ttl of 3 s, and is renewed after a third of that."""
    until(lambda: server.command("PTTL", name) < 2_500)
    until(lambda: server.command("PTTL", name) > 2_500)


def ended_well(log: str) -> None:
    """No child crashed, hung or was killed for it."""
    assert not [sign for sign in ("Traceback", "SIGSEGV", "SIGABRT", "SIGKILL", "TIMEOUT", "WorkerLost") if sign in log], log


def judge(lines: list[str], master: int) -> None:
    """Every answer is a child's: its own hold is valid, what it inherited isn't its."""
    answers = [line.split() for line in lines]
    assert {tuple(answer[2:]) for answer in answers} == {("FORKED", "False", "True")}
    fences = [int(answer[1]) for answer in answers]
    assert len(set(fences)) == len(fences)
    assert master not in {int(answer[0]) for answer in answers}


def test_f33_gunicorn_with_preload(server: RealServer, name, tmp_path, environment):
    (tmp_path / "prefork.py").write_text(PROGRAM + GUNICORN)
    path = tmp_path / "http"

    command = ("gunicorn", "--preload", "--workers=3", "--max-requests=2", f"--bind=unix:{path}", "--no-control-socket", "prefork:app")
    with running(tmp_path, environment, *command) as master:
        until(lambda: listens(path) or master.poll() is not None)
        owner = server.holder(name + ":boot")
        with ThreadPoolExecutor(6) as threads:
            lines = list(threads.map(lambda _: asked(path), range(60)))
        judge(lines, master.pid)
        renews(server, name + ":boot")
        assert server.holder(name + ":boot") == owner, "untouched by the children"
    log = (tmp_path / "log").read_text()
    assert master.returncode == 0, log
    ended_well(log)
    assert server.command("EXISTS", name, name + ":boot") == 0


def test_f33_celery_prefork(server: RealServer, name, tmp_path, environment):
    (tmp_path / "prefork.py").write_text(PROGRAM + CELERY)
    quiet = ("--max-tasks-per-child=4", "--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING")
    command = ("celery", "--app=prefork", "worker", "--pool=prefork", "--concurrency=3", *quiet)
    with running(tmp_path, environment, *command) as master:
        lines = run(ASK, warnings="ignore", env=environment).splitlines()
        assert len(lines) == 12
        judge(lines, master.pid)
        renews(server, name + ":boot")
    log = (tmp_path / "log").read_text()
    assert master.returncode == 0, log
    ended_well(log)
    assert server.command("EXISTS", name, name + ":boot") == 0
