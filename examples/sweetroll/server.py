"""Private lock servers: real ones, on free ports, gone with this process."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STARTUP = 10.0


@contextmanager
def private_servers(count: int, directory: Path) -> Iterator[list[str]]:
    """Starts so many servers; gives their URLs."""
    binary = json.loads((ROOT / ".venv/servers.json").read_text())[0]["path"]
    with ExitStack() as stack:
        yield [stack.enter_context(private_server(binary, directory / f"server-{number}")) for number in range(count)]


@contextmanager
def private_server(binary: str, directory: Path) -> Iterator[str]:
    directory.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
    # The tether kills the server when its standard input closes: when we are done, and also if we are killed.
    tether = subprocess.Popen([ROOT / "tests/tether", directory, *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert tether.stdin is not None
    try:
        wait_until_ready(port, directory / "log")
        yield f"redis://127.0.0.1:{port}"
    finally:
        tether.stdin.close()
        tether.wait()


def wait_until_ready(port: int, log: Path) -> None:
    deadline = time.monotonic() + STARTUP
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"the private server did not start:\n{log.read_text()}")
