"""Stub of :mod:`locktender._native`: what clients have counted."""

from collections.abc import Iterator
from typing import Literal, final

@final
class Metrics:
    """What clients have counted, read at one moment. Iterating gives each :class:`Metric`.

        metrics = client.metrics()
        print(metrics.value("locktender_held", category="orders"), metrics.openmetrics())
    """

    def value(self, name: str, /, **labels: str) -> float:
        """The sum of the samples of the metric ``name`` that have all of these labels; of a histogram, the number of its times. 0 if
        there is none.
        """

    def openmetrics(self) -> str:
        """The metrics as a text in the OpenMetrics format, which Prometheus and others read. Its media type is
        ``application/openmetrics-text; version=1.0.0; charset=utf-8``.
        """

    def __iter__(self) -> Iterator[Metric]: ...
    def __len__(self) -> int: ...

@final
class Metric:
    """A metric: its name, its meaning and its values."""

    @property
    def name(self) -> str:
        """The name. That of a counter ends with ``_total``, that of a time with ``_seconds``."""

    @property
    def kind(self) -> Literal["counter", "gauge", "histogram"]:
        """``counter``, ``gauge`` or ``histogram``."""

    @property
    def help(self) -> str:
        """Its meaning, as one sentence."""

    @property
    def samples(self) -> list[Sample]:
        """One :class:`Sample` for each combination of labels."""

@final
class Sample:
    """One value of a metric, and what it is about."""

    @property
    def labels(self) -> dict[str, str]:
        """The labels with their values."""

    @property
    def value(self) -> float:
        """The number; of a histogram, the sum of its times in seconds."""

    @property
    def buckets(self) -> list[tuple[float, int]] | None:
        """Of a histogram: the upper bound of each bucket in seconds, and how many times were not longer. The last bound is infinite.
        ``None`` for a counter and a gauge.
        """
