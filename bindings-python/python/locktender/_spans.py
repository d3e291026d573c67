"""The spans of an acquire and its hold."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from ._instruments import Attributes


class Followed:
    """An acquire and its hold. ``parent`` has the span in which the acquire began."""

    def __init__(self, parent: Context) -> None:
        self._parent = parent

    def span(
        self,
        tracer: Tracer,
        name: str,
        begun: int,
        ended: int,
        attributes: Attributes,
        error: str | None,
        event: tuple[str, Attributes] | None,
    ) -> None:
        """Makes a span that has ended. Times are nanoseconds since 1970."""
        kind = SpanKind.INTERNAL if name == "hold" else SpanKind.CLIENT
        span = tracer.start_span(name, self._parent, kind, attributes, start_time=begun)
        if event is not None:
            span.add_event(*event, ended)
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(ended)
