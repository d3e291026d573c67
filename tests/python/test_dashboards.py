"""Dashboards and alerts: their files fit together, and name nothing that docs/observability.md doesn't have."""

import re
import subprocess
import sys
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.checkout import ROOT
from support.dashboards import HERE, SOURCES, Names, dashboard, influxql, panels, promql, queries, rules
from support.observe import PATIENCE
from support.page import Page
from support.program import Program
from support.server import free_port

PAGE = Page("docs/observability.md")
# What Prometheus and InfluxDB themselves add.
THEIRS = {"instance", "le"}
# What Grafana fills in by itself.
BUILT_IN = {"__interval", "__interval_ms", "__range", "__range_s", "__rate_interval", "timeFilter"}


def words_of_tables(text: str) -> set[str]:
    """Every name in a page's tables: what stands in a first cell, or as code in any cell."""
    found = set()
    for row in re.findall(r"^\|(.+)\|$", text, re.MULTILINE):
        found.update(re.findall(r"\w+", " ".join([row.split("|")[0], *re.findall(r"`([^`]*)`", row)])))
    return found


def used() -> Names:
    """The names in both dashboards and in the rules."""
    prometheus = promql([*(query.text for query in queries("prometheus")), *(rule["expr"] for rule in rules())])
    influxdb = influxql([query.text for query in queries("influxdb")])
    return Names(*(one | other for one, other in zip(prometheus, influxdb._replace(metrics=set()), strict=True)))


def test_names_are_found() -> None:
    found = promql(['sum by (app, le) (rate(locktender_wait_seconds_bucket{end=~"done|dead", app=~"$app"}[5m])) and on (kind) x{a!="b"}'])
    assert found == ({"locktender_wait_seconds"}, {"app", "le", "end", "kind", "a"}, {"done", "dead", "b"})
    found = influxql(["""SELECT max("took") FROM "locktender" WHERE "event" =~ /^(lost|overlapped)$/ AND "app" =~ /^$app$/ AND "reason" = 'x'"""])
    assert found == ({"locktender"}, {"took", "event", "app", "reason"}, {"lost", "overlapped", "x"})
    assert words_of_tables("no `text`\n| a_b, c | d `e{f}` |\n| --- | --- |\n") == {"a_b", "c", "e", "f"}


def test_every_name_stands_in_the_tables_of_the_page() -> None:
    known = words_of_tables(PAGE.text) | THEIRS
    assert [sorted(names - known) for names in used()] == [[], [], []]


def test_the_files_are_what_the_program_beside_them_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", HERE / "make", tmp_path], check=True)
    for source in SOURCES:
        file = f"grafana-{source}.json"
        assert (HERE / file).read_text() == (tmp_path / file).read_text(), "run `python3 examples/dashboards/make`"


@pytest.mark.parametrize("source", SOURCES)
def test_every_panel_has_an_id_a_place_and_words_of_its_own(source: str) -> None:
    every = dashboard(source)["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    places = [(place["x"], place["y"], place["w"], place["h"]) for place in (panel["gridPos"] for panel in every)]
    cells = [(x + right, y + down) for x, y, w, h in places for right in range(w) for down in range(h)]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24, "panels overlap"
    for panel in panels(source):
        # One sentence for a tired reader.
        assert panel["title"] and re.fullmatch(r"[A-Z][^.]*(?:\.\d[^.]*)*\.", panel["description"]), panel["description"]
        assert panel["targets"] and panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"] == {"type": source, "uid": "${datasource}"}


@pytest.mark.parametrize("source", SOURCES)
def test_a_race_is_red_and_an_overlap_that_nobody_saw_is_orange(source: str) -> None:
    (panel,) = [panel for panel in panels(source) if panel["title"] == "Validity exceeded"]
    colours = {each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"] for each in panel["fieldConfig"]["overrides"]}
    assert (colours["overlapped"], colours["unknown"]) == ("red", "orange")


@pytest.mark.parametrize("source", SOURCES)
def test_queries_use_the_variables_that_there_are(source: str) -> None:
    variables = dashboard(source)["templating"]["list"]
    names = {variable["name"] for variable in variables}
    texts = [query.text for query in queries(source)] + [variable["query"] for variable in variables]
    asked = {name for text in texts for name in re.findall(r"\$\{?(\w+)", text)}
    assert asked - BUILT_IN == names - {"datasource"}
    # A choice of applications is one of all panels; what has no category is of a server or of a client.
    assert all("$app" in query.text for query in queries(source))


def test_every_alert_says_what_it_means_and_what_to_look_at_first() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    assert len({alert["alert"] for alert in alerts}) == len(alerts) >= 9
    for alert in alerts:
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
        text = " ".join(alert["annotations"].values())
        assert "ook first at" in text
        file, _, anchor = alert["annotations"]["runbook_url"].rpartition("/main/")[2].partition("#")
        assert anchor in Page(file).anchors()
        # A label that the expression drops would be empty.
        recorded = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
        name = alert["expr"].partition("{")[0].partition(" ")[0]
        kept = re.search(r"by \(([^)]*)\)", recorded.get(name, alert["expr"]))
        assert kept and set(re.findall(r"\$labels\.(\w+)", text)) <= set(kept[1].split(", ")), alert["alert"]


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    tests = yaml.safe_load((HERE / "rules_test.yml").read_text())["tests"]
    cases = [case for test in tests for case in test["promql_expr_test"]]
    for alert in (rule["alert"] for rule in rules() if "alert" in rule):
        ends = {bool(case["exp_samples"]) for case in cases if f'"{alert}"' in case["expr"]}
        assert ends == {True, False}, alert


def test_what_compose_starts_reads_the_files_that_there_are() -> None:
    for file in HERE.rglob("*.yml"):
        yaml.safe_load(file.read_text())
    services = yaml.safe_load((HERE / "compose.yml").read_text())["services"]
    for service in services.values():
        assert re.search(r":v?\d+\.\d+", service["image"]), "an image has a version"
        for volume in service.get("volumes", []):
            assert (HERE / volume.partition(":")[0]).exists(), volume
    sources = yaml.safe_load((HERE / "provisioning/datasources/locktender.yml").read_text())["datasources"]
    assert {source["type"] for source in sources} == set(SOURCES)
    assert {source["url"] for source in sources} == {"http://prometheus:9090", "http://influxdb:8086"}
    config = yaml.safe_load((HERE / "prometheus.yml").read_text())
    assert config["rule_files"] == ["rules.yml"]


def test_the_page_beside_the_files_names_each_of_them() -> None:
    text = (HERE / "README.md").read_text()
    files = [file.relative_to(HERE) for file in HERE.iterdir() if file.name != "README.md"]
    assert [str(file) for file in files if f"`{file}" not in text] == []


def get(port: int) -> tuple[str, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as reply:
        return reply.headers["Content-Type"], reply.read().decode()


def of_the_page(language: str, port: int) -> str:
    """The block in this language that listens, then on this port."""
    blocks = Page("examples/dashboards/README.md").blocks()
    text = next(block.text for block in blocks if block.language == language and "9464" in block.text)
    assert text.count("9464") == 1
    return text.replace("9464", str(port))


SERVED = ("application/openmetrics-text; version=1.0.0; charset=utf-8", "# EOF\n")


def test_metrics_are_served_as_the_page_says_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKTENDER_URL", f"memory://{uuid.uuid4()}")
    port = free_port()
    there: dict[str, Any] = {}
    exec(of_the_page("python", port), there)
    try:
        kind, text = get(port)
        assert (kind, text[-6:]) == SERVED
    finally:
        there["server"].shutdown()
        there["server"].server_close()
        there["client"].close()


def test_metrics_are_served_as_the_page_says_in_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKTENDER_URL", f"memory://{uuid.uuid4()}")
    monkeypatch.chdir(ROOT)
    port = free_port()
    ready = "\nserver.on('listening', () => console.log(server.address().port))\nprocess.stdin.on('end', () => process.exit()).resume()"
    node = Program("node", "--input-type=module", "--eval", of_the_page("js", port) + ready)
    try:
        kind, text = get(node.number)
        assert (kind, text[-6:]) == SERVED
    finally:
        node.close()
