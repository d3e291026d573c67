"""The Django example, served by gunicorn: who is busy, who is refused, and how it ends by SIGTERM."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from locktender import Client
from support.checkout import ROOT
from support.observe import PATIENCE, until
from support.prefork import GUNICORN_WORKERS, ready_workers, running
from support.server import RealServer

HERE = ROOT / "examples/python"
COMMAND = ("gunicorn", "--config=gunicorn.conf.py", "--preload", "--workers=2", "--bind=127.0.0.1:0", "--no-control-socket", f"--chdir={HERE}", "django_orders")


class Service:
    """The service while it runs, with a server of its own."""

    def __init__(self, locks: RealServer, master: "subprocess.Popen[bytes]", log: Path) -> None:
        self.locks = locks
        self.master = master
        self._log = log
        found = until(lambda: re.search(r"Listening at: http://127.0.0.1:(\d+)", self.said()), PATIENCE)
        self._port = int(found[1])
        until(lambda: ready_workers(log.parent) == 2, PATIENCE)

    def said(self) -> str:
        return self._log.read_text()

    def pay(self, order: int) -> tuple[HTTPResponse, dict[str, object]]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            connection.request("POST", f"/orders/{order}/pay")
            answer = connection.getresponse()
            return answer, json.loads(answer.read())
        finally:
            connection.close()


@pytest.fixture
def service(servers: Callable[[], RealServer], tmp_path: Path) -> Iterator[Service]:
    locks = servers()
    (tmp_path / "gunicorn.conf.py").write_text(GUNICORN_WORKERS)
    environment = {**os.environ, "LOCKTENDER_URL": locks.url, "PYTHONDONTWRITEBYTECODE": "1"}
    with running(tmp_path, environment, *COMMAND) as master:
        yield Service(locks, master, tmp_path / "log")
    assert master.returncode == 0, (tmp_path / "log").read_text()


def refusal(answer: HTTPResponse, body: dict[str, object]) -> tuple[object, ...]:
    return answer.status, answer.headers["Retry-After"], body


def test_one_payment_at_a_time_for_each_order(service):
    with Client(service.locks.url) as replica, replica.lock("orders:7"):
        assert refusal(*service.pay(7)) == (409, "1", {"code": "ACQUIRE_TIMEOUT"})
        assert service.pay(8)[0].status == 200
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(service.pay, (7, 7)))
    paid = [body["fence"] for answer, body in answers if answer.status == 200]
    # A machine that stalls may bring the second request after the first payment.
    assert paid and len(set(paid)) == len(paid) and {answer.status for answer, _ in answers} <= {200, 409}
    service.locks.kill()
    assert refusal(*service.pay(7)) == (503, "1", {"code": "UNAVAILABLE"})


def test_by_sigterm_it_finishes_its_requests_and_frees_their_locks(service):
    with ThreadPoolExecutor() as threads:
        paying = threads.submit(service.pay, 7)
        until(lambda: service.locks.command("EXISTS", "orders:7") or paying.done())
        service.master.send_signal(signal.SIGTERM)
        assert paying.result()[0].status == 200
    assert service.master.wait(PATIENCE) == 0
    assert service.locks.command("EXISTS", "orders:7") == 0
