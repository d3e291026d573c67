"""Fleets: the private servers of the sides. There are one, five, five of which one is down, and five of which one is stopped."""

import json
import os
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Server:
    """A server on a free loopback port."""

    def __init__(self, stack):
        listed = ROOT / ".venv/servers.json"
        if not listed.is_file():
            raise SystemExit("no list of servers: run `tests/run setup` first")
        entries = {entry["name"]: entry for entry in json.loads(listed.read_text())}
        wanted = os.environ.get("LOCKTENDER_TEST_SERVER", next(iter(entries), ""))
        if wanted not in entries:
            # One that came to this machine after the list was made isn't in it.
            raise SystemExit(f"no server {wanted!r} in the list: there are {', '.join(entries)}; `tests/run setup` makes the list again")
        entry = entries[wanted]
        self.name = f"{entry['kind']} {entry['version']}"
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        place = stack.enter_context(tempfile.TemporaryDirectory())
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", place]
        self.is_up = True
        log = Path(place) / "log"
        try:
            self.process = subprocess.Popen([entry["path"], *options], stdout=log.open("w"), stderr=subprocess.STDOUT)
        except OSError as error:
            raise SystemExit(f"{self.name} is not there any more: {error}; `tests/run setup` makes the list again") from error
        stack.callback(self.end)
        while not self.answers():
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} did not start:\n{log.read_text()}")

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except ConnectionRefusedError:
            return False
        return True

    def ask(self, command):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(command + b"\r\nQUIT\r\n")
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def connections(self):
        """How many connections of locktender there are."""
        return self.ask(b"CLIENT LIST").count(" name=locktender")

    def calls(self):
        """How many scripts it has run."""
        text = self.ask(b"INFO commandstats")
        lines = [line for line in text.splitlines() if line.startswith("cmdstat_evalsha:")]
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines)

    def cpu_us(self):
        """The processor time that it has used; nothing if it can't be asked."""
        if not self.is_up:
            return 0.0
        fields = dict(line.split(":") for line in self.ask(b"INFO cpu").splitlines() if ":" in line)
        return 1e6 * (float(fields["used_cpu_user"]) + float(fields["used_cpu_sys"]))

    def stop(self):
        self.is_up = False
        self.process.send_signal(signal.SIGSTOP)

    def end(self):
        self.is_up = False
        self.process.kill()
        self.process.wait()


class Fleets:
    """Places by name; each is made when it is first asked for."""

    def __init__(self, stack, trust):
        self.stack, self.trust, self.places = stack, trust, {}

    def __getitem__(self, place):
        if place not in self.places:
            servers = [Server(self.stack) for _ in range(1 if place == "one" else 5)]
            if len(servers) > 1:
                self.trust(urls(servers))
            # Not the first: who asks servers in turn shall meet it half-way.
            if place == "refused":
                servers[2].end()
            if place == "stopped":
                servers[2].stop()
            self.places[place] = servers
        return self.places[place]


def urls(servers):
    return ",".join(server.url for server in servers)


@contextmanager
def fleets(trust):
    with ExitStack() as stack:
        yield Fleets(stack, trust)
