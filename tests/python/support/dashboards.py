"""Dashboards: the files of examples/dashboards, their queries, and the names in them."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from .checkout import ROOT

HERE = ROOT / "examples/dashboards"
SOURCES = ("prometheus", "influxdb")
RULES = HERE / "rules.yml"


class Query(NamedTuple):
    """One query of a panel, with its variables."""

    panel: str
    text: str
    # Whether it is asked for one moment, not for each moment of the shown time.
    instant: bool


class Names(NamedTuple):
    """What queries use: metrics, labels or fields, and the values of these that they compare with."""

    metrics: set[str]
    labels: set[str]
    values: set[str]


def dashboard(source: str) -> Any:
    return json.loads((HERE / f"grafana-{source}.json").read_text())


def panels(source: str) -> list[Any]:
    return [panel for panel in dashboard(source)["panels"] if panel["type"] != "row"]


def queries(source: str) -> list[Query]:
    found = [(panel["title"], target) for panel in panels(source) for target in panel["targets"]]
    return [Query(title, target.get("expr") or target["query"], target.get("instant", False)) for title, target in found]


def rules() -> list[Any]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def filled(text: str, values: dict[str, str]) -> str:
    """A query without variables, as Grafana asks it."""
    return re.sub(r"\$(\w+)", lambda match: values[match[1]], text)


def promql(texts: list[str]) -> Names:
    """The names in PromQL. A histogram's `_bucket`, `_sum` and `_count` are not part of its name."""
    text = "\n".join(texts)
    metrics = {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"\blocktender_\w+", text)}
    matchers = re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"', text)
    grouped = re.findall(r"\b(?:by|on) \(([^)]*)\)", text)
    labels = {label for label, _ in matchers} | set(re.findall(r"\w+", " ".join(grouped)))
    return Names(metrics, labels, set(alternatives(value for _, value in matchers)))


def influxql(texts: list[str]) -> Names:
    text = "\n".join(texts)
    compared = re.findall(r"\"\w+\" (?:=|!=) '([^']*)'|\"\w+\" (?:=~|!~) /\^?\(?([^/]*?)\)?\$?/", text)
    names = set(re.findall(r'"(\w+)"', text)) - {"locktender"}
    return Names(set(re.findall(r'FROM "(\w+)"', text)), names, set(alternatives(plain or pattern for plain, pattern in compared)))


def alternatives(values: Iterator[str]) -> Iterator[str]:
    for value in values:
        if "$" not in value:
            yield from value.split("|")
