"""Metrics: what is counted, and the text for Prometheus as its own parser reads it."""

import gc
import os
import re
import uuid
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

from locktender import Client, InvalidArgumentError, metrics
from locktender.prometheus import Collector
from support.observe import PATIENCE, until
from support.server import RealServer

PAGE = Path(__file__).parents[2] / "docs/observability.md"
HOSTILE = 'a" 1\nlocktender_held{x="\\ \x1b[2J<b>,=,'


@pytest.fixture
def client():
    with Client(f"memory://{uuid.uuid4().hex}", app="billing") as client:
        yield client


def samples(text):
    return {(sample.name, frozenset(sample.labels.items())): sample.value for family in parsed(text) for sample in family.samples}


def test_the_parser_of_prometheus_reads_the_text(client):
    with client.lock(HOSTILE), client.lock("mail:7", category='x"\\y,{z}='):
        read = client.metrics()
        families = {family.name: family for family in parsed(read.openmetrics())}
    assert [(f.name, f.type, f.documentation) for f in families.values()] == [
        (metric.name.removesuffix("_total"), metric.kind, metric.help) for metric in read
    ]
    held = {sample.labels["category"]: sample.value for sample in families["locktender_held"].samples}
    assert held == {HOSTILE.replace("\n", "\ufffd").replace("\x1b", "\ufffd"): 1, 'x"\\y,{z}=': 1}


def test_a_registry_of_prometheus_client_reads_the_same(client):
    registry = CollectorRegistry()
    registry.register(Collector(client))
    client.job("mail:7").run(lambda attempt: None)
    with client.lock("orders:42"):
        pass
    assert samples(generate_latest(registry).decode()) == samples(client.metrics().openmetrics())
    assert registry.get_sample_value("locktender_holds_total", {"app": "billing", "category": "orders", "kind": "lock", "end": "released"}) == 1
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(Collector(client))


def test_the_page_has_a_row_for_each_metric(client):
    client.cron_job("nightly", every=60).run(lambda attempt: None)
    with client.lock("orders:42"):
        rows = re.findall(r"^\| `(locktender_\w+)` \| (\w+) \| ([\w, `]*?) *\|", PAGE.read_text(), re.M)
        read = list(client.metrics())
    assert [(name, kind) for name, kind, _ in rows] == [(metric.name, metric.kind) for metric in read]
    labels = {name: ["app", *re.findall(r"\w+", labels)] for name, _, labels in rows}
    for metric in read:
        for sample in metric.samples:
            assert list(sample.labels) == labels[metric.name]


def test_the_locks_of_a_decorators_template_are_one_category(client):
    @client.lock("user-{user_id}")
    def charge(user_id):
        return user_id

    @client.job("mail-{day}", category="mails")
    def mail(attempt, day):
        return day

    for number in range(3):
        charge(number)
        mail(number)
    read = client.metrics()
    assert read.value("locktender_holds_total", category="user-{user_id}", end="released") == 3
    assert read.value("locktender_job_attempts_total", category="mails", end="done") == 3


def test_many_families_are_counted_as_a_hundred_and_others(client):
    for number in range(120):
        with client.lock(f"report-{number}"):
            pass
    [held] = [metric for metric in client.metrics() if metric.name == "locktender_held"]
    assert len(held.samples) == 101
    assert client.metrics().value("locktender_acquires_total", category="other", end="acquired") == 20


def test_the_clients_of_a_process_are_counted_together():
    before = metrics().value("locktender_acquires_total", category="together")
    with Client(f"memory://{uuid.uuid4().hex}") as one, Client(f"memory://{uuid.uuid4().hex}") as other:
        with one.lock("together:1"), other.lock("together:2"):
            assert metrics().value("locktender_held", category="together") == 2
        assert metrics().value("locktender_acquires_total", category="together") - before == 2


def test_the_totals_of_clients_that_are_gone_stay():
    def read(name, **labels):
        return metrics().value(name, app="gone", **labels)

    for number in range(3):
        with Client(f"memory://{uuid.uuid4().hex}", app="gone") as client, client.lock("orders:1"):
            assert read("locktender_held") == 1
        del client
        gc.collect()
        assert read("locktender_acquires_total", end="acquired") == number + 1
        assert read("locktender_hold_seconds") == number + 1
        assert read("locktender_held") == read("locktender_last_fence") == 0


def test_a_wrong_name_or_label_is_refused(client):
    read = client.metrics()
    with pytest.raises(InvalidArgumentError, match="no metric"):
        read.value("locktender_hold")
    with pytest.raises(InvalidArgumentError):
        read.value("locktender_held", category=7)
    assert read.value("locktender_held", colour="red") == 0 and len(read) == len(list(read))
    with pytest.raises(InvalidArgumentError, match="category"):
        client.lock("x", category="")


def test_a_forked_child_counts_from_zero(server: RealServer, name):
    with Client(server.url, response_timeout=PATIENCE) as client, client.lock(name):
        child = os.fork()
        if child == 0:
            read = client.metrics()
            os._exit(0 if read.value("locktender_held") == 0 == read.value("locktender_acquires_total") else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.metrics().value("locktender_held") == 1


def test_events_that_a_slow_callback_never_got_are_counted():
    import threading

    go_on, seen = threading.Event(), []

    def slow(event):
        go_on.wait(PATIENCE)
        seen.append(event)

    with Client(f"memory://{uuid.uuid4().hex}", on_event=slow) as client:
        for _ in range(2_000):
            with client.lock("orders:42"):
                pass
        dropped = client.metrics().value("locktender_events_dropped_total")
        go_on.set()
        until(lambda: len(seen) + dropped == 6_000, PATIENCE)
        assert dropped > 0


def test_a_server_that_is_down_is_shown(servers, name):
    server = servers()
    with Client(server.url, response_timeout=0.2) as client:
        held = client.lock(name, ttl=0.5).acquire()
        assert client.metrics().value("locktender_server_up") == 1
        # A machine that stalls may have made an answer late before.
        before = client.metrics().value("locktender_server_failures_total")
        server.kill()
        until(lambda: client.metrics().value("locktender_server_up") == 0, PATIENCE)
        assert client.metrics().value("locktender_server_failures_total") == before + 1
        held.wait_lost(PATIENCE)
        assert client.metrics().value("locktender_losses_total", reason="expired") == 1


def test_no_password_is_in_any_metric(servers):
    server = servers(password="s3cret")
    with Client(server.url, response_timeout=PATIENCE) as client, client.lock("orders:42"):
        text = client.metrics().openmetrics()
    assert "s3cret" in server.url and "s3cret" not in text and 'server="' in text
