"""The spans of an acquire and its hold. They are made when these end: none is ever left open."""

from __future__ import annotations

import time

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from ._native import Event, _Told

_HOLD_ENDS = {"released", "handed_over", "expired", "lost", "race", "dropped"}
_ACQUIRE_ENDS = {"acquired", "not_acquired", "timed_out", "cancelled", "failed", "skipped", "done", "dead"}

_Attributes = dict[str, str | int | float]


class Followed:
    """An acquire and its hold, as far as their events have come. ``parent`` has the span in which the acquire began."""

    def __init__(self, parent: Context) -> None:
        self._parent = parent
        self._begun = time.time()
        self._attempts = 0
        self._ending: Event | None = None  # the event that ended the acquire
        self._granted: Event | None = None
        self._over: Event | None = None  # how the hold ended
        self._answer: _Told | None = None
        #: The first event: it has what all of them have.
        self.first: Event | None = None
        #: The application.
        self.app = ""
        #: Whether its acquire's span was made.
        self.is_told = False

    def note(self, event: Event) -> bool:
        """Takes an event, and says whether it ended the hold."""
        self.first = self.first or event
        if event.kind == "attempt":
            self._attempts += 1
        elif event.kind in _HOLD_ENDS and self._granted is not None and self._over is None:
            self._over = event
            return True
        elif event.kind in _ACQUIRE_ENDS and self._granted is None:
            self._ending = event
            if event.kind == "acquired":
                self._granted = event
        return False

    def answered(self, answer: _Told) -> None:
        """Takes the answer that the caller got."""
        self._answer = answer

    @property
    def has_ended(self) -> bool:
        """Whether the acquire has ended. Of one that its caller left, the core says how it ended, if it had begun."""
        if self._answer is None:
            return False
        if not self._answer.left or not self._answer.begun:
            return True
        return self._ending is not None

    @property
    def is_over(self) -> bool:
        """Whether the acquire has ended, and so has its hold, if there was one."""
        return self.has_ended and (self._granted is None or self._over is not None)

    @property
    def is_counted(self) -> bool:
        """Whether a client's metrics count the acquire: not one that was refused before it asked, whose end took no time."""
        return self._ending is not None and self._ending.took is not None

    @property
    def wait(self) -> float:
        """How long the acquire took, in seconds."""
        if self._ending is not None and self._ending.took is not None:
            return self._ending.took
        return max(self._answer.at - self._begun, 0.0) if self._answer else 0.0

    def acquire(self, tracer: Tracer) -> None:
        """Makes the acquire's span, once it has ended."""
        if (answer := self._answer) is None:
            return
        attributes = self._attributes(self._end(answer))
        attributes |= {"locktender.attempts": self._attempts, "locktender.wait": self.wait}
        if answer.failure:
            attributes["error.type"] = answer.failure[0]
        begun = _ns(self._begun)
        span = tracer.start_span("acquire", self._parent, SpanKind.CLIENT, attributes, start_time=begun)
        if answer.failure:
            span.set_status(Status(StatusCode.ERROR, answer.failure[1]))
        span.end(max(_ns(self._ending.at if self._ending else answer.at), begun))

    def _end(self, answer: _Told) -> str:
        # Without an event it has not begun.
        if self._ending is not None:
            return self._ending.kind
        return "failed" if answer.failure else "cancelled"

    def hold(self, tracer: Tracer) -> None:
        """Makes the hold's span, if there was a hold and it has ended."""
        if (granted := self._granted) is None or (over := self._over) is None:
            return
        attributes = self._attributes(over.kind)
        is_error = over.kind in ("lost", "race")
        if is_error:
            attributes["error.type"] = "LOCK_LOST" if over.kind == "lost" else "race"
        if over.reason is not None:
            attributes["locktender.reason"] = over.reason
        span = tracer.start_span("hold", self._parent, SpanKind.INTERNAL, attributes, start_time=_ns(granted.at))
        if is_error:
            span.add_event(over.kind, _event_attributes(over), _ns(over.at))
            span.set_status(Status(StatusCode.ERROR, over.message or over.reason or over.kind))
        span.end(_ns(over.at))

    def _attributes(self, end: str) -> _Attributes:
        attributes: _Attributes = {"locktender.end": end}
        if (first := self.first) is not None:
            attributes["locktender.app"] = self.app
            told = {"lock": first.lock, "key": first.key, "kind": first.lock_kind, "family": first.family}
            attributes |= {f"locktender.{name}": value for name, value in told.items() if value is not None}
        if (granted := self._granted) is not None:
            found = {"owner": granted.owner, "fence": granted.fence, "job.attempt": granted.attempt}
            attributes |= {f"locktender.{name}": value for name, value in found.items() if value is not None}
        return attributes


def _event_attributes(event: Event) -> _Attributes:
    told = {
        "reason": event.reason,
        "rival": event.rival,
        "rival_fence": event.rival_fence,
        "overrun": event.overrun,
        "message": event.message,
    }
    return {f"locktender.{name}": value for name, value in told.items() if value is not None}


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
