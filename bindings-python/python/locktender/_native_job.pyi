"""Stub of :mod:`locktender._native`: jobs, and their attempts."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, final, overload

from ._native_hold import AsyncHold, Hold
from ._native_options import _Seconds

_P = ParamSpec("_P")
_NotRunReason: TypeAlias = Literal["done", "dead", "running", "missed", "too_late"]
_State: TypeAlias = Literal["new", "running", "retrying", "done", "dead"]

@final
class JobOutcome:
    """The outcome of a job."""

    @property
    def ran(self) -> bool:
        """Whether this call ran the work, which is done."""

    @property
    def reason(self) -> _NotRunReason | None:
        """Why this call did not run the work; ``None`` if it did. ``done``: it was done before, or by another worker meanwhile. Of a job
        that runs once per scheduled time also ``dead``: its last attempt failed or died; ``running``: a worker runs it, or still
        the work of an earlier scheduled time; ``missed``: a later scheduled time has begun; ``too_late``: the scheduled time is
        longer ago than ``max_lateness``.
        """

    @property
    def result(self) -> Any:
        """What the work returned, in this call or in an earlier one, as JSON has it; ``None`` if that was nothing."""

    @property
    def attempts(self) -> int:
        """How many attempts there were, of a job that is done or dead; else 0."""

    @property
    def last_error(self) -> str | None:
        """What the last attempt said, of a job that is dead."""

    @staticmethod
    def _ran(text: str | None, attempts: int) -> JobOutcome: ...

@final
class JobStatus:
    """What is known of a job."""

    @property
    def state(self) -> _State:
        """``new``: no attempt has begun; ``running``; ``retrying``: an attempt failed or its worker died, and another one may begin;
        ``done``; ``dead``: the last attempt failed, or its worker died.
        """

    @property
    def attempts(self) -> int:
        """How many attempts have begun."""

    @property
    def max_attempts(self) -> int | None:
        """How many may begin; ``None`` before the first one."""

    @property
    def last_owner(self) -> str | None:
        """The owner value of the last attempt: a person can read in it which worker that was."""

    @property
    def began_ago(self) -> float | None:
        """How many seconds ago the last attempt began, by the server's clock."""

    @property
    def remaining(self) -> float:
        """How many seconds the lease of a running attempt remains if nothing renews it; 0 if none runs."""

    @property
    def retry_in(self) -> float | None:
        """In how many seconds the next attempt may begin, while the job is retrying."""

    @property
    def last_error(self) -> str | None:
        """What the last attempt that failed said."""

    @property
    def result(self) -> Any:
        """What the work returned, as JSON has it; ``None`` if that was nothing, or the job isn't done."""

    @property
    def scheduled_time(self) -> datetime | None:
        """The latest scheduled time that has begun, in UTC, of a job that runs once per scheduled time."""

    @property
    def last_done(self) -> datetime | None:
        """When the work was done last, in UTC, by the server's clock. A job that runs once per scheduled time keeps it while later
        runs fail."""

@final
class Attempt(Hold):
    """One attempt at a job: a :class:`Hold`, with its number. Made by :meth:`Job.begin`.

    :meth:`complete` and :meth:`fail` record how it ended. :meth:`release` ends it as if it had never begun: it doesn't count,
    and another worker may begin at once, unless the lease was lost before (``expired``, ``taken``).

    ``with`` ends it, unless that was done: a body that raises has failed, and any other releases it, so that it doesn't count.

        if attempt := client.job("mail:7").begin():
            with attempt:
                attempt.complete({"sent": 3})
    """

    @property
    def number(self) -> int:
        """The number of this attempt; the first is 1."""

    @property
    def max_attempts(self) -> int:
        """How many attempts may begin."""

    @property
    def is_last(self) -> bool:
        """Whether the job is dead if this attempt fails."""

    def complete(self, result: Any = None) -> None:
        """Notes that the job is done, with its result, and releases the lock. No other attempt begins. It also succeeds just after the
        lease was lost, if no other attempt has begun since.

            attempt.complete({"sent": 3})

        ``result`` is anything that JSON can express, of at most 64 KiB; ``None`` is no result. Raises :exc:`LockLostError` if another
        attempt has begun or ended since, :exc:`NotHeldError` if this one has ended before, :exc:`InvalidArgumentError` for a result
        that can't be kept (the attempt continues), :exc:`UnavailableError` if the outcome stays unknown: call it again to learn it.
        """

    def fail(self, error: BaseException | str, *, retry_in: _Seconds | None = None, retry: bool = True) -> None:
        """Notes that this attempt failed, and releases the lock. After the job's ``retry_delay``, or ``retry_in`` seconds, another
        attempt may begin; if this was the last one, the job is dead. With ``retry=False`` it is dead in any case: for a failure that no
        other attempt can help.

            attempt.fail("the mail server is down", retry_in=60)

        ``error`` is an exception or a text, of which the first 1,024 bytes are kept. Raises what :meth:`complete` raises.
        """


    def _complete(self, result: str | None) -> None: ...

@final
class AsyncAttempt(AsyncHold):
    """One attempt at a job, under asyncio. As :class:`Attempt`; what waits is a coroutine.

    In the body of an ``async with`` a loss cancels the body's task, as with :class:`AsyncHold`.
    """

    @property
    def number(self) -> int:
        """The number of this attempt; the first is 1."""

    @property
    def max_attempts(self) -> int:
        """How many attempts may begin."""

    @property
    def is_last(self) -> bool:
        """Whether the job is dead if this attempt fails."""

    def complete(self, result: Any = None) -> Coroutine[Any, Any, None]:
        """Notes that the job is done. See :meth:`Attempt.complete`."""

    def fail(self, error: BaseException | str, *, retry_in: _Seconds | None = None, retry: bool = True) -> Coroutine[Any, Any, None]:
        """Notes that this attempt failed. See :meth:`Attempt.fail`."""

    def _complete(self, result: str | None) -> Coroutine[Any, Any, None]: ...

@final
class Job:
    """A job: work that must be done once in a cluster, by one of any number of workers. Made by :meth:`Client.job` or :func:`job`; does
    no I/O by itself.

    Any number of workers may ask for it, at any time. One of them runs it; the others wait as backups. If the work fails, or its
    worker dies, the next one runs it, until it is done or its attempts are used up. The server counts the attempts, and keeps the
    result or the last error. While an attempt runs, the lock with the job's name is held.

    The work itself runs at least once: a worker may die after its effect, and before its end is recorded. So an effect that must not come
    twice is stored under the job's name, in the transaction that makes it. Against a worker that is late, send ``attempt.fence`` with
    each write, and let the resource refuse a smaller one.

        outcome = client.job("mail:2026-11-21", max_attempts=5).run(send)       # send(attempt) returns the result
        outcome = await client.job("mail:2026-11-21").run_async(send_async)     # of an `async def`
        @client.job("mail:{day}")
        def mail(attempt, day): ...                                             # mail("2026-11-21") returns the outcome

    It pickles as a :class:`Lock` does. A job needs one server: on a quorum every operation raises :exc:`InvalidArgumentError`.
    """

    @property
    def name(self) -> str:
        """The name."""

    def begin(self) -> Attempt | None:
        """Begins an attempt, as soon as no other worker runs the job and its ``retry_delay`` has passed; waits for that at most
        ``wait``. ``None`` if the job is done, or nothing is to run for its scheduled time. :meth:`run` does all of that around a
        function.

            if attempt := client.job("mail:7").begin():
                with attempt:
                    attempt.complete({"sent": 3})

        Raises :exc:`JobDeadError`, and what :meth:`Lock.acquire` raises.
        """

    def begin_async(self) -> Coroutine[Any, Any, AsyncAttempt | None]:
        """:meth:`begin`, under asyncio. Cancelling the task releases the attempt."""

    def run(self, work: Callable[Concatenate[Attempt, _P], Any], /, *args: _P.args, **kwargs: _P.kwargs) -> JobOutcome:
        """Runs the job: begins an attempt, calls ``work(attempt, *args, **kwargs)``, and records how it ended.

        What ``work`` returns is the result, and the job is done. What it raises comes back, and the attempt failed: another one may
        begin, by this worker or another; after the last one the job is dead. Ctrl-C, ``sys.exit(0)``, a killed greenlet and the exit of
        the interpreter release the attempt: then it doesn't count. If the job was done before, or becomes done while this worker
        waits, or nothing is to run for its scheduled time, the outcome has ``ran`` false and says why.

            outcome = client.job("mail:7", max_attempts=5).run(lambda attempt: {"sent": 3})
            print(outcome.ran, outcome.result)

        Raises what :meth:`begin` and :meth:`Attempt.complete` raise, and what ``work`` raises.
        """

    def run_async(
        self,
        work: Callable[Concatenate[AsyncAttempt, _P], Coroutine[Any, Any, Any]],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> Coroutine[Any, Any, JobOutcome]:
        """:meth:`run`, under asyncio: ``work`` is an ``async def``. A loss of the lease cancels it, unless ``on_lost`` says otherwise.
        Cancelling the task releases the attempt.
        """

    def status(self) -> JobStatus:
        """Inspects the job: its state, its attempts, the worker that runs it, the result or the last error. Changes nothing.

            if client.job("mail:7").status().state == "dead":
                print("an operator should look")

        Raises :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`.
        """

    def status_async(self) -> Coroutine[Any, Any, JobStatus]:
        """:meth:`status`, under asyncio."""

    def reset(self) -> bool:
        """Forgets the job's attempts, its result and its errors, so that it runs again: for an operator, once the cause of the failures is
        fixed. Returns whether there was something to forget; while an attempt runs nothing is forgotten.

            client.job("mail:7").reset()

        Raises what :meth:`status` raises.
        """

    def reset_async(self) -> Coroutine[Any, Any, bool]:
        """:meth:`reset`, under asyncio."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[AsyncAttempt, _P], Coroutine[Any, Any, Any]], /
    ) -> Callable[_P, Coroutine[Any, Any, JobOutcome]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Attempt, _P], Any], /) -> Callable[_P, JobOutcome]: ...
    def _named(self, name: str, template: str | None = None) -> Job: ...
    def _begin_async(self) -> Coroutine[Any, Any, AsyncAttempt | JobOutcome]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Job: ...
    def __deepcopy__(self, memo: object, /) -> Job: ...

@final
class _AroundAttempt:
    def __new__(cls, job: Job) -> _AroundAttempt: ...
    def __enter__(self) -> Attempt | JobOutcome: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
