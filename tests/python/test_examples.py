"""Examples: every Python example runs."""

import os
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.checkout import ROOT
from support.prefork import running
from support.server import RealServer

HERE = ROOT / "examples/python"
SAYS = {
    "hello": "given back",
    "extend": "the lock was lost: expired",
    "fencing": "its withdrawal: False\nbalance 90",
    "fair": "customer 3 is served",
    "handover": "no longer held: False",
    "fastapi_orders": "200 {'order': 42, 'fence': ",
    "apscheduler_nightly": " ran\n",
    "celery_beat": " ran\n",
    "celery_report": "made the report of monday",
    "mail_job": "done after 2 attempts",
}
# A framework's own warnings are not ours.
FRAMEWORKS = {"fastapi_orders", "apscheduler_nightly", "celery_beat", "celery_report"}
# Each process of these is one replica, which runs a task once per scheduled time.
REPLICAS = ("apscheduler_nightly", "celery_beat")
# They are no programs, but are served.
SERVICES = {"django_orders": "test_django.py"}


def test_every_example_is_run():
    assert {path.stem for path in HERE.glob("*.py")} == {*SAYS, *SERVICES}
    assert all((ROOT / "tests/python" / test).is_file() for test in SERVICES.values())


def run(example: str, environment: dict[str, str]) -> str:
    warnings = "-Wignore" if example in FRAMEWORKS else "-Werror"
    done = subprocess.run(
        [sys.executable, warnings, HERE / f"{example}.py"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", [example for example in SAYS if example not in REPLICAS])
def test_example(server: RealServer, tmp_path, example):
    environment = {**os.environ, "LOCKTENDER_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1"}
    if example == "celery_report":
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING", "--concurrency=3")
        with running(tmp_path, {**environment, "PYTHONPATH": str(HERE)}, "celery", "--app=celery_report", "worker", *quiet):
            said = run(example, environment)
    else:
        said = run(example, environment)
    assert SAYS[example] in said, said


@pytest.mark.skipif(sys.platform == "darwin", reason="no LD_PRELOAD")
@pytest.mark.parametrize("example", REPLICAS)
def test_of_replicas_whose_clocks_differ_one_runs_per_scheduled_time(server: RealServer, tmp_path, example):
    library = tmp_path / "clock.so"
    compiler = (os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o")
    subprocess.run([*compiler, library, ROOT / "tests/clock.c"], check=True)

    def replica(ahead_ms: int) -> str:
        clock = tmp_path / str(ahead_ms)
        clock.write_bytes(struct.pack("=q", ahead_ms * 1000))
        preloaded = {"LD_PRELOAD": str(library), "LOCKTENDER_CLOCK": str(clock)}
        return run(example, {**os.environ, "LOCKTENDER_URL": server.url, **preloaded})

    with ThreadPoolExecutor() as pool:
        lines = [line for said in pool.map(replica, (0, 300, 700)) for line in said.splitlines()]
    ran = [line.removesuffix(" ran") for line in lines if line.endswith(" ran")]
    done = {line.removesuffix(" left out: done") for line in lines if line.endswith(" left out: done")}
    # A replica that is a scheduled time behind the others, as on a busy machine, finds a later one begun.
    missed = [line for line in lines if line.endswith(" left out: missed")]
    assert ran and len(ran) == len(set(ran)), lines
    assert (done or missed) and done <= set(ran), lines
