"""Sites: the pages that `locktender watch --web` serves to tests."""

import http.client
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from commands import running
from support.observe import PATIENCE
from support.server import RealServer


class Site:
    """A page that is served."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self.process = process
        self.url = url
        self.port = urlsplit(url).port or 0
        self.path = urlsplit(url).path

    def ask(self, path: str = "", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path if path.startswith("/") else self.path + path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text

    @contextmanager
    def stream(self) -> "Iterator[Iterator[tuple[str, dict[str, Any]]]]":
        """The messages of the stream, each with its name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", f"{self.path}events")
        answer = connection.getresponse()
        assert answer.getheader("Content-Type") == "text/event-stream"

        def messages() -> Iterator[tuple[str, dict[str, Any]]]:
            event = ""
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                event = value if name == "event" else event
                if name == "data":
                    yield event, json.loads(value)

        yield messages()
        connection.close()

    def all(self) -> dict[str, Any]:
        """What a page that begins now gets."""
        with self.stream() as messages:
            return next(messages)[1]


@contextmanager
def site(server: RealServer, *words: str) -> Iterator[Site]:
    with running(server, "watch", "--web", *words) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        yield Site(process, line.strip()) if line else pytest.fail(process.stderr.read())


def line(event: str, lock: str, **fields: object) -> str:
    """A line of an application's log."""
    return json.dumps({"event": event, "lock_name": lock, "app": "Diego", **fields}) + "\n"
