"""For OpenTelemetry: the metrics of locktender, and each acquire and each hold as a span.

    from locktender.opentelemetry import LocktenderInstrumentor

    LocktenderInstrumentor().instrument()

It needs the package ``opentelemetry-api``, and no other.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from typing import Any

try:
    from opentelemetry import context
    from opentelemetry.metrics import MeterProvider, get_meter
    from opentelemetry.trace import TracerProvider, get_tracer
except ModuleNotFoundError:
    raise ModuleNotFoundError("locktender.opentelemetry needs the package opentelemetry-api: pip install opentelemetry-api") from None

from ._events import logger
from ._instruments import Instruments
from ._native import Client, Metrics, __version__, _follow, _number_of, _told_all, _Told, metrics
from ._spans import Followed

__all__ = ["LocktenderInstrumentor"]

#: What else the events of an acquire and its hold say about times.
_MEASURED = {"woken": "handover", "renewed": "renewal", "extended": "renewal"}


#: Of how many clients the application is remembered.
_MOST_CLIENTS = 1_000


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
        atexit.register(follower.stop)

    def uninstrument(self, **_: Any) -> None:
        """Ends it, when the spans of what has ended are made. What is acquired or held now gets no span.

            LocktenderInstrumentor().uninstrument()

        The end of the interpreter does the same.
        """
        follower, LocktenderInstrumentor._at_work = LocktenderInstrumentor._at_work, None
        if follower is not None:
            atexit.unregister(follower.stop)
            follower.stop()
            follower.end()


class _Follower:
    """Follows acquires: ``begin`` is called where one begins, the rest on the thread that delivers events."""

    def __init__(self, client: Client | None) -> None:
        self._client = None if client is None else _number_of(client)
        self._read = metrics if client is None else client.metrics
        self._followed: dict[int, Followed] = {}
        self._tracer: Any = None
        self._instruments: Instruments | None = None
        self._apps: dict[int, str] = {}
        self._process: int | None = None
        self._is_told_all = False

    def instrument(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> None:
        with contextlib.suppress(Exception):
            self._tracer = get_tracer("locktender", __version__, tracer_provider)
        with contextlib.suppress(Exception):
            self._instruments = Instruments(get_meter("locktender", __version__, meter_provider), self._read)

    def begin(self, number: int, /) -> None:
        with contextlib.suppress(Exception):
            self._process = os.getpid()
            self._followed[number] = Followed(context.get_current())

    def stop(self) -> None:
        """Follows no more, when all is told that has happened so far; waits for that at most a second."""
        # In a forked child that has acquired nothing, nobody tells.
        if self._process == os.getpid():
            _told_all()
            deadline = time.monotonic() + 1
            while not self._is_told_all and time.monotonic() < deadline:
                time.sleep(0.001)
        _follow(None)

    def __call__(self, told: _Told, /) -> None:
        self._is_told_all |= told.number == 0
        followed = self._followed.get(told.number)
        if followed is None:
            return
        if (event := told.event) is None:
            followed.answered(told)
        elif self._client is not None and told.client != self._client:
            del self._followed[told.number]
            return
        else:
            if followed.first is None:
                followed.app = self._app(told)
            measured = "hold" if followed.note(event) else _MEASURED.get(event.kind)
            if measured is not None:
                self._record(measured, event.took, followed)
        self._settle(told.number, followed)

    def _app(self, told: _Told) -> str:
        if told.client not in self._apps:
            if len(self._apps) >= _MOST_CLIENTS:
                self._apps.clear()  # most of them have gone
            self._apps[told.client] = told.app
        return self._apps[told.client]

    def _settle(self, number: int, followed: Followed) -> None:
        # Without an event it has not begun, and nobody knows of which client it was.
        is_ours = followed.first is not None or self._client is None
        if followed.has_ended and not followed.is_told:
            followed.is_told = True
            if followed.is_counted:
                self._record("wait", followed.wait, followed)
            if is_ours and self._tracer is not None:
                with contextlib.suppress(Exception):
                    followed.acquire(self._tracer)
        if followed.is_over:
            del self._followed[number]
            if self._tracer is not None:
                with contextlib.suppress(Exception):
                    followed.hold(self._tracer)

    def _record(self, measured: str, seconds: float | None, followed: Followed) -> None:
        if self._instruments is None or (first := followed.first) is None:
            return
        with contextlib.suppress(Exception):
            self._instruments.record(measured, seconds, followed.app, first.family or "", first.lock_kind or "")

    def end(self) -> None:
        """Ends what no function of the API can end. The exit leaves it: a provider reads the last numbers then."""
        if self._instruments is not None:
            self._instruments.end()
