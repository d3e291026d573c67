"""A place where an application is played: the blocks of its page as files, a server of its own, and the programs that run there."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
from support.page import Page  # noqa: E402

# How long anything may take that has no reason to take long.
PATIENCE = 30.0


class Tools(NamedTuple):
    """What the applications run with: a virtual environment, npm's folder, and a checkout that was built."""

    python: Path
    modules: Path
    built: Path
    server: str

    @property
    def command(self) -> Path:
        return self.built / ".venv/bin/locktender"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    json: Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(done: Any, what: str) -> Any:
    """Asks until there is an answer that is true."""
    end = time.monotonic() + PATIENCE
    while not (answer := done()):
        assert time.monotonic() < end, f"not within {PATIENCE:.0f} s: {what}"
        time.sleep(0.02)
    return answer


class Program:
    """A running program. Its output is kept, and shown when something fails."""

    def __init__(self, place: "Place", *command: Any, **environment: str) -> None:
        self.log = tempfile.NamedTemporaryFile("w+", dir=place.directory, suffix=".log", delete=False)
        self.process = subprocess.Popen(
            [str(word) for word in command],
            cwd=place.directory,
            env=place.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        return Path(self.log.name).read_text()

    def terminate(self) -> int:
        """Sends SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """Ends it and all that it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(PATIENCE)
        self.log.close()


class Place:
    """A folder for one page, with a server that ends with it."""

    def __init__(self, page: str, tools: Tools) -> None:
        self.page, self.tools = Page(page), tools
        self.directory = Path(tempfile.mkdtemp(prefix="locktender-site-"))
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("LOCKTENDER_", "PYTEST"))}
        folders = f"{tools.python.parent}{os.pathsep}{tools.command.parent}{os.pathsep}{os.environ['PATH']}"
        self.environment |= {"LOCKTENDER_URL": self.url, "PATH": folders, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        (self.directory / "node_modules").symlink_to(tools.modules)
        self.programs: list[Program] = []
        self.server = self.start_server()

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for program in reversed(self.programs):
            if error is not None and program is not self.server and program.output:
                print(f"   {' '.join(map(str, program.process.args))}\n{program.output}", flush=True)
            program.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start_server(self) -> Program:
        server = self.start(self.tools.server, "--port", self.port, "--bind", "127.0.0.1", "--save", "")
        until(lambda: "Ready to accept" in server.output, "the server is ready")
        return server

    def write(self, recipe: str, name: str, **replaced: str) -> str:
        """Writes a block of the page into a file; `replaced` is for what a page can't know, such as a port."""
        text = self.page.recipes()[recipe]
        for old, new in replaced.items():
            assert old in text, f"{recipe} has no {old}"
            text = text.replace(old, new)
        (self.directory / name).write_text(text)
        return name

    def start(self, *command: Any, **environment: str) -> Program:
        program = Program(self, *command, **environment)
        self.programs.append(program)
        return program

    def run(self, *command: Any, code: int = 0, **environment: str) -> str:
        """The output of a program that ends by itself with this code."""
        program = self.start(*command, **environment)
        ended = program.process.wait(2 * PATIENCE)
        assert ended == code, f"{' '.join(map(str, command))} ended with {ended}"
        return program.output

    def python(self, *words: Any, **environment: str) -> str:
        return self.run(self.tools.python, *words, **environment)

    def holder(self, name: str) -> str | None:
        """Who holds a lock: its owner value, as `locktender show` finds it."""
        shown = subprocess.run([self.tools.command, "show", "--json", name], env=self.environment, capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(shown.stdout)["owner"] if shown.stdout.strip() else None

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Another process has the lock."""
        holder = self.start("locktender", "hold", name)
        until(lambda: holder.output, f"{name} is held")
        yield
        holder.terminate()

    def post(self, port: int, path: str) -> Answer:
        """The answer to a request without a body: one with an empty body would have a type, which not every framework takes."""
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return self._answer(answer)
        except urllib.error.HTTPError as answer:
            return self._answer(answer)

    @staticmethod
    def _answer(answer: Any) -> Answer:
        text = answer.read().decode()
        return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, json.loads(text) if text[:1] in "[{" else text)

    def listens(self, port: int, program: Program) -> None:
        """Waits until a program listens."""

        def connects() -> bool:
            assert program.process.poll() is None, f"it ended: {program.output}"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(connects, f"something listens on {port}")


def at_once(*calls: Any) -> list[Any]:
    """The results of calls that run at one time."""
    results: list[Any] = [None] * len(calls)

    def call(number: int) -> None:
        results[number] = calls[number]()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    return results
