"""The instruments of OpenTelemetry for what clients have counted, and their names there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from ._native import Metric, Metrics, Sample, _histogram_bounds

Attributes = dict[str, str | int | float]


class Instruments:
    """The instruments of one meter: those that it reads by itself, and the histograms."""

    def __init__(self, meter: Meter, read: Callable[[], Metrics]) -> None:
        self._read: Callable[[], Metrics] | None = read
        self._reading: dict[str, list[Sample]] = {}
        self._given: set[str] = set()
        self._times: dict[str, Histogram] = {}
        for metric in read():
            options: dict[str, Any] = {"unit": _unit(metric), "description": metric.help}
            if metric.kind == "histogram":
                options["explicit_bucket_boundaries_advisory"] = _histogram_bounds()
                time = metric.name.removeprefix("locktender_").removesuffix("_seconds")
                self._times[time] = meter.create_histogram(_name(metric), **options)
            elif metric.kind == "counter":
                meter.create_observable_counter(_name(metric), [self._observer(metric.name)], **options)
            elif _counted(metric):
                meter.create_observable_up_down_counter(_name(metric), [self._observer(metric.name)], **options)
            else:
                meter.create_observable_gauge(_name(metric), [self._observer(metric.name)], **options)

    def _observer(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(sample.value, _attributes(sample.labels)) for sample in self._samples(name)]

        return observe

    def _samples(self, name: str) -> list[Sample]:
        """The samples of a metric. All metrics of one collection are of one reading."""
        if self._read is None:
            return []
        if name in self._given or not self._reading:
            self._reading, self._given = {metric.name: metric.samples for metric in self._read()}, set()
        self._given.add(name)
        return self._reading[name]

    def record(self, time: str, seconds: float, attributes: Attributes) -> None:
        """Notes a time."""
        self._times[time].record(seconds, attributes)

    def end(self) -> None:
        """The meter, which forgets no instrument, reads nothing any more."""
        self._read = None


def _name(metric: Metric) -> str:
    """A metric's name there: the names of the page on observability follow from this rule."""
    name = re.sub("_(total|seconds)$", "", metric.name.replace("locktender_", "locktender.", 1))
    return f"{name}.duration" if metric.kind == "histogram" else name


def _counted(metric: Metric) -> str | None:
    """What a metric counts, by the first word of its meaning: ``hold`` of "Holds now."; none if it is no count, and can't be added up."""
    word = re.match(r"([A-Z][a-z]+)s ", metric.help)
    return word[1].lower() if word else None


def _unit(metric: Metric) -> str:
    if metric.name.endswith("_seconds"):
        return "s"
    counted = _counted(metric)
    return f"{{{counted}}}" if counted else "1"


def _attributes(labels: dict[str, str]) -> Attributes:
    attributes: Attributes = {f"locktender.{label}": value for label, value in labels.items() if label != "server"}
    return attributes | _server(labels["server"]) if "server" in labels else attributes


def _server(address: str) -> Attributes:
    """A server's attributes, by its address: a URL without credentials, or what a server of the application calls itself."""
    found = re.fullmatch(r"rediss?://\[?(.+?)\]?:(\d+)(?:/(\d+))?", address)
    if not found:
        return {"server.address": address}
    host, port, database = found.groups()
    attributes: Attributes = {"server.address": host, "server.port": int(port), "db.system.name": "redis"}
    return attributes | {"db.namespace": database} if database else attributes
