"""The native module. Everything here is exported by ``locktender`` (and ``locktender.testing``): import it from there.

All times are seconds: ``float``, ``int`` or ``datetime.timedelta`` where you give them, ``float`` where you get them.
"""

from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from os import PathLike
from types import ModuleType, TracebackType
from typing import Any, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, final, overload, type_check_only

from typing_extensions import Unpack

from ._ran import Ran
from .errors import LockLostError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_Seconds: TypeAlias = float | timedelta
_OnLost: TypeAlias = Literal["cancel", "flag"] | Callable[[LockLostError], object]
_Server: TypeAlias = str | ScriptedServer
_Servers: TypeAlias = _Server | Iterable[_Server]
_Path: TypeAlias = str | PathLike[str]

@type_check_only
class _LockOptions(TypedDict, total=False):
    """Those of :meth:`Client.lock`."""

    ttl: _Seconds | None
    wait: _Seconds | None
    renew: bool | None
    max_hold: _Seconds | None
    fair: bool | None
    on_lost: _OnLost | None

@type_check_only
class _ClientOptions(_LockOptions, total=False):
    """Those of :class:`Client`."""

    name: str | None
    prefix: str | None
    app: str | None
    connect_timeout: _Seconds | None
    response_timeout: _Seconds | None
    unavailable_after: _Seconds | None
    max_ttl: _Seconds | None
    tls_ca: _Path | None
    tls_cert: _Path | None
    tls_key: _Path | None
    on_event: Callable[[Event], object] | None
    log_holds: bool | None

__all__ = [
    "AsyncHeld",
    "Client",
    "Clock",
    "Event",
    "Held",
    "Lock",
    "LockInfo",
    "Loss",
    "OwnerFields",
    "Release",
    "ScriptedServer",
    "Seen",
    "ServerReport",
    "_Around",
    "__version__",
    "_close_all",
    "_forked",
    "_next_events",
    "_use",
    "configure",
    "lock",
    "safe_name",
]

__version__: str

def lock(name: str | Callable[..., str], **options: Unpack[_LockOptions]) -> Lock:
    """A lock of the default client: see :meth:`Client.lock`.

    The default client is made at the first operation, from what :func:`configure` was given or else from the environment's
    ``LOCKTENDER_URL``.

        from locktender import lock

        @lock("user:{user_id}", wait=2)
        def charge(user_id: int) -> None: ...
    """

def safe_name(text: str, /) -> str:
    """A lock's name for any text: an empty one, one that is too long, one with ``{``, ``}``, NUL or ``:~lt:``.

    Two texts never get the same name, and every language gives a text the same one. What a name can't have is written as ``%XX``,
    and so is ``%``. Of a text whose name would be too long the beginning stays, with the SHA-256 of the whole. Use it for all
    texts of a kind or for none: ``safe_name("50%")`` is not the lock ``50%``. ::

        with client.lock(safe_name(user)) as held: ...
    """

def configure(servers: _Servers | None = None, **options: Unpack[_ClientOptions]) -> None:
    """Sets the default client, from the next operation on: the arguments are those of :class:`Client`.

        configure("redis://localhost", prefix="billing:", wait=5)
    """

@final
class Client:
    """The connection to one lock server, or to a quorum of independent ones.

    Lazy: nothing is connected before the first operation. It may be shared by threads, tasks and event loops, and a forked
    child's operations connect anew. ``with`` and ``async with`` close it.

        client = Client("redis://localhost")
        with client.lock("orders:42", ttl=10, wait=5) as held:
            write(row, fence=held.fence)

    ``servers``
        ``redis://``, ``rediss://`` (TLS), ``unix://`` or, for locks within one process, ``memory://name``; a list, or one text
        split at commas, is a quorum. Without it the environment's ``LOCKTENDER_URL`` names the servers.
    ``name``
        Pickled, the client and its locks are this name and nothing else: see below. Default none.
    ``prefix``
        Stands before every lock's name. Default empty.
    ``app``
        Shown in owner values. Default: the environment's ``LOCKTENDER_APP``.
    ``connect_timeout``, ``response_timeout``
        How long a connection, and an answer, may take. Default 1 s; an answer of a quorum's server 0.2 s.
    ``unavailable_after``
        How long an operation keeps trying while no majority can be reached, without the time in which this process stands still.
        Default 5 s.
    ``max_ttl``
        On a quorum, the longest a hold may remain: how long a server that lost its data doesn't vote. Default 60 s.
    ``tls_ca``, ``tls_cert``, ``tls_key``
        PEM files: the authorities to trust instead of the system's; the client's certificate and its key.
    ``ttl``, ``wait``, ``renew``, ``max_hold``, ``fair``, ``on_lost``
        Defaults for this client's locks, see :meth:`lock`.
    ``on_event``
        Called with every :class:`Event`, on a thread of its own. Events also go to the logger ``locktender``.
    ``log_holds``
        Whether ``acquired``, ``extended``, ``released`` and ``handed_over`` are at level INFO instead of DEBUG. Default False.

    With a ``name`` it pickles by that: what is unpickled is of the client that the other process has made by the same name, the
    latest, and :exc:`InvalidArgumentError` if there is none. Without one it pickles by its configuration, **passwords included**:
    a task queue would store them. A process makes one client of each configuration it unpickles, shares it among all who unpickle
    the same, and keeps it until the exit (or until somebody closes it: the next one makes it anew). Without ``servers`` the other
    process's own ``LOCKTENDER_URL`` counts. ``memory://`` can't be pickled without a name.

    Raises :exc:`InvalidArgumentError` for a wrong option or URL.
    """

    def __new__(cls, servers: _Servers | None = None, **options: Unpack[_ClientOptions]) -> Client: ...
    @classmethod
    def from_redis(cls, redis: object, /, **options: Unpack[_ClientOptions]) -> Client:
        """A client of the server that a redis-py client uses: its address, credentials, database and TLS files are copied.

        Of ``redis.Redis`` or ``redis.asyncio.Redis``, over TCP, TLS or a unix socket, or of a connection pool; valkey-py's count
        as well. Nothing else is shared: it makes connections of its own, takes its own timeouts, and always checks certificates
        and host names.

            client = Client.from_redis(redis.Redis.from_url("redis://localhost"))

        Raises :exc:`InvalidArgumentError` for a client of Sentinel or of a cluster, a credential provider that isn't just a user and
        a password, and TLS settings that have no counterpart.
        """

    def lock(self, name: str | Callable[..., str], **options: Unpack[_LockOptions]) -> Lock:
        """The lock ``name``. No I/O.

        Options that aren't given are the client's. So are those that are ``None``, but for ``wait`` (then for ever) and ``max_hold``
        (then no limit).

        ``ttl``
            How long the key lives without a renewal. Default 10 s.
        ``wait``
            How long an acquire waits for a busy lock; 0 is one attempt. Default for ever.
        ``renew``
            Whether a held lock is renewed in the background. Default true.
        ``max_hold``
            The longest it is held, counted from the grant. Default no limit.
        ``fair``
            Whether to queue by principle: strictly first come, first served among all that do, in every process. Default
            false: a newcomer may be faster than a waiter, though nobody starves. Not on a quorum.
        ``on_lost``
            What a loss does. ``"cancel"`` (the default) cancels the task in the body of an ``async with``, ``"flag"`` leaves it
            alone. A callable leaves it alone, too, and is called with the :exc:`LockLostError`, at once, on a thread of its own: so
            a ``with`` body hears of it before its end. What it raises is logged. It shares its thread with all events, so let
            it only set something.

                stop = threading.Event()
                with client.lock("nightly", on_lost=lambda lost: stop.set()):
                    while not stop.is_set():
                        work_a_little()

        Raises :exc:`InvalidArgumentError` for a wrong option or name. Braces in a name, which may be a decorator's template, are judged
        by the first operation.
        """

    def adopt(self, ticket: str, *, or_acquire: bool = False, **options: Unpack[_LockOptions]) -> Held:
        """Takes a lock over from another process, by what its ``hand_over()`` returned. The hold is a new one: new owner, new and
        larger fence. The ``ttl`` is that of the lock which was handed over, unless given.

            held = client.adopt(ticket)  # what hand_over() returned

        Raises :exc:`LockLostError` with the reason ``ended`` if that hold has ended or was adopted before, also by an attempt of
        this call that lost its answer. ``or_acquire=True`` acquires the lock then, like any other: it waits for it, and what that
        hold protected may be half done. Else raises what :meth:`Lock.acquire` raises, and :exc:`InvalidArgumentError` for any other
        text, or if this client's prefix differs from that of the other client.
        """

    def adopt_async(self, ticket: str, *, or_acquire: bool = False, **options: Unpack[_LockOptions]) -> Coroutine[Any, Any, AsyncHeld]:
        """:meth:`adopt`, under asyncio."""

    def initialize_quorum(self) -> None:
        """Marks the servers of a quorum as trusted, so that they vote at once instead of after ``max_ttl``.

            client.initialize_quorum()  # once, when the servers are new

        Only for servers that are new, and only while no lock of this quorum may be held anywhere: a server that lost its data is
        kept from voting exactly because it may have forgotten a hold. Does nothing with one server.
        """

    def initialize_quorum_async(self) -> Coroutine[Any, Any, None]:
        """:meth:`initialize_quorum`, under asyncio."""

    def report(self) -> list[ServerReport]:
        """What each server really guarantees; one that doesn't answer has an ``error`` in its report.

            for report in client.report():
                print(report.server, report.warnings)
        """

    def report_async(self) -> Coroutine[Any, Any, list[ServerReport]]:
        """:meth:`report`, under asyncio."""

    def close(self) -> None:
        """Closes the client: acquires under way raise :exc:`ClosedError`, held locks are lost (reason ``closed``) and released.

            client.close()  # or: with client: ...

        Takes at most about a response timeout. Closing twice does nothing.
        """

    def close_async(self) -> Coroutine[Any, Any, None]:
        """:meth:`close`, under asyncio."""

    def __enter__(self) -> Client: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, Client]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> Coroutine[Any, Any, None]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Client: ...
    def __deepcopy__(self, memo: object, /) -> Client: ...
    @property
    def _is_closed(self) -> bool: ...
    def _warn(self, lock: str | None, text: str) -> None: ...

@final
class Lock:
    """A lock: a name and options. Made by :meth:`Client.lock` or :func:`lock`; does no I/O by itself.

    It may be shared by threads and tasks, and used again, also at the same time. Not re-entrant: a thread, task or greenlet that
    would wait for a lock which it holds in a ``with`` gets an :exc:`InvalidArgumentError` at once, with the line that took it. One
    attempt (``try_acquire()``, ``wait=0``) finds the lock busy instead.

        with lock as held: ...            # blocks; LockLostError at the end if it was lost meanwhile
        async with lock as held: ...      # the body is cancelled if it is lost
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

    def acquire(self) -> Held:
        """Acquires the lock, waiting for it at most ``wait``. Ctrl-C ends the wait, and leaves nothing behind.

            held = client.lock("orders:42", wait=5).acquire()
            try:
                write(row, fence=held.fence)
            finally:
                held.release()

        Raises :exc:`AcquireTimeoutError`, :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`,
        :exc:`InvalidArgumentError`, :exc:`ClosedError`.
        """

    def acquire_async(self) -> Coroutine[Any, Any, AsyncHeld]:
        """:meth:`acquire`, under asyncio. Cancelling the task gives the attempt up, and leaves nothing behind."""

    def try_acquire(self) -> Held | None:
        """Tries once: ``None`` if the lock is busy. Raises what :meth:`acquire` raises, but :exc:`AcquireTimeoutError`.

            if held := client.lock("nightly").try_acquire():
                with held: ...
        """

    def try_acquire_async(self) -> Coroutine[Any, Any, AsyncHeld | None]:
        """:meth:`try_acquire`, under asyncio."""

    def inspect(self) -> LockInfo | None:
        """Looks who holds the lock: ``None`` if nobody does. Changes nothing.

            if info := client.lock("orders:42").inspect():
                print(info.owner, info.remaining)

        Raises :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`.
        """

    def inspect_async(self) -> Coroutine[Any, Any, LockInfo | None]:
        """:meth:`inspect`, under asyncio."""

    def release(self, *_arguments: object, **_options: object) -> None:
        """Not here: ``release()`` is a method of what ``acquire()`` returned. Always raises :exc:`NotHeldError`."""

    def extend(self, *_arguments: object, **_options: object) -> None:
        """Not here: ``extend()`` is a method of what ``acquire()`` returned. Always raises :exc:`NotHeldError`."""

    def __enter__(self) -> Held: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __aenter__(self) -> Coroutine[Any, Any, AsyncHeld]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> Coroutine[Any, Any, None]: ...
    def __call__(self, function: Callable[_P, _R], /) -> Callable[_P, _R]: ...
    @overload
    def skip(self, function: Callable[_P, Coroutine[Any, Any, _R]], /) -> Callable[_P, Coroutine[Any, Any, _R | None]]:
        """The decorator that runs nothing, and returns ``None``, when the lock is busy. It tries once; ``wait`` doesn't count.

            @lock("nightly").skip
            def nightly() -> None: ...
        """

    @overload
    def skip(self, function: Callable[_P, _R], /) -> Callable[_P, _R | None]: ...
    @overload
    def try_run(  # type: ignore[overload-overlap]
        self, function: Callable[_P, Coroutine[Any, Any, _R]], /
    ) -> Callable[_P, Coroutine[Any, Any, Ran[_R]]]:
        """As :meth:`skip`, but the answer tells "it didn't run" from "it returned ``None``": a :class:`Ran`.

            @lock("nightly").try_run
            def nightly() -> int: ...

            if (answer := nightly()).ran:
                print(answer.value)
        """

    @overload
    def try_run(self, function: Callable[_P, _R], /) -> Callable[_P, Ran[_R]]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Lock: ...
    def __deepcopy__(self, memo: object, /) -> Lock: ...
    def _named(self, name: str) -> Lock: ...

@final
class Held:
    """A lock that is held: until it is released, handed over, or lost. Made by :meth:`Lock.acquire`.

    It is renewed in the background, whatever holds the interpreter. Any thread may use it. ``with`` releases it at the end, unless
    that was done; if it was lost meanwhile, :exc:`LockLostError` is raised, or attached to the error of the body. It has one body:
    entering it raises what :meth:`check` raises, so :exc:`NotHeldError` after a release and :exc:`LockLostError` after a loss, and
    :exc:`InvalidArgumentError` inside of the body itself.

    Garbage-collected without a release it is no longer renewed and expires by itself, with a :exc:`ResourceWarning`.
    """

    @property
    def name(self) -> str:
        """The lock's name."""

    @property
    def owner(self) -> str:
        """The value on the servers: unique, and readable in ``redis-cli``."""

    @property
    def fence(self) -> int:
        """The fencing token: larger than that of every earlier hold of this name. Let the resource refuse smaller ones."""

    def remaining(self) -> float:
        """How long, in seconds, the lock is surely held if nothing renews it; 0 if it isn't held. No I/O.

            if held.remaining() < 5:
                held.extend()
        """

    def is_valid(self) -> bool:
        """Whether the lock is held now. No I/O; never true later than the servers' expiry.

            if held.is_valid():
                work_a_little()
        """

    def check(self) -> None:
        """Raises unless the lock is held now. No I/O.

            held.check()
            write(row, fence=held.fence)

        Raises :exc:`LockLostError`, :exc:`NotHeldError` after a release or a hand-over, :exc:`ForkedError` in a forked child.
        """

    def extend(self, ttl: _Seconds | None = None, *, by: _Seconds | None = None) -> None:
        """Makes at least ``ttl`` remain (nothing given: the lock's own), or ``by`` more than :meth:`remaining` says now. Never
        shortens.

            held.extend(60)     # at least a minute from now
            held.extend(by=10)  # ten seconds more than now

        Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`InvalidArgumentError`, :exc:`ForkedError`, and
        :exc:`UnavailableError` if no majority answers (the lock is still held while :meth:`is_valid` says so).
        """

    def wait_lost(self, timeout: _Seconds | None = None) -> Loss | None:
        """Waits, at most ``timeout`` seconds, until the lock is lost: how, or ``None`` if it isn't, or was released.

            if loss := held.wait_lost(0.1):
                print(loss.reason)
        """

    def release(self) -> Release:
        """Gives the lock back, and tells what was found.

            if held.release().outcome == "taken":
                print("somebody else had the lock, too")

        Raises :exc:`UnavailableError` if the outcome stays unknown: the release goes on in the background, and may be called again
        to learn it. :exc:`NotHeldError` if it was released or handed over before, :exc:`ForkedError` in a forked child.
        """

    def hand_over(self) -> str:
        """Ends this hold without releasing, and returns a single-use text for :meth:`Client.adopt` in another process. Until then,
        at most for what remains of the ttl, the lock stays taken.

            ticket = held.hand_over()

        Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`ForkedError`.
        """

    def __enter__(self) -> Held: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class AsyncHeld:
    """A lock that is held, under asyncio. As :class:`Held`; what waits is a coroutine.

        async with client.lock("orders:42") as held:
            await held.extend(60)

    In the body of an ``async with`` a loss cancels the body's task, and the end of the body turns exactly that cancellation into
    :exc:`LockLostError`; a cancellation from elsewhere passes through. With ``on_lost="flag"`` the body runs on.
    """

    @property
    def name(self) -> str:
        """The lock's name."""

    @property
    def owner(self) -> str:
        """The value on the servers: unique, and readable in ``redis-cli``."""

    @property
    def fence(self) -> int:
        """The fencing token: larger than that of every earlier hold of this name. Let the resource refuse smaller ones."""

    def remaining(self) -> float:
        """How long, in seconds, the lock is surely held if nothing renews it; 0 if it isn't held. No I/O."""

    def is_valid(self) -> bool:
        """Whether the lock is held now. No I/O; never true later than the servers' expiry."""

    def check(self) -> None:
        """Raises unless the lock is held now. No I/O. See :meth:`Held.check`."""

    def extend(self, ttl: _Seconds | None = None, *, by: _Seconds | None = None) -> Coroutine[Any, Any, None]:
        """Makes at least ``ttl`` remain, or ``by`` more than remains now. See :meth:`Held.extend`."""

    def wait_lost(self, timeout: _Seconds | None = None) -> Coroutine[Any, Any, Loss | None]:
        """Waits, at most ``timeout`` seconds, until the lock is lost. See :meth:`Held.wait_lost`."""

    def release(self) -> Coroutine[Any, Any, Release]:
        """Gives the lock back. Once started it goes on, also if the task is cancelled. See :meth:`Held.release`."""

    def hand_over(self) -> Coroutine[Any, Any, str]:
        """Ends this hold without releasing. See :meth:`Held.hand_over`."""

    def __aenter__(self) -> Coroutine[Any, Any, AsyncHeld]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> Coroutine[Any, Any, None]: ...

@final
class Release:
    """How a release ended."""

    @property
    def outcome(self) -> Literal["released", "expired", "taken"]:
        """``released``; ``expired`` if the lock had run out and nobody has it; ``taken`` if somebody else has it, or had it in
        between."""

    @property
    def rival(self) -> str | None:
        """With ``taken``: the owner value of who has it instead; ``None`` if that hold has ended since."""

    @property
    def rival_fence(self) -> int | None:
        """With ``taken``: the fence of the latest hold that came between, if the servers show it. It is about the microsecond in
        which it was issued, so it also says since when."""

    @property
    def overrun(self) -> float:
        """How many seconds after the end of its validity it was given back, by our clock."""

@final
class Loss:
    """How a lock was lost. The fields are those of :exc:`LockLostError`."""

    @property
    def reason(self) -> Literal["expired", "missing", "taken", "superseded", "conflict", "max_hold", "closed", "ended"]:
        """Why: its validity ran out; its key is gone, is or was somebody else's, has a newer fence, or holds what no lock writes;
        ``max_hold``; the client was closed; what was to be adopted has ended, or was adopted before."""

    @property
    def rival(self) -> str | None:
        """The owner value of who has it instead, if that is known."""

    @property
    def rival_fence(self) -> int | None:
        """The fence of the latest hold that came between, if the servers prove one; without a ``rival`` it has ended since."""

    @property
    def overrun(self) -> float:
        """How many seconds the holder went on after the end of its validity."""

@final
class LockInfo:
    """What a held lock looks like."""

    @property
    def owner(self) -> str:
        """The value of the key, up to its first 1,024 bytes."""

    @property
    def fields(self) -> OwnerFields | None:
        """The value's fields, if locktender wrote it."""

    @property
    def remaining(self) -> float | None:
        """How many seconds the key remains; ``None`` if it has no expiry."""

    @property
    def fence(self) -> int:
        """The last fence issued; 0 if none is known."""

    @property
    def waiters(self) -> int:
        """How many wait for it: in line, and counting the waiters of one process as one unless the lock is a fair one."""

    @property
    def queue(self) -> list[str]:
        """The first hundred of them, in the order of the line, each with the readable fields of its process."""

@final
class ServerReport:
    """What one server really guarantees."""

    @property
    def server(self) -> str:
        """Its address, without credentials."""

    @property
    def error(self) -> str | None:
        """Why it didn't answer; the rest is then ``None``."""

    @property
    def version(self) -> str | None:
        """The product and its version."""

    @property
    def role(self) -> str | None:
        """``master`` or ``slave``, as the server calls itself."""

    @property
    def persistence(self) -> str | None:
        """``aof``, ``rdb`` or ``none``."""

    @property
    def eviction(self) -> str | None:
        """The eviction policy; anything but ``noeviction`` may evict a lock."""

    @property
    def clock_offset(self) -> float | None:
        """How far its clock is ahead of this machine's, in seconds; negative if behind."""

    @property
    def denied(self) -> list[str] | None:
        """What locks need and this client's user may not do, one line each; ``None`` if that can't be told."""

    @property
    def warnings(self) -> list[str]:
        """What a person should look at, one sentence each."""

@final
class OwnerFields:
    """The fields of an owner value that locktender wrote."""

    @property
    def app(self) -> str | None:
        """The application, if the holder named one."""

    @property
    def host(self) -> str | None:
        """The holder's host name."""

    @property
    def pid(self) -> int | None:
        """The holder's process id."""

    @property
    def at(self) -> str | None:
        """When the holder asked, by its own clock (RFC 3339)."""

    @property
    def id(self) -> str | None:
        """The unique id of the acquisition."""

@final
class Event:
    """Something that happened to a lock or a server. Fields that don't apply are ``None``."""

    @property
    def kind(
        self,
    ) -> Literal[
        "attempt",
        "busy",
        "queued",
        "notified",
        "acquired",
        "woken",
        "timed_out",
        "cancelled",
        "failed",
        "renewed",
        "extended",
        "released",
        "handed_over",
        "expired",
        "lost",
        "race",
        "server_failed",
        "server_recovered",
        "warning",
    ]:
        """What happened."""

    @property
    def level(self) -> int:
        """As in ``logging``."""

    @property
    def lock(self) -> str | None:
        """The lock's name."""

    @property
    def key(self) -> str | None:
        """The lock's whole key on the servers: the prefix and the name."""

    @property
    def owner(self) -> str | None:
        """Our owner value."""

    @property
    def fence(self) -> int | None:
        """Our fence."""

    @property
    def rival(self) -> str | None:
        """The value of whoever holds the key instead."""

    @property
    def rival_fence(self) -> int | None:
        """The fence of the latest hold that came between, if the servers show it."""

    @property
    def reason(self) -> str | None:
        """Why the lock was lost."""

    @property
    def took(self) -> float | None:
        """How many seconds it took: the wait of an acquire however it ended, the hold of a release or a hand-over, the overrun of
        a race; for ``woken`` since the waiter was told."""

    @property
    def rank(self) -> int | None:
        """How many wait before us, for ``queued``."""

    @property
    def server(self) -> str | None:
        """The server, for ``server_failed`` and ``server_recovered``."""

    @property
    def message(self) -> str | None:
        """One sentence more."""

@final
class ScriptedServer:
    """A lock server whose answers are said in advance; give it to :class:`Client` in place of a URL.

    A script has one step a line, ``operation: step``, for the next operation of that kind (``acquire``, ``extend``, ``release``,
    ``inspect``, ``any``, ...), or ``always operation: step`` for all that come after. Where there is no step it behaves. Steps:
    ``real``, ``granted [fence=7]``, ``busy [owner=x] [ttl=500]``, ``gone``, ``conflict type=list``, ``fail refused`` (or another kind),
    ``silence``; all but the last may have a ``delay=100``. Times in a script are milliseconds.

        server = ScriptedServer('''
            acquire: busy owner=somebody ttl=500
            acquire: fail denied
            always extend: gone
        ''')
    """

    def __new__(
        cls, script: str | None = None, *, name: str | None = None, response_timeout: _Seconds | None = None
    ) -> ScriptedServer: ...
    def play(self, script: str) -> None:
        """Adds more steps. Raises :exc:`InvalidArgumentError` for what it can't read; the lines before are in effect.

            server.play("always release: fail timeout")
        """

    @property
    def seen(self) -> list[Seen]:
        """Everything asked so far, in order."""

    @property
    def unplayed(self) -> int:
        """How many steps nobody has asked for yet."""

@final
class Clock:
    """The clock of every lock in this process, in the hands of one test: it moves time forward for ``memory://`` and scripted servers.

    Time goes on by itself, too, and is never moved back. One test has the clock at a time: making a second one before the first is
    closed raises :exc:`InvalidArgumentError`.

        with Clock() as clock, client.lock("report") as held:
            clock.advance(3600)
            assert held.is_valid()  # its ttl is 10 s, and it was renewed for an hour
    """

    def __new__(cls) -> Clock: ...
    def advance(self, seconds: _Seconds) -> None:
        """Moves the clock forward. Everything that is due until then has happened when this returns, each at its time: renewals, retries,
        the end of waits and of holds, late answers of scripted servers. What your own threads, tasks and callbacks do about it they
        do in their own time. It blocks for a moment: ``await asyncio.to_thread(clock.advance, 3600)`` lets tasks run meanwhile.

        Raises :exc:`InvalidArgumentError` while a lock is held or waited for on a real server, which has a clock of its own.
        """

    def close(self) -> None:
        """Gives the clock back: another test may take it. Time goes on from where it is.

            clock.close()  # or: with Clock() as clock: ...
        """

    def __enter__(self) -> Clock: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class Seen:
    """One operation a scripted server was asked for."""

    @property
    def op(self) -> str:
        """Its kind."""

    @property
    def lock(self) -> str | None:
        """The lock's name."""

    @property
    def owner(self) -> str | None:
        """On whose behalf."""

@final
class _Around:
    def __new__(cls, lock: Lock, tries_once: bool) -> _Around: ...
    def __enter__(self) -> Held | None: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

def _use(helpers: ModuleType, /) -> None: ...
def _next_events() -> list[tuple[Callable[..., object] | None, Event | tuple[str, dict[str, Any]]]] | None: ...
def _close_all() -> None: ...
def _forked() -> None: ...
