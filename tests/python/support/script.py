"""Python programs in separate processes: their exit, forks and signals."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping

# What a whole program may take: only a hang takes longer.
PROGRAM = 120.0


def command(program: str, *arguments: object, warnings: str = "error") -> list[str]:
    # What it printed and where its threads are is shown also if it never ends.
    options = [f"-W{warnings}", "-u", "-X", "faulthandler"]
    return [sys.executable, *options, "-c", textwrap.dedent(program), *map(str, arguments)]


def start(program: str, *arguments: object, warnings: str = "error", env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Starts it; the caller reads what it prints."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, **(env or {})}
    # A session of its own: what it has forked can be ended with it.
    return subprocess.Popen(
        command(program, *arguments, warnings=warnings), text=True, env=environment, start_new_session=True, **pipes
    )


def run(program: str, *arguments: object, warnings: str = "error", env: Mapping[str, str] | None = None) -> str:
    """Runs it to its end, which must be a good and silent one; what it printed."""
    process = start(program, *arguments, warnings=warnings, env=env)
    with process:
        try:
            out, err = process.communicate(timeout=PROGRAM)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)
            out, err = process.communicate()
            raise AssertionError(f"it did not end: {out}\n{err}") from None
    assert (process.returncode, err) == (0, ""), f"exit code {process.returncode}\n{out}\n{err}"
    return out
