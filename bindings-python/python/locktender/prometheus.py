"""For ``prometheus_client``: a collector of what clients have counted.

    from prometheus_client import REGISTRY, start_http_server

    from locktender.prometheus import Collector

    REGISTRY.register(Collector())
    start_http_server(9464)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from prometheus_client import Metric as _Family
from prometheus_client.registry import Collector as _Collector

from ._native import Client, Metric, metrics

__all__ = ["Collector"]


class Collector(_Collector):
    """Gives a registry of ``prometheus_client`` the metrics of a client, or else of all clients of this process."""

    def __init__(self, client: Client | None = None) -> None:
        self._metrics = metrics if client is None else client.metrics

    def describe(self) -> Iterable[_Family]:
        """The names of the metrics, so that another metric with such a name is refused."""
        return [_family(metric) for metric in self._metrics()]

    def collect(self) -> Iterable[_Family]:
        """The metrics at this moment."""
        for metric in self._metrics():
            family = _family(metric)
            for sample in metric.samples:
                if sample.buckets is None:
                    family.add_sample(metric.name, sample.labels, sample.value)
                    continue
                for bound, count in sample.buckets:
                    family.add_sample(f"{metric.name}_bucket", {**sample.labels, "le": "+Inf" if bound == math.inf else str(bound)}, count)
                family.add_sample(f"{metric.name}_count", sample.labels, sample.buckets[-1][1])
                family.add_sample(f"{metric.name}_sum", sample.labels, sample.value)
            yield family


def _family(metric: Metric) -> _Family:
    return _Family(metric.name.removesuffix("_total"), metric.help, metric.kind, "seconds" if metric.name.endswith("_seconds") else "")
