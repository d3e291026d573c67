"""For OpenTelemetry: the metrics of locktender, and each acquire and each hold as a span.

    from locktender.opentelemetry import LocktenderInstrumentor

    LocktenderInstrumentor().instrument()

It needs the package ``opentelemetry-api``, and no other.
"""

from __future__ import annotations

import atexit
import contextlib
from typing import Any

try:
    from opentelemetry import context
    from opentelemetry.metrics import MeterProvider, get_meter
    from opentelemetry.trace import TracerProvider, get_tracer
except ModuleNotFoundError:
    raise ModuleNotFoundError("locktender.opentelemetry needs the package opentelemetry-api: pip install opentelemetry-api") from None

from ._events import logger
from ._instruments import Instruments
from ._native import Client, Metrics, __version__, _follow, _number_of, _Record, metrics
from ._spans import Followed

__all__ = ["LocktenderInstrumentor"]


class LocktenderInstrumentor:
    """Measures and traces locks, like any instrumentor of OpenTelemetry. A process has one at work.

        instrumentor = LocktenderInstrumentor()
        instrumentor.instrument()
        with Client("memory://example").lock("orders:42"):
            ...
        instrumentor.uninstrument()

    Both spans are children of the span in which the caller asked for the lock, in threads, tasks and greenlets. A provider that raises
    changes nothing for a lock, and prints nothing. Acquires that begin before :meth:`instrument` are in no span and no histogram.
    """

    _at_work: _Follower | None = None

    @property
    def is_instrumented_by_opentelemetry(self) -> bool:
        """Whether it is at work."""
        return LocktenderInstrumentor._at_work is not None

    def instrument(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        client: Client | None = None,
        **_: Any,
    ) -> None:
        """Begins, with the global providers unless others are given, for all clients of the process or for one.

            LocktenderInstrumentor().instrument(client=client)

        While it is at work, this does nothing but to log a warning.
        """
        if LocktenderInstrumentor._at_work is not None:
            logger.warning("locktender is instrumented already")
            return
        LocktenderInstrumentor._at_work = follower = _Follower(client)
        follower.instrument(tracer_provider, meter_provider)
        _follow(follower)
        # A provider that was made before ends later.
        atexit.register(_follow, None)

    def uninstrument(self, **_: Any) -> None:
        """Ends it, when the spans of what has ended are made. What is acquired or held now gets no span.

            LocktenderInstrumentor().uninstrument()

        The end of the interpreter does the same.
        """
        follower, LocktenderInstrumentor._at_work = LocktenderInstrumentor._at_work, None
        if follower is not None:
            atexit.unregister(_follow)
            _follow(None)
            follower.end()


class _Follower:
    """Follows acquires: ``begin`` is called where one begins, the rest on the thread that delivers events."""

    def __init__(self, client: Client | None) -> None:
        self._client = None if client is None else _number_of(client)
        self._read = metrics if client is None else client.metrics
        self._followed: dict[int, Followed] = {}
        self._tracer: Any = None
        self._instruments: Instruments | None = None

    def instrument(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> None:
        with contextlib.suppress(Exception):
            self._tracer = get_tracer("locktender", __version__, tracer_provider)
        with contextlib.suppress(Exception):
            self._instruments = Instruments(get_meter("locktender", __version__, meter_provider), self._read)

    def begin(self, number: int, /) -> None:
        with contextlib.suppress(Exception):
            self._followed[number] = Followed(context.get_current())

    def __call__(self, record: _Record, /) -> None:
        followed = self._followed.pop(record.number, None) if record.is_last else self._followed.get(record.number)
        # The client of an acquire that has not begun is unknown.
        if followed is None or self._client not in (None, record.client):
            return
        if record.time is not None and self._instruments is not None:
            with contextlib.suppress(Exception):
                self._instruments.record(*record.time)
        if record.span is not None and self._tracer is not None:
            with contextlib.suppress(Exception):
                followed.span(self._tracer, *record.span)

    def end(self) -> None:
        """Ends what no function of the API can end. The exit leaves it: a provider reads the last numbers then."""
        if self._instruments is not None:
            self._instruments.end()
