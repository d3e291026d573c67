"""Fleets: the private servers of the sides.

There are one, one that appends to a file, five, five of which one is down, five of which one is stopped, clusters of one, three and six primaries, and as many
servers apart.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests/python"))

from support.cluster import Cluster
from support.server import RealServer

# The primaries of the largest cluster.
MOST = 6

# A server that appends every write to a file.
APPENDS = ["--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"]


class Server:
    """A server on a free loopback port."""

    def __init__(self, stack, options=()):
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
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", place, *options]
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

    def number(self, command):
        """The number that it answers with."""
        return int(self.ask(command).split()[0].lstrip(":"))

    def info(self, section):
        return dict(line.split(":", 1) for line in self.ask(b"INFO " + section).splitlines() if ":" in line)

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
        fields = self.info(b"cpu")
        return 1e6 * (float(fields["used_cpu_user"]) + float(fields["used_cpu_sys"]))

    def stop(self):
        self.is_up = False
        self.process.send_signal(signal.SIGSTOP)

    def end(self):
        self.is_up = False
        self.process.kill()
        self.process.wait()


class Primary:
    """A node of a cluster."""

    def __init__(self, node):
        self.node = node
        self.name = f"{node.binary.kind} {node.binary.version}"
        self.host = f"127.0.0.1:{node.port}"

    def cpu_us(self):
        fields = dict(line.split(":") for line in self.node.command("INFO", "cpu").splitlines() if ":" in line)
        return 1e6 * (float(fields["used_cpu_user"]) + float(fields["used_cpu_sys"]))


def own_processors(pids):
    """Gives each server a processor of its own, if there are enough for the most servers of any place and for the client."""
    _, *others = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    if len(others) >= MOST:
        for pid, processor in zip(pids, others, strict=False):
            os.sched_setaffinity(pid, {processor})


def primaries(stack, count):
    """The nodes of a cluster."""
    nodes = Cluster(lambda **options: stack.enter_context(RealServer(**options)), count).nodes
    own_processors([node.pid for node in nodes])
    return [Primary(node) for node in nodes]


class Fleets:
    """Places by name; each is made when it is first asked for."""

    def __init__(self, stack, trust):
        self.stack, self.trust, self.places = stack, trust, {}

    def __getitem__(self, place):
        if place not in self.places and place.startswith("cluster-"):
            self.places[place] = primaries(self.stack, int(place.removeprefix("cluster-")))
        if place not in self.places:
            kind, _, count = place.partition("-")
            options = APPENDS if place == "appends" else []
            servers = [Server(self.stack, options) for _ in range(int(count or (1 if place in ("one", "appends") else 5)))]
            if kind == "apart":
                own_processors([server.process.pid for server in servers])
            elif len(servers) > 1:
                self.trust(urls(servers))
            # Not the first: who asks servers in turn shall meet it half-way.
            if place == "refused":
                servers[2].end()
            if place == "stopped":
                servers[2].stop()
            self.places[place] = servers
        return self.places[place]


def urls(servers):
    if isinstance(servers[0], Primary):
        return f"redis+cluster://{','.join(server.host for server in servers)}"
    return ",".join(server.url for server in servers)


@contextmanager
def fleets(trust):
    with ExitStack() as stack:
        yield Fleets(stack, trust)
