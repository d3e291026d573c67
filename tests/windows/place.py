"""A place to play: servers that can be stopped and started, and programs for Windows that run under wine."""

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tethered import PATIENCE, Server  # noqa: E402

# Programs that stay keep what they get, so no pipe.
SILENT = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Place:
    """The servers, and wine with a prefix of its own."""

    def __init__(self, wine, programs, server, terminator):
        self.wine, self.programs, self.server, self.terminator = wine, programs, server, terminator
        self.folder = Path(tempfile.mkdtemp(prefix="locktender-windows-"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOCKTENDER_", "WINE", "PLAY_"))}
        # Neither .NET nor a browser is installed into the prefix.
        own = {"WINEPREFIX": str(self.folder / "prefix"), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml="}
        self.environment = kept | own
        self.servers = {}

    def __enter__(self):
        return self

    def boot(self, limit):
        """Makes the prefix. Its server stays, since each start of it takes seconds."""
        (self.folder / "prefix").mkdir()
        if server := shutil.which("wineserver"):
            subprocess.run([server, "-p"], env=self.environment, **SILENT, timeout=limit)
        subprocess.run([self.wine, "wineboot", "--init"], env=self.environment, **SILENT, timeout=limit)
        # Node refuses to start on an older Windows, which some versions of wine say they are.
        subprocess.run([self.wine, "winecfg", "/v", "win10"], env=self.environment, **SILENT, timeout=limit)

    @property
    def system(self):
        """The folder of the libraries that all programs find."""
        return self.folder / "prefix/drive_c/windows/system32"

    def __exit__(self, *error):
        for server in self.servers.values():
            server.end()
        if server := shutil.which("wineserver"):
            # The one of this prefix.
            subprocess.run([server, "-k"], env=self.environment, **SILENT, timeout=PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)

    def started(self, cluster=False):
        """A server that was started, by its URL."""
        server = Server(self.server, self.folder, cluster)
        url = f"redis{'+cluster' if cluster else ''}://127.0.0.1:{server.port}"
        self.servers[url] = server
        if cluster:
            # One line may have so many.
            for first in range(0, 16_384, 1_024):
                server.ask("CLUSTER", "ADDSLOTS", *range(first, first + 1_024))
            end = time.monotonic() + PATIENCE
            while "cluster_state:ok" not in server.ask("CLUSTER", "INFO"):
                if time.monotonic() > end:
                    raise RuntimeError("the cluster is not ready")
                time.sleep(0.05)
        return url

    @contextlib.contextmanager
    def with_tls(self, url):
        """The URL of the same server over TLS."""
        port = url.rpartition(":")[2]
        words = [sys.executable, str(self.terminator), port, "server"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as terminator:
            try:
                yield f"rediss://127.0.0.1:{terminator.stdout.readline().strip()}"
            finally:
                terminator.kill()

    def run(self, program, *words, limit, code=0, **variables):
        """What a program writes that ends within this time and with this code. What it asks for is done meanwhile."""
        command = [self.wine, str(self.programs / program), *map(str, words)]
        both = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, env=self.environment | variables, text=True, errors="replace", cwd=self.folder, **both)
        lines, written = queue.Queue(), []
        reader = threading.Thread(target=lambda: ([*map(lines.put, process.stdout)], lines.put(None)), daemon=True)
        reader.start()
        end = time.monotonic() + limit
        try:
            while (line := lines.get(timeout=max(0.0, end - time.monotonic()))) is not None:
                if line.startswith("@"):
                    self.do(*line[1:].split())
                    process.stdin.write("done\n")
                    process.stdin.flush()
                else:
                    written.append(line)
                    print(f"   {line}", end="", flush=True)
            ended = process.wait(max(1.0, end - time.monotonic()))
        except (queue.Empty, subprocess.TimeoutExpired):
            raise RuntimeError(f"{program} does not end within {limit} s") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE)
            process.stdin.close()
        if ended != code:
            raise RuntimeError(f"{program} ended with {ended}, not {code}")
        return "".join(written)

    def do(self, what, url):
        server = self.servers[url]
        {"stop": server.stop, "start": server.start}[what]()
