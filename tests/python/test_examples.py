"""The examples run."""

import os
import subprocess
import sys

import pytest
from support.checkout import ROOT
from support.server import RealServer

EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))
SAYS = {
    "hello": "given back",
    "extend": "the lock was lost: expired",
    "fencing": "its withdrawal: False\nbalance 90",
    "fair": "customer 3 is served",
    "handover": "no longer held: False",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(server: RealServer, example):
    done = subprocess.run(
        [sys.executable, "-Werror", example],
        env={**os.environ, "LOCKTENDER_URL": server.url},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert SAYS[example.stem] in done.stdout, done.stdout
