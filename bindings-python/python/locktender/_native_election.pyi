"""Stub of :mod:`locktender._native`: the election and its leaders."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, final

from ._native_hold import AsyncHold, Hold
from ._native_values import Release

_P = ParamSpec("_P")

@final
class Leadership(Hold):
    """One term of a leader: a :class:`Hold` with a number that only rises. Made by :meth:`Election.campaign`.

        with client.election("scheduler").campaign() as leadership:
            write(row, fence=leadership.term)
    """

    @property
    def term(self) -> int:
        """The term: the fence, larger than every earlier leader's. Send it with all that the leader does, and let the receiver refuse a
        smaller one: a leader may be late.
        """

    @property
    def stopping(self) -> bool:
        """Whether :meth:`Election.stop` was called, so that the work should return soon. The term continues until then."""

    def resign(self) -> Release:
        """Ends the term, and notifies the next candidate: :meth:`Hold.release`.

            leadership.resign()

        Raises what :meth:`Hold.release` raises.
        """

    def __enter__(self) -> Leadership: ...

@final
class AsyncLeadership(AsyncHold):
    """One term of a leader, under asyncio. As :class:`Leadership`; what waits is a coroutine.

    In the body of an ``async with`` a loss cancels the body's task, as with :class:`AsyncHold`.
    """

    @property
    def term(self) -> int:
        """The term: the fence, larger than every earlier leader's. See :attr:`Leadership.term`."""

    @property
    def stopping(self) -> bool:
        """Whether :meth:`Election.stop` was called. See :attr:`Leadership.stopping`."""

    def resign(self) -> Coroutine[Any, Any, Release]:
        """Ends the term, and notifies the next candidate. See :meth:`Leadership.resign`."""

    def __aenter__(self) -> Coroutine[Any, Any, AsyncLeadership]: ...
    def _is_loss(self, error: BaseException) -> bool: ...

@final
class Leader:
    """The leader that an observer saw."""

    @property
    def owner(self) -> str:
        """The owner value. A person can read in it which program leads."""

    @property
    def term(self) -> int:
        """The term: its fence."""

    @property
    def since(self) -> datetime | None:
        """When the leader asked for its term, by its own clock (UTC)."""

    @property
    def remaining(self) -> float:
        """How many seconds its term remained on the servers at the time of the observation, if nothing renews it; ``math.inf`` if its key
        has no expiry."""

@final
class Observation:
    """What an observer saw."""

    @property
    def leader(self) -> Leader | None:
        """The leader; ``None`` if there is none, or if that is unknown."""

    @property
    def unknown(self) -> bool:
        """Whether the servers didn't show who leads: no majority of them agrees, or too few can be reached. The last leader may still
        lead.
        """

@final
class Observer:
    """An observer of an election: it gives the leader now, and then each change that it sees. Made by :meth:`Election.observe`; an
    iterator for ``for`` and for ``async for``, which never ends by itself.

        for observation in client.election("scheduler").observe():
            print(observation.leader)
            break

    A leader announces on the servers' channels that it leads, and that it has resigned. An observer polls the servers then, when the
    leader's term would end there, and once a second. It polls only while it is asked for the next observation, and misses what comes and
    goes between two polls. Terms never go back.

    An observer decides nothing: what it gave may be over. A program that acts for the leader sends its ``term`` along, and the resource
    refuses a smaller one.

    Raises :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`. Servers that can't be reached
    are no error, but ``observation.unknown``.
    """

    def __iter__(self) -> Observer: ...
    def __next__(self) -> Observation: ...
    def __aiter__(self) -> Observer: ...
    def __anext__(self) -> Coroutine[Any, Any, Observation]: ...

@final
class Election:
    """An election: any number of candidates, of which one leads. Made by :meth:`Client.election` or :func:`election`; does no I/O
    by itself.

    It is the lock of the same name, with verbs of its own. A leader is renewed in the background. If it resigns, the next candidate
    leads at once; if it dies, the next one leads when its ``ttl`` has passed. Two leaders are never valid at the same time, and each
    term is larger than all earlier ones; docs/guarantees.md says under which assumptions. It works with one server and with a quorum.

        election = client.election("scheduler")
        election.lead(schedule)                       # schedule(leadership), again and again, until election.stop()
        await election.lead_async(schedule_async)     # of an `async def`, until the task is cancelled
        with election.campaign() as leadership: ...   # one term by hand

    It pickles as a :class:`Lock` does.
    """

    @property
    def name(self) -> str:
        """The name."""

    def campaign(self) -> Leadership:
        """Campaigns: waits at most ``wait`` while another one leads, and then leads.

            with client.election("scheduler").campaign() as leadership:
                print("leads in term", leadership.term)

        Raises what :meth:`Lock.acquire` raises.
        """

    def campaign_async(self) -> Coroutine[Any, Any, AsyncLeadership]:
        """:meth:`campaign`, under asyncio. Cancelling the task gives the campaign up."""

    def try_campaign(self) -> Leadership | None:
        """Tries once to lead: ``None`` if another one leads. Raises what :meth:`Lock.try_acquire` raises.

            if leadership := client.election("scheduler").try_campaign():
                with leadership: ...
        """

    def try_campaign_async(self) -> Coroutine[Any, Any, AsyncLeadership | None]:
        """:meth:`try_campaign`, under asyncio."""

    def lead(self, work: Callable[Concatenate[Leadership, _P], object], /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Leads term after term: campaigns, calls ``work(leadership, *args, **kwargs)`` as the leader, resigns when it has returned, and
        campaigns again, until :meth:`stop`.

        A campaign waits as long as it takes, unless the election has a ``wait`` of its own; it continues while the servers can't be
        reached. A loss can't stop ``work`` here: it calls ``leadership.check()`` before each step, whose :exc:`LockLostError` ends the
        term and not the call. What else ``work`` raises comes back, after the leader has resigned. It resigns only when ``work`` has
        ended, and calls no ``work`` before that.

            def schedule(leadership):
                while not leadership.stopping:
                    leadership.check()
                    work_a_little()
                    election.stop()     # from any thread

            election = client.election("scheduler")
            election.lead(schedule)

        Raises what :meth:`campaign` raises, but :exc:`UnavailableError`; :exc:`AcquireTimeoutError` only if the election has a ``wait``
        of its own. :exc:`InvalidArgumentError` while another call leads by this election.
        """

    def lead_async(
        self,
        work: Callable[Concatenate[AsyncLeadership, _P], Coroutine[Any, Any, object]],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> Coroutine[Any, Any, None]:
        """:meth:`lead`, under asyncio: ``work`` is an ``async def``. A loss of the term cancels it, unless ``on_lost`` says otherwise.
        Cancelling the task cancels ``work``, and resigns when it has ended.
        """

    def stop(self) -> None:
        """Ends :meth:`lead` and :meth:`lead_async`, from any thread, and for good: a call that begins later returns at once.

            election = client.election("scheduler")
            election.stop()

        A campaign is given up. Work that runs continues; ``leadership.stopping`` says that it should return. The call returns after it.
        """

    def observe(self) -> Observer:
        """Observes who leads: the leader now, and then each change. No I/O before the first step.

            for observation in client.election("scheduler").observe():
                if observation.leader:
                    print("led in term", observation.leader.term)
                break

        ``async for`` takes it, too. An observer decides nothing: a program that acts for the leader sends its ``term`` along.
        """
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Election: ...
    def __deepcopy__(self, memo: object, /) -> Election: ...

@final
class _Leading:
    def __new__(cls, election: Election) -> _Leading: ...
    def __enter__(self) -> Leadership | None: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...
    def _next_async(self) -> Coroutine[Any, Any, AsyncLeadership | None]: ...
    def _end(self) -> None: ...
