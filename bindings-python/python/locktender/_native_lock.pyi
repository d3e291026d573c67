"""Stub of :mod:`locktender._native`: one lock and several, which are also decorators."""

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar, final, overload

from typing_extensions import Self, deprecated, disjoint_base

from ._native_hold import AsyncHold, AsyncMultiHold, Hold, MultiHold, _TaskHold, _ThreadHold
from ._native_values import LockInfo
from ._try_outcome import TryOutcome

_P = ParamSpec("_P")
_R = TypeVar("_R")
_H = TypeVar("_H", bound=_ThreadHold)
_A = TypeVar("_A", bound=_TaskHold)

@disjoint_base
class _BaseLock(Generic[_H, _A]):
    def acquire(self) -> _H:
        """Acquires the lock, waiting for it at most ``wait``. Ctrl-C ends the wait, and leaves nothing behind.

            hold = client.lock("orders:42", wait=5).acquire()
            try:
                write(row, fence=hold.fence)
            finally:
                hold.release()

        Raises :exc:`AcquireTimeoutError`, :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`,
        :exc:`InvalidArgumentError`, :exc:`ClosedError`.
        """

    def acquire_async(self) -> Coroutine[Any, Any, _A]:
        """:meth:`acquire`, under asyncio. Cancelling the task ends the wait, and leaves nothing behind."""

    def try_acquire(self) -> _H | None:
        """Tries once: ``None`` if the lock is busy. Raises what :meth:`acquire` raises, but :exc:`AcquireTimeoutError`.

            if hold := client.lock("nightly").try_acquire():
                with hold: ...
        """

    def try_acquire_async(self) -> Coroutine[Any, Any, _A | None]:
        """:meth:`try_acquire`, under asyncio."""

    @deprecated("It is a method of what acquire() returned.")
    def release(self, *_arguments: object, **_options: object) -> NoReturn:
        """Not here: ``release()`` is a method of what ``acquire()`` returned. Always raises :exc:`NotHeldError`."""

    @deprecated("It is a method of what acquire() returned.")
    def extend(self, *_arguments: object, **_options: object) -> NoReturn:
        """Not here: ``extend()`` is a method of what ``acquire()`` returned. Always raises :exc:`NotHeldError`."""

    def __enter__(self) -> _H: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, _A]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> Coroutine[Any, Any, None]: ...
    def __call__(self, function: Callable[_P, _R], /) -> Callable[_P, _R]: ...
    @overload
    def skip_if_busy(self, function: Callable[_P, Coroutine[Any, Any, _R]], /) -> Callable[_P, Coroutine[Any, Any, _R | None]]:
        """The decorator that runs nothing, and returns ``None``, when the lock is busy. It tries once; ``wait`` doesn't count.

            @lock("nightly").skip_if_busy
            def nightly() -> None: ...
        """

    @overload
    def skip_if_busy(self, function: Callable[_P, _R], /) -> Callable[_P, _R | None]: ...
    @overload
    def try_run(  # type: ignore[overload-overlap]
        self, function: Callable[_P, Coroutine[Any, Any, _R]], /
    ) -> Callable[_P, Coroutine[Any, Any, TryOutcome[_R]]]:
        """As :meth:`skip_if_busy`, but the answer distinguishes "it didn't run" from "it returned ``None``": a :class:`TryOutcome`.

            @lock("nightly").try_run
            def nightly() -> int: ...

            if (answer := nightly()).ran:
                print(answer.result)
        """

    @overload
    def try_run(self, function: Callable[_P, _R], /) -> Callable[_P, TryOutcome[_R]]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: object, /) -> Self: ...
    def _named(self, name: Any, template: str | None = None) -> Self: ...

@final
class Lock(_BaseLock[Hold, AsyncHold]):
    """A lock: a name and options. Made by :meth:`Client.lock` or :func:`lock`; does no I/O by itself.

    It may be shared by threads and tasks, and used again, also at the same time. Not re-entrant: a thread, task or greenlet that
    would wait for a lock which it holds in a ``with`` gets a :exc:`DeadlockError` at once, with the line that took it. One
    attempt (``try_acquire()``, ``wait=0``) finds the lock busy instead. Where the ``with`` is in a suspended generator, another thread
    may end it: there it waits, and after 5 s an event ``warning`` says that it may wait for itself.

        with lock as hold: ...            # blocks; LockLostError at the end if it was lost meanwhile
        async with lock as hold: ...      # the body is cancelled if it is lost
        @lock
        def locked(): ...                 # around every call; {parameter} in the name is filled from the arguments

    As a decorator, and only there, the name is a template (``{{tag}}`` is a literal ``{tag}``) or a callable that makes the name from
    the arguments. A :exc:`LockLostError` of a decorated function carries what it had returned as ``result``. A function that returns
    before its work is done is refused: a generator, a context manager, one that returns a coroutine, a task or a future.

    It pickles by its name and options, with its client: by the client's ``name``, or else by its configuration, **passwords
    included**. See :class:`Client`. A lock of the default client becomes one of the other process's default client.
    """

    @property
    def name(self) -> str | None:
        """The name; ``None`` if a callable makes it."""

    def inspect(self) -> LockInfo | None:
        """Shows who holds the lock: ``None`` if it is free. Changes nothing.

            if info := client.lock("orders:42").inspect():
                print(info.owner, info.remaining)

        Raises :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`.
        """

    def inspect_async(self) -> Coroutine[Any, Any, LockInfo | None]:
        """:meth:`inspect`, under asyncio."""

    def force_release(self, *, owner: str | None = None) -> LockInfo | None:
        """Ends the hold of the lock, whatever process has it: for an operator, when a holder hangs and still renews. Returns what was ended, or
        ``None`` if there was nothing to end. With ``owner`` only the hold with this owner value is ended. A value that no locktender wrote is
        ended only if it is given so: else it is a :exc:`KeyConflictError`.

            info = client.lock("orders:42").inspect()
            if info and input(f"{info.owner} holds it. End that? ") == "yes":
                client.lock("orders:42").force_release(owner=info.owner)

        **The holder continues until it notices**: its next renewal is refused, at most a third of its ttl later, and its hold is then lost.
        Until then two programs may work at the same time. Only a resource that compares fences is safe from that.

        Raises :exc:`UnavailableError` (the hold may have ended nevertheless), :exc:`DeniedError`, :exc:`KeyConflictError`,
        :exc:`InvalidArgumentError`, :exc:`ClosedError`.
        """

    def force_release_async(self, *, owner: str | None = None) -> Coroutine[Any, Any, LockInfo | None]:
        """:meth:`force_release`, under asyncio."""

@final
class MultiLock(_BaseLock[MultiHold, AsyncMultiHold]):
    """Several locks, which are acquired all at once, or none of them. Made by :meth:`Client.multi_lock` or :func:`multi_lock`; does no I/O by
    itself.

    It is used as a :class:`Lock`, also as a decorator, and pickles as one. What it acquires is a :class:`MultiHold`, or an
    :class:`AsyncMultiHold`. ``try_acquire()`` returns ``None`` if any of the locks is busy. An :exc:`AcquireTimeoutError` and a
    :exc:`KeyConflictError` name the lock that was in the way.

        with locks as hold: ...           # blocks; LockLostError at the end if one was lost meanwhile
        async with locks as hold: ...     # the body is cancelled if one is lost
        @locks
        def locked(): ...                 # around every call; {parameter} in each name is filled from the arguments
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order in which they were given; none if a callable makes them."""

@final
class _Around:
    def __new__(cls, lock: _BaseLock[Any, Any], tries_once: bool) -> _Around: ...
    def __enter__(self) -> _ThreadHold | None: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
