"""Many children of parents with a history, judged by their exit codes and by the time they take. A crash or a hang shows in one of
hundreds, depending on addresses and on the moment: LOCKTENDER_FORKS sets how many there are of each history (tests/README.md)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import forks
from support.server import RealServer

CHILDREN = int(os.environ.get("LOCKTENDER_FORKS", "50" if "LOCKTENDER_LONG" in os.environ else "10"))
OF_ONE_PARENT = 50


@pytest.mark.parametrize("where", ["server", "memory"])
@pytest.mark.parametrize("history", forks.HISTORIES)
def test_f33_no_child_crashes_or_hangs(server: RealServer, history: str, where: str):
    url = server.unix_url if where == "server" else "memory://forks"
    for seed in range(0, CHILDREN, OF_ONE_PARENT):
        count = min(OF_ONE_PARENT, CHILDREN - seed)
        program = [sys.executable, "-W", "ignore", str(Path(forks.__file__)), url, history, str(count), str(seed)]
        parent = subprocess.run(program, capture_output=True, text=True, timeout=60 + 2 * forks.PATIENCE)
        assert (parent.returncode, parent.stdout) == (0, f"{{'0': {count}}}\n"), f"seed {seed}: {parent.stdout}{parent.stderr}"
