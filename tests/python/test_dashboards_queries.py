"""Dashboards and alerts, by the programs that they are for: every query is answered, and every rule holds.

They need Prometheus and InfluxDB 1.x on PATH. A test says so if they are missing.
"""

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.dashboards import HERE, RULES, Query, dashboard, filled, queries
from support.checkout import ROOT, prepared
from support.observe import PATIENCE, until
from support.page import Page
from support.program import Tether
from support.sample_events import points
from support.sample_metrics import APPS, CLIENTS, CATEGORIES, openmetrics

pytestmark = pytest.mark.long

# As often as the sample is scraped before a query is asked, and the seconds between.
SCRAPES = 12
INTERVAL = 0.25
# The time that the dashboard shows, in seconds.
SHOWN = 30


def program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: install the Debian package {package}")
    return found


def asked(url: str, parameters: dict[str, str] | None = None, data: bytes | None = None) -> Any:
    """The answer of a server on this machine, from JSON."""
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(parameters or {})}", data, timeout=PATIENCE) as reply:
        text = reply.read()
    return json.loads(text) if text.startswith(b"{") else text


def answers(url: str) -> bool:
    try:
        asked(url)
        return True
    except OSError:
        return False


class Started:
    """A server that is ready, on a port of its own choice: it says in its log which."""

    def __init__(self, directory: Path, command: list[str], health: str) -> None:
        self._log = directory / "log"
        self._log.touch()  # the tether's shell may not have come so far
        self._tether = Tether(directory, *command)
        until(lambda: self._tether.ended() or self._said_port(), PATIENCE)
        assert self._said_port(), self._log.read_text()
        self.url = f"http://127.0.0.1:{self._said_port()}"
        until(lambda: answers(self.url + health), PATIENCE)

    def _said_port(self) -> str:
        found = re.search(r'msg="Listening on(?: HTTP)?".* addr(?:ess)?=127\.0\.0\.1:(\d+)', self._log.read_text())
        return found[1] if found else ""

    def close(self) -> None:
        self._tether.close()


class Scraped(ThreadingHTTPServer):
    """An application's metrics: each time when it is asked, everything has happened once more."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Metrics)
        self.times = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Metrics(BaseHTTPRequestHandler):
    server: Scraped

    def do_GET(self) -> None:
        self.server.times += 1
        self.send_response(200)
        self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.end_headers()
        self.wfile.write(openmetrics(self.server.times).encode())

    def log_message(self, *_: Any) -> None:
        pass


class Prometheus(NamedTuple):
    """The URL of one that has scraped the sample, and the time of a scrape: at this moment every series has a value."""

    url: str
    at: float

    def result(self, way: str, **parameters: str) -> Any:
        return asked(f"{self.url}/api/v1/{way}", parameters)["data"]["result"]

    def numbers(self, query: Query, text: str) -> list[float]:
        if query.instant:
            found = [each["value"] for each in self.result("query", query=text, time=str(self.at))]
        else:
            span = {"start": str(self.at - SHOWN), "end": str(self.at), "step": "1s"}
            found = [value for each in self.result("query_range", query=text, **span) for value in each["values"]]
        return [float(value) for _, value in found if value != "NaN"]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    command = program("prometheus", "prometheus")
    directory = tmp_path_factory.mktemp("prometheus")
    with closing(Scraped()) as scraped, closing(scraping(directory, command, scraped.server_port)) as started:
        yield Prometheus(started.url, until(lambda: last_of_many(Prometheus(started.url, 0)), PATIENCE))


def scraping(directory: Path, command: str, port: int) -> Started:
    """A Prometheus that scrapes this port."""
    job = {"job_name": "locktender", "metrics_path": "/metrics", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    every = f"{INTERVAL * 1000:.0f}ms"
    times = {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": "1s"}
    # JSON is YAML, too.
    (directory / "prometheus.yml").write_text(json.dumps({"global": times, "rule_files": [str(RULES)], "scrape_configs": [job]}))
    words = [f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"]
    return Started(directory, [command, *words, "--web.listen-address=127.0.0.1:0"], "/-/ready")


def last_of_many(prometheus: Prometheus) -> float:
    """The time of the last scrape, or 0 before there were enough of them."""
    enough = prometheus.result("query", query=f"count_over_time(locktender_acquire_rounds_total[1m]) >= {SCRAPES}")
    times = prometheus.result("query", query="max(max_over_time(timestamp(locktender_acquire_rounds_total)[1m:250ms]))")
    return float(times[0]["value"][1]) if enough else 0


INFLUXDB = """
reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
dir = "{directory}/meta"
[data]
dir = "{directory}/data"
wal-dir = "{directory}/wal"
[http]
bind-address = "127.0.0.1:0"
[monitor]
store-enabled = false
"""


@pytest.fixture(scope="module")
def influxdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an InfluxDB that has the sample's points, up to now."""
    with closing(keeping(tmp_path_factory.mktemp("influxdb"), program("influxd", "influxdb"))) as started:
        asked(f"{started.url}/write", {"db": "locktender"}, points(time.time_ns()).encode())
        yield started.url


def keeping(directory: Path, command: str) -> Started:
    """An InfluxDB with an empty database."""
    (directory / "influxdb.conf").write_text(INFLUXDB.format(directory=directory))
    started = Started(directory, [command, "run", "-config", f"{directory}/influxdb.conf"], "/ping")
    asked(f"{started.url}/query", {"q": "CREATE DATABASE locktender"}, b"")
    return started


class Demo(NamedTuple):
    """The demo's troubles, as a Prometheus and an InfluxDB know them."""

    prometheus: Prometheus
    influxdb: str
    # The alerts that the demo names.
    alerts: set[str]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    prometheus, influxd = program("prometheus", "prometheus"), program("influxd", "influxdb")
    with closing(keeping(tmp_path_factory.mktemp("influxdb"), influxd)) as kept:
        words: list[str | Path] = [prepared("bin/python"), "-u", ROOT / "examples/sweetroll", "--troubles", "--metrics=0"]
        words += [f"--seconds={SHOWN}", f"--influxdb={kept.url}/write?db=locktender"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2].partition("/")[0])
        with closing(scraping(tmp_path_factory.mktemp("prometheus"), prometheus, port)) as started:
            watched = Prometheus(started.url, 0)
            # While it lives: an alert is about now.
            firing = until(lambda: {alert["labels"]["alertname"] for alert in alerts(watched)} >= FIRES and alerts(watched), 2 * SHOWN)
            said, complaints = process.communicate(timeout=2 * SHOWN)
            assert (process.returncode, complaints) == (0, ""), said
            # The panels of what is now are asked at a moment at which somebody leads.
            times = watched.result("query", query='max(max_over_time(timestamp(locktender_held{kind="election"} > 0)[1m:250ms]))')
            named = set(re.findall(r"^   alert   (.*)$", said, re.MULTILINE))
            assert {alert["labels"]["alertname"] for alert in firing} >= named
            yield Demo(watched._replace(at=float(times[0]["value"][1])), kept.url, named)


# What the demo provokes, and needs no time to be alerted on.
FIRES = {"LocktenderOverlap", "LocktenderLockLost", "LocktenderJobDead", "LocktenderFailover"}


def alerts(prometheus: Prometheus) -> list[Any]:
    return [alert for alert in asked(f"{prometheus.url}/api/v1/alerts")["data"]["alerts"] if alert["state"] == "firing"]


def test_the_demo_fires_the_alerts_that_it_names(demo: Demo) -> None:
    assert demo.alerts == FIRES


def test_the_demo_fills_every_panel_of_prometheus(demo: Demo) -> None:
    times = {"__interval": "1s", "__interval_ms": "1000", "__rate_interval": "5s", "__range": f"{SHOWN}s", "__range_s": f"{SHOWN}"}
    variables = {"app": "(Diego|Gorn)", "category": ".*"} | times
    empty = [query for query in queries("prometheus") if not demo.prometheus.numbers(query, filled(query.text, variables))]
    assert empty == []


def test_the_demo_fills_every_panel_of_influxdb(demo: Demo) -> None:
    variables = {"__interval": "10s", "__interval_ms": "10000", "timeFilter": "time > now() - 1h", "app": "(Diego|Gorn)", "category": ".*"}
    texts = [(query.panel, filled(query.text, variables | {"lock": ""})) for query in queries("influxdb")]
    assert [panel for panel, text in texts if not influxdb_values(demo.influxdb, text)] == []


def chosen(source: str) -> list[dict[str, str]]:
    """The variables app and category, as Grafana fills them in: all, and all of them chosen one by one."""
    # A pattern stands within a string of PromQL, where a backslash is written as two.
    escaped = [re.escape(category) for category, _ in CATEGORIES]
    if source == "prometheus":
        escaped = [each.replace("\\", "\\\\") for each in escaped]
    return [{"app": ".*", "category": ".*"}, {"app": f"({'|'.join(APPS)})", "category": f"({'|'.join(escaped)})"}]


def blocks(language: str) -> list[str]:
    """The queries that docs/observability.md shows."""
    return [block.text for block in Page("docs/observability.md").blocks() if block.language == language]


def test_every_query_of_prometheus_s_dashboard_has_an_answer(prometheus: Prometheus) -> None:
    times = {"__interval": "1s", "__interval_ms": "1000", "__rate_interval": "2s", "__range": f"{SHOWN}s", "__range_s": f"{SHOWN}"}
    for variables in chosen("prometheus"):
        for query in queries("prometheus"):
            assert prometheus.numbers(query, filled(query.text, variables | times)), query


def test_prometheus_understands_the_queries_of_the_page(prometheus: Prometheus) -> None:
    for text in blocks("promql"):
        prometheus.result("query", query=text)  # an error would be a status of HTTP


def test_the_choices_of_prometheus_s_dashboard_are_the_applications_and_families(prometheus: Prometheus) -> None:
    found = []
    for variable in dashboard("prometheus")["templating"]["list"][1:]:
        match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
        assert match
        selector = filled(match[1], {"app": "shop"})
        found.append(asked(f"{prometheus.url}/api/v1/label/{match[2]}/values", {"match[]": selector})["data"])
    assert found == [sorted(APPS), sorted(category for category, _ in CATEGORIES)]


def test_all_applications_of_prometheus_s_dashboard_are_also_the_one_without_a_name(prometheus: Prometheus) -> None:
    (query,) = [query for query in queries("prometheus") if query.panel == "Hold, by application"]
    found = [len(prometheus.numbers(query._replace(instant=True), filled(query.text, variables))) for variables in chosen("prometheus")]
    assert found == [len(CLIENTS), len(APPS)]


def test_prometheus_evaluates_every_rule(prometheus: Prometheus) -> None:
    def evaluated() -> list[Any]:
        groups = asked(f"{prometheus.url}/api/v1/rules")["data"]["groups"]
        every = [rule for group in groups for rule in group["rules"]]
        return every if all(rule["health"] != "unknown" for rule in every) else []

    assert [(rule["name"], rule.get("lastError")) for rule in until(evaluated, PATIENCE) if rule["health"] != "ok"] == []


@pytest.mark.parametrize("words", ["check rules rules.yml", "test rules rules_test.yml", "check config prometheus.yml"])
def test_promtool_agrees(words: str) -> None:
    *way, file = words.split()
    done = subprocess.run([program("promtool", "prometheus"), *way, HERE / file], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_sample() -> None:
    """So the sample shows what is right. Its own check knows the older format, which has no end."""
    text = openmetrics(3).replace("# EOF\n", "").encode()
    done = subprocess.run([program("promtool", "prometheus"), "check", "metrics"], input=text, capture_output=True, timeout=PATIENCE)
    assert b"error" not in done.stderr, done.stderr.decode()


def test_every_query_of_influxdb_s_dashboard_has_an_answer(influxdb: str) -> None:
    times = {"__interval": "10s", "__interval_ms": "10000", "timeFilter": "time > now() - 1h"}
    for variables in chosen("influxdb"):
        for lock in ("", "orders"):
            for query in queries("influxdb"):
                assert influxdb_values(influxdb, filled(query.text, variables | times | {"lock": lock})), query


def test_influxdb_understands_the_queries_of_the_page(influxdb: str) -> None:
    for text in blocks("influxql"):
        influxdb_values(influxdb, text)


def influxdb_values(url: str, text: str) -> list[Any]:
    """The values of a query's answer, without times, zeros and nothings."""
    (answer,) = asked(f"{url}/query", {"db": "locktender", "q": text})["results"]
    assert "error" not in answer, f"{text}: {answer}"
    return [value for series in answer.get("series", []) for row in series["values"] for value in row[1:] if value]


def test_the_choices_of_influxdb_s_dashboard_are_the_applications_and_families(influxdb: str) -> None:
    asked_for = [variable["query"] for variable in dashboard("influxdb")["templating"]["list"][1:3]]
    found = [influxdb_values(influxdb, filled(query, {"app": "shop"})) for query in asked_for]
    assert found == [sorted(APPS), sorted(category for category, _ in CATEGORIES)]


def test_all_applications_of_influxdb_s_dashboard_are_also_the_one_without_a_name(influxdb: str) -> None:
    (query,) = [query.text for query in queries("influxdb") if query.panel == "Proved overlaps"]
    time = {"timeFilter": "time > now() - 1h"}
    found = [influxdb_values(influxdb, filled(query, variables | time)) for variables in chosen("influxdb")]
    assert found == [[len(CLIENTS) * len(CATEGORIES)], [len(APPS) * len(CATEGORIES)]]
