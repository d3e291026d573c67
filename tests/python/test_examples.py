"""Examples: every Python example runs."""

import os
import subprocess
import sys

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
    "apscheduler_nightly": "ran the nightly job",
    "celery_report": "made the report of monday",
    "mail_job": "done after 2 attempts",
}
# A framework's own warnings are not ours.
FRAMEWORKS = {"fastapi_orders", "apscheduler_nightly", "celery_report"}


def test_every_example_is_run():
    assert {path.stem for path in HERE.glob("*.py")} == set(SAYS)


def run(example: str, environment: dict[str, str]) -> str:
    warnings = "-Wignore" if example in FRAMEWORKS else "-Werror"
    done = subprocess.run(
        [sys.executable, warnings, HERE / f"{example}.py"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", SAYS)
def test_example(server: RealServer, tmp_path, example):
    environment = {**os.environ, "LOCKTENDER_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1"}
    if example == "celery_report":
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING", "--concurrency=3")
        with running(tmp_path, {**environment, "PYTHONPATH": str(HERE)}, "celery", "--app=celery_report", "worker", *quiet):
            said = run(example, environment)
    else:
        said = run(example, environment)
    assert SAYS[example] in said, said
