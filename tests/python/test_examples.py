"""Every Python example runs, on a real server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.checkout import ROOT
from support.server import RealServer

EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_example(example: Path, server: RealServer):
    environment = {**os.environ, "LOCKTENDER_URL": server.url}
    command = [sys.executable, "-W", "error", example]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
