"""`locktender watch --web`: who gets the page, what it tells, and that nobody can slow it down."""

import json
import os
import re
import signal
import socket as sockets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from commands import noted, ran, running
from locktender import Client
from sites import line, site
from support.checkout import ROOT
from support.observe import PATIENCE, until
from support.server import RealServer, free_port

HOSTILE = "</script><script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def client(server: RealServer) -> Iterator[Client]:
    with Client(server.url, app="billing", ttl=5) as own:
        yield own


def test_the_page_is_for_this_machine_and_for_who_knows_its_address(server: RealServer, name: str):
    with site(server, f"{name}:*") as page:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", page.url)
        status, headers, text = page.ask()
        assert status == 200 and "<title>" in text and headers["content-type"] == "text/html; charset=utf-8"
        nonce = re.search(r"script-src 'nonce-([0-9a-f]{32})'", headers["content-security-policy"])
        assert nonce is not None and f'<script nonce="{nonce[1]}">' in text
        for each in (headers, page.ask("/")[1], page.ask("events", "HEAD")[1]):
            assert each["content-security-policy"].startswith("default-src 'none'") and "unsafe" not in each["content-security-policy"]
            assert (each["x-content-type-options"], each["referrer-policy"], each["cache-control"]) == ("nosniff", "no-referrer", "no-store")
            assert not any(header.startswith("access-control-") for header in each) and "set-cookie" not in each
        assert page.ask()[1]["content-security-policy"] != headers["content-security-policy"]
        for path in ("/", "/events", page.path[:-1], page.path[:-2] + "x/", f"/{page.path}"):
            assert page.ask(path)[0] == 403, path
        assert page.ask("other")[0] == 404
        for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1", f"127.0.0.1:{page.port + 1}"):
            status, _, text = page.ask(Host=host)
            assert status == 421 and "--port 9000, and ssh -L 9000:127.0.0.1:9000" in text, host
        for host in (f"localhost:{page.port}", f"[::1]:{page.port}"):
            assert page.ask(Host=host)[0] == 200, host
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            status, headers, _ = page.ask(method=method)
            assert (status, headers["allow"]) == (405, "GET, HEAD"), method
        assert page.ask(method="HEAD")[::2] == (200, "")
        # It listens on no other address of this machine.
        with pytest.raises(OSError), sockets.create_connection(("127.0.0.2", page.port), 1):
            pass


def test_the_stream_begins_with_all_and_goes_on_with_changes(server: RealServer, client: Client, name: str):
    with ExitStack() as stack:
        held = stack.enter_context(client.lock(f"{name}:a"))
        held.extend()  # from here on its value shows the fence
        page = stack.enter_context(site(server, "-i", "0.1", f"{name}:*"))
        messages = stack.enter_context(page.stream())
        kind, first = next(messages)
        assert kind == "all" and first["source"]["pattern"] == f"{name}:*" and first["feed"] == "nowhere"
        (lock,) = first["locks"]
        assert (lock["name"], lock["lane"], lock["fence"], "owner" in lock) == (f"{name}:a", "billing", str(held.fence), False)
        (span,) = first["spans"]
        assert (span["what"], span["source"], span["to"]) == ("holds", "server", None)
        with client.lock(f"{name}:b"):
            assert one_of(messages, lambda part: any(lock["name"] == f"{name}:b" for lock in part["locks"]))
        assert one_of(messages, lambda part: part["gone"])[0][1]["gone"] == [f"{name}:b"]
        with running(server, "run", f"{name}:a", "--", "true"):
            parts = one_of(messages, lambda part: any(span["what"] == "waits" for span in part["spans"]))
            assert [kind for kind, _ in parts] == ["part"]


def test_the_page_begins_with_the_last_hour_of_the_history(server: RealServer, client: Client, name: str):
    began = int(time.time() * 1_000) - 5_000
    for lock, state in (("a", "lost"), ("b", "holds")):
        noted(server, f"{name}:{lock}", began, "*", state)
    noted(server, f"other:{name}", began, "*", "released")
    with client.lock(f"{name}:c"), site(server, f"{name}:*") as page:
        # The end of the second one is not known.
        now, past = page.all()["spans"]
        assert (now["lock"], now["to"]) == (f"{name}:c", None)
        assert (past["lock"], past["lane"], past["who"], past["fence"]) == (f"{name}:a", "billing", "billing@web-3:4711", f"{began}007")
        assert (past["source"], past["what"], past["from"], past["end"]) == ("server", "holds", began, "lost")
        assert past["from"] + 5_000 <= past["to"] <= time.time() * 1_000


def one_of(messages: "Iterator[tuple[str, dict[str, Any]]]", wanted: Callable[[dict[str, Any]], object]) -> list[tuple[str, dict[str, Any]]]:
    """The next message of which this is true; those before it say less."""
    return [next((kind, part) for kind, part in messages if wanted(part))]


def test_events_come_from_a_file_that_grows(server: RealServer, name: str, tmp_path: Path):
    events = tmp_path / "events.jsonl"
    now = time.time()
    events.write_text(line("acquired", name, fence=7, at=now - 3) + "no event\n" + line("acquired", "other", fence=1))
    with site(server, "--events", str(events), name) as page:
        until(lambda: page.all()["numbers"]["acquired"] == 1 and page.all()["numbers"]["skipped"] == 1)
        with events.open("a") as file:
            file.write(line("overlapped", name, fence=7, at=now, overrun=1, next_fence=8))
        until(lambda: page.all()["numbers"]["overlapped"] == 1)
        seen = page.all()
        (span,) = seen["spans"]
        assert (span["lane"], span["end"], span["overlapped"], span["to"] - span["over"]) == ("Diego", "overlapped", True, 1_000)
        assert [(event["kind"], event["trouble"]) for event in seen["events"]] == [("acquired", False), ("overlapped", True)]


def test_a_file_of_events_that_is_cut_is_read_from_its_start(server: RealServer, name: str, tmp_path: Path):
    events = tmp_path / "events.jsonl"
    events.write_text(line("acquired", name, fence=7) + line("released", name, fence=7))
    with site(server, "--events", str(events), name) as page:
        until(lambda: page.all()["numbers"]["events"] == 2)
        events.write_text(line("acquired", name, fence=8))
        until(lambda: page.all()["numbers"]["acquired"] == 2)


def test_a_named_pipe_is_waited_for_while_the_page_is_shown(server: RealServer, name: str, tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with site(server, "--events", str(pipe), name) as page:
        assert page.all()["feed"] == "open"
        with pipe.open("w") as file:
            file.write(line("acquired", name, fence=7))
            file.flush()
            until(lambda: page.all()["numbers"]["acquired"] == 1)
        until(lambda: page.all()["feed"] == "ended")


def test_every_kind_of_event_is_one(server: RealServer, name: str, tmp_path: Path):
    stub = (ROOT / "bindings-python/python/locktender/_native_events.pyi").read_text()
    kinds = re.findall(r'"(\w+)"', stub[stub.rindex("def kind") :].partition("]")[0])
    events = tmp_path / "events.jsonl"
    events.write_text("".join(line(kind, name, fence=7) for kind in kinds))
    with site(server, "--events", str(events), name) as page:
        until(lambda: (numbers := page.all()["numbers"])["events"] + numbers["skipped"] == len(kinds) > 20)
        assert page.all()["numbers"]["skipped"] == 0


def test_the_events_of_an_application_show_what_the_servers_show(server: RealServer, name: str, tmp_path: Path):
    events = tmp_path / "events.jsonl"
    fields = ("lock_name", "owner", "fence", "took")
    with events.open("a") as file, site(server, "--events", str(events), name) as page:

        def write(event: Any) -> None:
            known = {field: value for field in fields if (value := getattr(event, field)) is not None}
            file.write(json.dumps({"event": event.kind, "app": "billing", **known}) + "\n")
            file.flush()

        with Client(server.url, app="billing", on_event=write) as client:
            with client.lock(name) as held:
                held.extend()

                # An acquire that takes its time is a wait, too.
                def holds() -> list[tuple[str, str]]:
                    return [(span["lane"], span["fence"]) for span in page.all()["spans"] if span["what"] == "holds"]

                until(lambda: len(holds()) == 2)
                assert holds() == [("billing", str(held.fence))] * 2
            until(lambda: all(span["to"] for span in page.all()["spans"]))


def test_events_come_by_a_pipe_until_it_ends(server: RealServer, name: str):
    with site(server, "--events", "-", name) as page:
        assert page.process.stdin is not None
        page.process.stdin.write(line("acquired", name, fence=7))
        page.process.stdin.flush()
        until(lambda: page.all()["numbers"]["acquired"] == 1)
        page.process.stdin.close()
        until(lambda: page.all()["feed"] == "ended")
        (span,) = page.all()["spans"]
        assert span["end"] == "unheard" and page.process.poll() is None


def test_hostile_names_stay_text(server: RealServer, name: str, tmp_path: Path):
    report = tmp_path / "report.html"
    with Client(server.url, app=HOSTILE) as client, client.lock(name + HOSTILE), site(server, "--report", str(report), f"{name}*") as page:
        (lock,) = page.all()["locks"]
        assert lock["name"] == name + HOSTILE
        page.process.terminate()
        assert page.process.wait(PATIENCE) == -signal.SIGTERM
    text = report.read_text()
    assert "alert(1)" in text and "<script>alert" not in text and not {"\x1b", "\u202e"} & set(text)
    assert len(re.findall("<script", text)) == 2


def test_the_report_is_the_page_with_its_data_and_no_connection(server: RealServer, client: Client, name: str, tmp_path: Path):
    report = tmp_path / "report.html"
    report.write_text("x" * 1_000_000)
    with client.lock(name), site(server, "--report", str(report), name) as page:
        assert page.all()["locks"]
        page.process.send_signal(signal.SIGINT)
        assert page.process.wait(PATIENCE) == -signal.SIGINT
    text = report.read_text()
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert data is not None and json.loads(data[1])["locks"][0]["name"] == name
    assert "connect-src 'none'" in text and text.endswith("</html>\n")


@pytest.mark.parametrize("where", ["no/report.html", ".", "fifo", "/dev/stdout", "/dev/null", "events.jsonl"])
def test_a_report_that_cannot_be_written_is_said_at_the_start(server: RealServer, tmp_path: Path, where: str):
    os.mkfifo(tmp_path / "fifo")
    events = tmp_path / "events.jsonl"
    events.write_text("precious")
    report = str(tmp_path / where)
    done = ran(server, "watch", "--web", "--events", str(events), "--report", report)
    assert (done.returncode, done.stdout) == (74, "") and f"can't write {report}: " in done.stderr
    assert events.read_text() == "precious" and {path.name for path in tmp_path.iterdir()} == {"events.jsonl", "fifo"}


def test_a_page_that_is_never_shown_leaves_an_old_report_as_it_was(server: RealServer, tmp_path: Path):
    report = tmp_path / "report.html"
    report.write_text("precious")
    with sockets.create_server(("127.0.0.1", 0)) as taken:
        busy = str(taken.getsockname()[1])
        for words, code in (
            (["--server", f"redis://127.0.0.1:{free_port()}"], 69),
            (["--port", busy], 69),
            (["--events", str(tmp_path / "missing")], 64),
        ):
            assert ran(server, "watch", "--web", "--report", str(report), *words).returncode == code
            assert report.read_text() == "precious" and list(tmp_path.iterdir()) == [report]


def test_a_report_is_for_its_owner_and_has_no_owner_value(server: RealServer, client: Client, name: str, tmp_path: Path):
    target = tmp_path / "target.html"
    target.write_text("old")
    link = tmp_path / "report.html"
    link.symlink_to(target)
    with client.lock(name) as held, site(server, "--report", str(link), name) as page:
        assert page.all()["locks"]
        page.process.terminate()
        assert page.process.wait(PATIENCE) == -signal.SIGTERM
    assert link.is_symlink() and target.stat().st_mode & 0o777 == 0o600
    assert name in target.read_text() and held.owner not in target.read_text() and held.owner.rpartition("id=")[2] not in target.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"target.html", "report.html"}


def test_a_client_that_never_reads_slows_nobody_and_is_cut_off(server: RealServer, name: str):
    with site(server, "--events", "-", f"{name}*") as page, sockets.socket() as deaf, page.stream() as messages:
        assert page.process.stdin is not None
        deaf.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
        deaf.settimeout(PATIENCE)
        deaf.connect(("127.0.0.1", page.port))
        deaf.sendall(f"GET {page.path}events HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode())
        assert next(messages)[0] == "all"
        told = 0
        # It is cut off: what it sends then is answered by a reset, at the first or the second time.
        with pytest.raises(OSError):
            while told < 100_000:
                for _ in range(500):
                    told += 1
                    page.process.stdin.write(line("released", f"{name}:{told}", fence=told, took=1, message="x" * 150))
                page.process.stdin.flush()
                one_of(messages, lambda part: part["numbers"]["events"] == told)
                deaf.sendall(b" ")
        assert page.all()["numbers"]["events"] == told
        assert one_of(messages, lambda part: part["numbers"]["events"] == told)


def test_connections_without_a_request_keep_nobody_away(server: RealServer, name: str):
    with ExitStack() as silent, site(server, name) as page, page.stream() as messages:
        assert next(messages)[0] == "all"
        half_open = [silent.enter_context(sockets.create_connection(("127.0.0.1", page.port))) for _ in range(500)]
        for connection in half_open[::2]:
            connection.sendall(b"GET / HT")
        status, _, _ = page.ask()
        assert status == 200
        # The oldest had to go, and one that follows the changes stays.
        half_open[0].settimeout(PATIENCE)
        with suppress(ConnectionResetError):
            assert half_open[0].recv(1) == b""
        assert next(messages)[0] == "part"


def test_a_stream_proves_that_it_is_of_the_program_that_gave_the_page(server: RealServer, name: str):
    with site(server, name) as page, site(server, name) as other:
        proofs = []
        for each in (page, other):
            data = re.search(r'<script id="data" type="application/json">(.*?)</script>', each.ask()[2])
            assert data is not None
            proofs.append(json.loads(data[1])["proof"])
            assert each.all()["proof"] == proofs[-1]
        assert len(set(proofs)) == 2 and not any(proof in page.url for proof in proofs)


def test_a_wrong_argument_is_said_and_no_page_is_shown(server: RealServer, tmp_path: Path):
    with sockets.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = ran(server, "watch", "--web", "--port", port)
        assert (done.returncode, done.stdout) == (69, "") and f"can't listen on 127.0.0.1:{port}" in done.stderr
    done = ran(server, "watch", "--web", "--events", str(tmp_path / "missing"))
    assert (done.returncode, done.stdout) == (64, "") and "can't read" in done.stderr
    assert ran(server, "watch", "--port", "0").returncode == 64
    assert ran(server, "watch", "--web", "--server", f"redis://127.0.0.1:{free_port()}").returncode == 69


def test_the_address_is_json_if_that_is_wanted_and_the_port_is_the_wanted_one(server: RealServer):
    port = free_port()
    with running(server, "watch", "--web", "--json", "--port", str(port)) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"].startswith(f"http://127.0.0.1:{port}/")


def test_an_outage_is_shown_and_passes(name: str):
    with RealServer() as own, site(own, "-i", "0.1") as page:
        own.kill()
        until(lambda: page.all()["outage"])
        own.restart()
        until(lambda: page.all()["outage"] is None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_every_package(server: RealServer, program: list[str], number: signal.Signals):
    with running(server, "watch", "--web", program=program) as process:
        assert process.stdout is not None and process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
