"""Commands: the program `locktender` of each package, started by tests."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.checkout import ROOT
from support.observe import PATIENCE
from support.server import RealServer

VENV = ROOT / ".venv/bin"
PROGRAMS = {
    "rust": [str(VENV / "locktender")],  # the wheel's
    "node": ["node", str(ROOT / "bindings-node/dist/command.js")],
}
RUST = PROGRAMS["rust"]

# It says that it began, goes on after SIGTERM, and ends only by SIGKILL.
STUBBORN = "trap '' TERM; echo begun; while :; do sleep 0.02; done"


def environment(server: RealServer) -> dict[str, str]:
    return {**os.environ, "LOCKTENDER_URL": server.url}


def ran(server: RealServer, *words: str, program: list[str] = RUST) -> "subprocess.CompletedProcess[str]":
    """`locktender`, ended."""
    return subprocess.run([*program, *words], env=environment(server), capture_output=True, text=True, timeout=PATIENCE)


@contextmanager
def running(server: RealServer, *words: str, program: list[str] = RUST, **options: object) -> "Iterator[subprocess.Popen[str]]":
    """`locktender`, whose command writes a line when it has begun."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*program, *words], env=environment(server), text=True, **{**pipes, **options}) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def begun(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def noted(server: RealServer, name: str, began_ms: int, ended_ms: "int | str", state: str) -> None:
    """Notes a hold in the server's history, as its holder does."""
    owner = f"app=billing host=web-3 pid=4711 at=2026-11-21T02:22:10.123Z id={began_ms}"
    server.command("XADD", "{~lt}:log", ended_ms, "l", name, "o", owner, "f", f"{began_ms}007", "s", state)


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        # Of one that nobody waited for.
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False
