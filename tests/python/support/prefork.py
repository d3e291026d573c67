"""Servers and workers that fork: run as modules, ended in order."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .observe import PATIENCE


@contextmanager
def running(place: Path, environment: Mapping[str, str], *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that ends in order by SIGTERM; its output is in place/log."""
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=place, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
