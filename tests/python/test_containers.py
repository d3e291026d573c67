"""docs/containers.md: a worker that is told to end by SIGTERM frees its lock at once."""

import os
import signal
import subprocess
import sys

from support.observe import PATIENCE, until
from support.page import Page


def test_a_worker_that_works_or_waits_ends_by_sigterm_and_frees_its_lock(servers):
    server = servers()
    (program,) = [block.text for block in Page("docs/containers.md").blocks() if block.language == "python"]
    environment = {**os.environ, "LOCKTENDER_URL": server.url}
    workers: list[subprocess.Popen[str]] = []

    def start() -> None:
        command = [sys.executable, "-Werror", "-c", program]
        workers.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))

    def end(worker: "subprocess.Popen[str]") -> None:
        worker.send_signal(signal.SIGTERM)
        assert worker.communicate(timeout=PATIENCE) == (None, "") and worker.returncode == 0

    try:
        start()
        until(lambda: server.command("EXISTS", "reports"), PATIENCE)
        start()
        until(lambda: server.line("reports"), PATIENCE)
        works, waits = workers
        end(waits)
        assert server.command("EXISTS", "reports") == 1
        end(works)
        assert server.command("EXISTS", "reports") == 0
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
