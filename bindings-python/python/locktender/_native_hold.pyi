"""Stub of :mod:`locktender._native`: holds of one lock and of several, for threads and for tasks."""

from collections.abc import Coroutine
from types import TracebackType
from typing import Any, final

from typing_extensions import Self, disjoint_base

from ._native_options import _Seconds
from ._native_values import Loss, Release

@disjoint_base
class _BaseHold:
    @property
    def owner(self) -> str:
        """The owner value: the value on the servers begins with it. Unique, and readable in ``redis-cli``."""

    def remaining(self) -> float:
        """How long, in seconds, the lock is guaranteed to be held if nothing renews it; 0 if it isn't held. No I/O.

            if hold.remaining() > 5:
                work_a_little()
        """

    def is_valid(self) -> bool:
        """Whether the lock is held now. No I/O; never true later than the servers' expiry.

            if hold.is_valid():
                work_a_little()
        """

    def check(self) -> None:
        """Raises unless the lock is held now. No I/O.

            hold.check()
            write(row, fence=hold.fence)

        Raises :exc:`LockLostError`, :exc:`NotHeldError` after a release or a hand-over, :exc:`ForkedError` in a forked child.
        """

@disjoint_base
class _ThreadHold(_BaseHold):
    def extend(self, ttl: _Seconds | None = None, *, by: _Seconds | None = None) -> None:
        """Makes at least ``ttl`` remain (nothing given: the lock's own), or ``by`` more than :meth:`remaining` says now. Never
        shortens.

            hold.extend(60)     # at least a minute from now
            hold.extend(by=10)  # ten seconds more than now

        Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`InvalidArgumentError`, :exc:`ForkedError`, and
        :exc:`UnavailableError` if no majority answers (the lock is still held while :meth:`is_valid` says so).
        """

    def wait_lost(self, timeout: _Seconds | None = None) -> Loss | None:
        """Waits, at most ``timeout`` seconds, until the lock is lost: how, or ``None`` if it isn't, or was released.

            if loss := hold.wait_lost(0.1):
                print(loss.reason)
        """

    def release(self) -> Release:
        """Releases the lock, and returns the outcome.

            if hold.release().outcome == "taken":
                print("another hold came between")

        Raises :exc:`UnavailableError` if the outcome stays unknown: the release continues in the background, and may be called again
        to learn it. :exc:`NotHeldError` if it was released or handed over before, :exc:`ForkedError` in a forked child.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@disjoint_base
class Hold(_ThreadHold):
    """A lock that is held: until it is released, handed over, or lost. Made by :meth:`Lock.acquire`.

    It is renewed in the background, whatever holds the interpreter. Any thread may use it. ``with`` releases it at the end, unless
    that was done; if it was lost meanwhile, :exc:`LockLostError` is raised, or attached to the error of the body. It has one body:
    entering it raises what :meth:`check` raises, so :exc:`NotHeldError` after a release and :exc:`LockLostError` after a loss, and
    :exc:`InvalidArgumentError` inside of the body itself.

    Garbage-collected without a release it is no longer renewed and expires by itself, with a :exc:`ResourceWarning`, which Python
    shows only if asked to. So the lock stays taken for its ttl, as after ``if lock.acquire():``, which drops the hold at once.
    """

    @property
    def name(self) -> str:
        """The lock's name."""

    @property
    def fence(self) -> int:
        """The fencing token: larger than that of every earlier hold of this name. Let the resource refuse smaller ones."""

    def hand_over(self) -> str:
        """Ends this hold without releasing, and returns a single-use text for :meth:`Client.adopt` in another process. Until then,
        at most for what remains of the ttl, the lock stays taken.

            ticket = hold.hand_over()

        Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`ForkedError`.
        """

    def downgrade(self) -> Hold:
        """Makes a writer's hold a reader's, without a gap: returns a new hold of :meth:`Client.read_lock`, and other readers may enter.
        This one ends. The new one has its options and a fence of its own, above this one's; what is left of ``min_hold``
        ends. There is no way back: release, and acquire the lock.

            writer = client.lock("prices").acquire()
            write(row, fence=writer.fence)
            reader = writer.downgrade()

        Raises :exc:`LockLostError` with the reason ``ended`` if the server doesn't have this hold any more, or if an answer was lost;
        :exc:`NotHeldError` after a release or a hand-over; :exc:`InvalidArgumentError` of a hold that is no plain lock's on one server;
        otherwise what :meth:`Lock.acquire` raises.
        """

@final
class MultiHold(_ThreadHold):
    """Several locks that are held: all of them until they are released, or until the first of them is lost. The others stay taken then until
    the work ends, but are no longer renewed. Made by :meth:`MultiLock.acquire`.

    It is renewed, used and ended as a :class:`Hold`. It can't be handed over.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The locks' names, in the order in which they were given."""

    @property
    def fences(self) -> dict[str, int]:
        """The fencing token of each name: larger than that of every earlier hold of this name. A copy.

            with client.multi_lock(["account:1", "account:2"]) as hold:
                write(row, fence=hold.fences["account:2"])
        """

@disjoint_base
class _TaskHold(_BaseHold):
    def extend(self, ttl: _Seconds | None = None, *, by: _Seconds | None = None) -> Coroutine[Any, Any, None]:
        """Makes at least ``ttl`` remain, or ``by`` more than remains now. See :meth:`Hold.extend`."""

    def wait_lost(self, timeout: _Seconds | None = None) -> Coroutine[Any, Any, Loss | None]:
        """Waits, at most ``timeout`` seconds, until the lock is lost. See :meth:`Hold.wait_lost`."""

    def release(self) -> Coroutine[Any, Any, Release]:
        """Releases the lock. Once started it continues, also if the task is cancelled. See :meth:`Hold.release`."""

    def __aenter__(self) -> Coroutine[Any, Any, Self]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> Coroutine[Any, Any, None]: ...

@disjoint_base
class AsyncHold(_TaskHold):
    """A lock that is held, under asyncio. As :class:`Hold`; what waits is a coroutine.

        async with client.lock("orders:42") as hold:
            await hold.extend(60)

    In the body of an ``async with`` a loss cancels the body's task, and the end of the body turns exactly that cancellation into
    :exc:`LockLostError`; a cancellation from elsewhere passes through. With ``on_lost="continue"`` the body runs on.
    """

    @property
    def name(self) -> str:
        """The lock's name."""

    @property
    def fence(self) -> int:
        """The fencing token: larger than that of every earlier hold of this name. Let the resource refuse smaller ones."""

    def hand_over(self) -> str:
        """Ends this hold without releasing, and returns a single-use text for :meth:`Client.adopt` in another process. Until then,
        at most for what remains of the ttl, the lock stays taken.

            ticket = hold.hand_over()

        Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`ForkedError`.
        """

    def downgrade(self) -> Coroutine[Any, Any, AsyncHold]:
        """Makes a writer's hold a reader's, without a gap. See :meth:`Hold.downgrade`."""

@final
class AsyncMultiHold(_TaskHold):
    """Several locks that are held, under asyncio. As :class:`MultiHold`; what waits is a coroutine.

    In the body of an ``async with`` the loss of the first of them cancels the body's task, as with :class:`AsyncHold`.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The locks' names, in the order in which they were given."""

    @property
    def fences(self) -> dict[str, int]:
        """The fencing token of each name. See :attr:`MultiHold.fences`."""
