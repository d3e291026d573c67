"""Stub of :mod:`locktender._native`: the client and its options."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Literal, NoReturn, TypeAlias, final, type_check_only

from typing_extensions import Unpack, deprecated

from ._native_election import Election
from ._native_events import LockEvent
from ._native_hold import AsyncHold, Hold
from ._native_job import Job
from ._native_lock import Lock, MultiLock
from ._native_metrics import Metrics
from ._native_options import _CronJobOptions, _JobOptions, _LockOptions, _MultiLockOptions, _Seconds
from ._native_testing import ScriptedServer
from ._native_values import Credentials, Grant, HoldInfo, LockInfo, ServerReport

_Server: TypeAlias = str | ScriptedServer
_Servers: TypeAlias = _Server | Iterable[_Server]
_Path: TypeAlias = str | PathLike[str]
_Given: TypeAlias = str | tuple[str, str] | Credentials
_Provider: TypeAlias = Callable[[], _Given | Awaitable[_Given]] | Callable[[str], _Given | Awaitable[_Given]]

@type_check_only
class _ClientOptions(_LockOptions, total=False):
    """Those of :class:`Client`."""

    pickle_name: str | None
    prefix: str | None
    app: str | None
    connect_timeout: _Seconds | None
    response_timeout: _Seconds | None
    unavailable_after: _Seconds | None
    max_ttl: _Seconds | None
    failover: Literal["confirm", "quarantine"] | None
    min_replicas: int | None
    replicas_timeout: _Seconds | None
    credentials: _Provider | None
    tls_ca: _Path | None
    tls_cert: _Path | None
    tls_key: _Path | None
    tls_name: str | None
    address_map: dict[str, str] | None
    on_event: Callable[[LockEvent], object] | None
    log_holds: bool | None
    history: bool | None

@final
class Client:
    """The connection to one lock server, or to a quorum of independent ones.

    Lazy: nothing is connected before the first operation. It may be shared by threads, tasks and event loops, and a forked
    child's operations open connections of their own. ``with`` and ``async with`` close it.

        client = Client("redis://localhost")
        with client.lock("orders:42", ttl=10, wait=5) as hold:
            write(row, fence=hold.fence)

    ``servers``
        ``redis://``, ``rediss://`` (TLS), ``unix://``, ``redis+sentinel://host,host/service``, ``redis+cluster://host,host`` (with TLS
        ``rediss+…``) or, for locks within one process, ``memory://name``. ``valkey`` in the place of ``redis`` means the same. A list,
        or one text split at commas, is a quorum. Without it the environment's ``LOCKTENDER_URL`` names the servers.
    ``pickle_name``
        Pickled, the client and its locks are this name and nothing else: see below. Default none.
    ``prefix``
        Precedes every lock's name. Default empty.
    ``app``
        Shown in owner values. Default: the environment's ``LOCKTENDER_APP``.
    ``connect_timeout``, ``response_timeout``
        How long a connection, and an answer, may take. Default 1 s; an answer of a quorum's server 0.2 s.
    ``unavailable_after``
        How long an operation keeps trying while no majority can be reached, without the time in which this process is stopped.
        Default 5 s.
    ``max_ttl``
        On a quorum, the longest a hold may remain: how long a server that lost its data doesn't vote. Default 60 s.
    ``failover``
        What is done when another node answers for the only server, such as a replica that was promoted. ``"confirm"`` (the default):
        every hold is confirmed at once, and lost if the new node lacks it. ``"quarantine"``: besides, the new node grants nothing for
        ``max_ttl``, and holds that it lacks are written there again. All clients of the server need it, with the same ``max_ttl``.
    ``min_replicas``, ``replicas_timeout``
        How many replicas of a server have to confirm a grant, and every extension, before it counts, and how long the server waits for
        them. Default 0; 0.1 s. While fewer are connected, nothing is granted or extended. Name all replicas that a failover may choose.
    ``credentials``
        Called for the user and the password of every server, whose URL has none then: a function, plain or ``async``, that returns a
        password, ``(user, password)`` or :class:`Credentials` with the end of their life. It gets the server's address if it has a parameter.
        It is called before a connection, if what it returned last has passed two thirds of its life, and at that time: then the new ones go to
        every live connection. It runs on a thread of its own; what it raises is the ``__cause__`` of a :exc:`DeniedError`. Default none.
    ``tls_ca``, ``tls_cert``, ``tls_key``
        PEM files: the authorities to trust instead of the system's; the client's certificate and its key.
    ``tls_name``
        The name that every server with TLS is asked for, and that its certificate must have. Default: the host of the URL, and for a node that
        sentinels or a cluster announce the announced host.
    ``address_map``
        Where the nodes are reached that sentinels or a cluster announce: ``{"10.0.0.1:6379": "localhost:7001"}``. Default: where they
        are announced.
    ``ttl``, ``wait``, ``renew``, ``max_hold``, ``fair``, ``min_hold``, ``grace``, ``category``, ``on_lost``
        Defaults for this client's locks, see :meth:`lock`.
    ``on_event``
        Called with every :class:`LockEvent`, on a thread of its own. Events also go to the logger ``locktender``.
    ``log_holds``
        Whether ``acquired``, ``extended``, ``released`` and ``handed_over`` are at level INFO instead of DEBUG. Default False.
    ``history``
        Whether holds are noted in the history of a single server or of a cluster, see :meth:`history`. Default True.

    With a ``pickle_name`` it pickles by that: what is unpickled is of the client that the other process has made by the same name,
    the latest, and :exc:`InvalidArgumentError` if there is none. Without one it pickles by its configuration, **passwords
    included**: a task queue would store them. A process makes one client of each configuration it unpickles, shares it among all that
    unpickle the same, and keeps it until the exit (or until it is closed: the next one makes it again). Without
    ``servers`` the other process's own ``LOCKTENDER_URL`` counts. ``memory://`` can't be pickled without a name.

    Raises :exc:`InvalidArgumentError` for a wrong option or URL.
    """

    def __new__(cls, servers: _Servers | None = None, **options: Unpack[_ClientOptions]) -> Client: ...
    @classmethod
    def from_redis(cls, redis: object, /, **options: Unpack[_ClientOptions]) -> Client:
        """A client of the server that a redis-py client uses: its address, credentials, database and TLS files are copied.

        Of ``redis.Redis`` or ``redis.asyncio.Redis``, over TCP, TLS or a unix socket, of ``RedisCluster``, of
        ``sentinel.master_for(service)``, or of a connection pool; valkey-py's count as well. Nothing else is shared: it makes
        connections of its own, takes its own timeouts, and always checks certificates and host names.

            client = Client.from_redis(redis.Redis.from_url("redis://localhost"))

        Its credential provider becomes the option ``credentials``: it is asked again as passwords change.

        Raises :exc:`InvalidArgumentError` for a client of replicas, a credential provider of its sentinels, an ``address_remap``, and
        TLS settings that have no counterpart.
        """

    @classmethod
    @deprecated("Client(url) makes a client of a URL.")
    def from_url(cls, *_arguments: object, **_options: object) -> NoReturn:
        """Not here: ``Client(url)`` makes a client of a URL. Always raises :exc:`AttributeError`."""

    def lock(self, name: str | Callable[..., str], **options: Unpack[_LockOptions]) -> Lock:
        """The lock ``name``. No I/O.

        Options that aren't given, or are ``None``, are the client's. ``math.inf`` is a ``wait`` without end, and no limit for
        ``max_hold``.

        ``ttl``
            How long the key lives without a renewal. Default 10 s.
        ``wait``
            How long an acquire waits for a busy lock; 0 is one attempt. By default it waits without end.
        ``renew``
            Whether a held lock is renewed in the background. Default true.
        ``max_hold``
            The longest it is held, counted from the grant. Default no limit.
        ``fair``
            Whether waiters get the lock strictly in their order, in every process, if all of them are fair. Default
            false: a newcomer may be faster than a waiter, though no waiter starves. Not on a quorum.
        ``min_hold``
            How long the lock stays taken at least, counted from the grant, also after an earlier release: that keeps the key for the rest.
            Default none.
        ``grace``
            How long the key outlives the hold: a loss keeps others out for this long. A release frees it at once. Default none.
        ``category``
            The category under which metrics and events count the lock. Default: a decorator's template, else the name up to its
            first colon. Choose few: a client counts 100 categories, and all further ones together as ``other``.
        ``on_lost``
            What a loss does. ``"cancel"`` (the default) cancels the task in the body of an ``async with``, ``"continue"`` leaves it
            alone. A callable is called with the :exc:`LockLostError`, at once, on a thread of its own: so a ``with`` body learns of
            it before its end. The task is cancelled all the same. What it raises is logged. It shares its thread with all events,
            so let it only set something; an ``async def`` is refused.

                stop = threading.Event()
                with client.lock("nightly", on_lost=lambda lost: stop.set()):
                    while not stop.is_set():
                        work_a_little()

        Raises :exc:`InvalidArgumentError` for a wrong option or name. Braces in a name, which may be a decorator's template, are judged
        by the first operation.
        """

    def read_lock(self, name: str | Callable[..., str], **options: Unpack[_LockOptions]) -> Lock:
        """The read lock ``name``: any number of readers hold it at once, and no writer. **The writer is** :meth:`lock` of the same name. No
        I/O.

        The options are those of :meth:`lock`, but ``min_hold``; each reader has a ``ttl`` of its own. While a writer waits as the first
        one, no new reader enters; those that a release lets in enter together. Only a thread, task or greenlet that reads already, in a
        ``with``, may read once more past that writer. Readers between two writers have the same fence. Not on a quorum.

            with client.read_lock("prices"):
                print("no writer changes them now")

        Raises :exc:`InvalidArgumentError` for a wrong option or name.
        """

    def semaphore(self, name: str | Callable[..., str], *, permits: int, **options: Unpack[_LockOptions]) -> Lock:
        """The semaphore ``name``: a lock that at most ``permits`` programs hold at once. No I/O.

        The options are those of :meth:`lock`, but ``min_hold``; each permit has a ``ttl`` of its own, so one whose holder died is free after
        that. Its name is that of a lock: while a permit is held, :meth:`lock` of the same name is held, and the holder of that lock has
        all permits. If programs ask with different numbers, at most the largest one hold it. Permits have no numbers: to guard five
        different things, use five locks. Not on a quorum.

        ``permits``
            How many may hold it at once: from 1 to 10,000.

                with client.semaphore("renders", permits=5):
                    print("one of five")

        Raises :exc:`InvalidArgumentError` for a wrong option or name.
        """

    def multi_lock(
        self, names: Iterable[str] | Callable[..., Iterable[str]], **options: Unpack[_MultiLockOptions]
    ) -> MultiLock:
        """The locks of these ``names``: all of them are acquired at once, or none. No I/O.

        They are the locks of :meth:`lock`: a holder of one of them blocks all. Callers with the same names in another order never block
        each other, because a waiter holds none of the locks. It is in the queue of the first busy lock; where the locks are always in use
        it may wait long.

        From 1 to 16 different names. In a cluster all names need the same ``{tag}``. Not on a quorum.

        The options are those of :meth:`lock`, but ``fair`` and ``min_hold``; they hold for each lock.

            with client.multi_lock(["account:1", "account:2"], wait=5) as hold:
                for name, fence in hold.fences.items():
                    print(f"write to {name} with fence {fence}")

        Raises :exc:`InvalidArgumentError` for a wrong option or name.
        """

    def job(self, name: str, **options: Unpack[_JobOptions]) -> Job:
        """The job ``name``: work that must be done once, by one of any number of workers. No I/O.

        ``max_attempts``
            How many attempts may begin before the job is dead. Default 3. The first worker that asks fixes it for the job.
        ``retry_delay``
            How long after a failed attempt the next one may begin: twice as long after each further failure, up to an hour. Default 1 s.
        ``retention``
            For how long a job that is done or dead is remembered: a worker that asks later runs it again. Default 24 h.
        ``ttl``, ``wait``, ``renew``, ``max_hold``, ``fair``, ``grace``, ``category``, ``on_lost``
            As with :meth:`lock`. ``ttl`` is how long a dead worker blocks the next one, ``wait`` how long this worker waits as a backup.

                outcome = client.job("mail:2026-11-21", max_attempts=5).run(lambda attempt: {"sent": 3})

        Raises :exc:`InvalidArgumentError` for a wrong option or name.
        """

    def cron_job(self, name: str, **options: Unpack[_CronJobOptions]) -> Job:
        """The job ``name`` of a schedule: work that must run once per scheduled time, however many replicas a cron line or a timer
        starts it in. No I/O.

        It is a :class:`Job` that begins again with each later scheduled time, and never again for one that has begun. Its outcome
        says the ``reason`` why nothing ran, which is no error.

        ``at``
            The scheduled time: the time for which the scheduler planned this run, not the time at which it begins. So it doesn't
            matter that the clocks of machines differ. A datetime with a time zone, or seconds since 1970; at most 5 minutes ahead
            of the server. Without it it is now by this machine's clock, rounded down to a multiple of ``every``: one of the two
            must be given.
        ``every``
            How far scheduled times are apart, without ``at``; multiples count from 1970-01-01 00:00 UTC. A timer that fires up to a
            second too early counts for the time that was meant. Longer than the replicas may begin apart.
        ``max_lateness``
            How long ago a scheduled time may be, by the server's clock, and still run; of a rounded one its end. Default 24 h.
        ``on_overlap``
            What a scheduled time does while the work of an earlier one still runs: ``"skip"`` leaves it out, ``"wait"`` waits.
            Default ``"skip"``.
        ``max_attempts``, ``retry_delay``
            As with :meth:`job`. Default 1 attempt: a run that fails or dies is not repeated.
        ``ttl``, ``wait``, ``renew``, ``max_hold``, ``fair``, ``grace``, ``category``, ``on_lost``
            As with :meth:`lock`.

                outcome = client.cron_job("nightly", every=3600).run(lambda attempt: {"tidied": 3})   # in each replica, at 02:00

        Raises :exc:`InvalidArgumentError` for a wrong option or name.
        """

    def election(self, name: str, **options: Unpack[_LockOptions]) -> Election:
        """The election ``name``: one leader of any number of candidates. No I/O.

        The options are those of :meth:`lock`. ``ttl`` is how long a leader that dies blocks the next one, ``wait`` how long a campaign
        waits while another one leads; :meth:`Election.lead` waits without end unless ``wait`` is given here.

            with client.election("scheduler", ttl=5).campaign() as leadership:
                print("leads in term", leadership.term)

        Raises :exc:`InvalidArgumentError` for a wrong option or name.
        """

    def adopt(self, ticket: str, *, or_acquire: bool = False, **options: Unpack[_LockOptions]) -> Hold:
        """Takes a lock over from another process, by what its ``hand_over()`` returned. The hold is a new one: new owner, new and
        larger fence. The ``ttl`` is that of the lock which was handed over, unless given.

            hold = client.adopt(ticket)  # what hand_over() returned

        Raises :exc:`LockLostError` with the reason ``ended`` if that hold has ended or was adopted before, also by an attempt of
        this call that lost its answer. ``or_acquire=True`` acquires the lock then, like any other: it waits for it, and what that
        hold protected may be half done. Otherwise raises what :meth:`Lock.acquire` raises, and :exc:`InvalidArgumentError` for any other
        text, or if this client's prefix differs from that of the other client.
        """

    def adopt_async(self, ticket: str, *, or_acquire: bool = False, **options: Unpack[_LockOptions]) -> Coroutine[Any, Any, AsyncHold]:
        """:meth:`adopt`, under asyncio."""

    def initialize_quorum(self) -> None:
        """Marks the servers of a quorum as trusted, so that they vote at once instead of after ``max_ttl``.

            client.initialize_quorum()  # once, when the servers are new

        Only for servers that are new, and only while no lock of this quorum may be held anywhere: a server that lost its data is
        kept from voting exactly because it may have forgotten a hold. Does nothing with one server.
        """

    def initialize_quorum_async(self) -> Coroutine[Any, Any, None]:
        """:meth:`initialize_quorum`, under asyncio."""

    def check_servers(self) -> list[ServerReport]:
        """What each server really guarantees; one that doesn't answer has a ``failure`` in its report.

            for report in client.check_servers():
                print(report.server, report.warnings)
        """

    def check_servers_async(self) -> Coroutine[Any, Any, list[ServerReport]]:
        """:meth:`check_servers`, under asyncio."""

    def locks(self, pattern: str = "*", *, limit: int | None = None) -> list[LockInfo]:
        """The locks that are held, by any client of this library, and whose names match ``pattern``, in the order of their names.

            for lock in client.locks("orders:*", limit=100):
                print(lock.name, lock.owner, lock.remaining)

        In the pattern ``*`` is any text, and ``?`` any one character. The servers list their keys in batches (``SCAN``),
        so that none of them stops for a list; it still costs some time for each key of the server. A lock that is acquired or released
        meanwhile may be in the list or not, and in a cluster also one whose slot moves meanwhile. A lock that another library holds
        isn't listed: :meth:`Lock.inspect` shows it.

        Raises :exc:`UnavailableError`, :exc:`DeniedError` (the user needs ``SCAN`` and ``GETRANGE``), :exc:`InvalidArgumentError`,
        :exc:`ClosedError`.
        """

    def locks_async(self, pattern: str = "*", *, limit: int | None = None) -> Coroutine[Any, Any, list[LockInfo]]:
        """:meth:`locks`, under asyncio."""

    def history(self, name: str | None = None, *, limit: int | None = 100) -> list[Grant]:
        """Who has held which lock, the latest first: the holds that their holders have noted on the server.

            for grant in client.history("orders:42", limit=20):
                print(grant.owner, grant.fence, grant.began, grant.state)

        ``name`` chooses one lock; without it the holds of all locks with this client's prefix are shown. A hold is noted with its
        first renewal, and with its end if it lasted a second or had found the lock held. So shorter ones are not shown. Of
        readers that were inside together the first one is noted, and of readers and holders of permits each that lost the lock. Holders
        don't wait for these notes, and one may be missing. The server keeps the last 10,000 of all locks.

        Raises :exc:`InvalidArgumentError`, also on a quorum, which has no history; :exc:`UnavailableError`, :exc:`DeniedError` (the
        user needs ``XREVRANGE`` of ``{~lt}:log``), :exc:`KeyConflictError`, :exc:`ClosedError`.
        """

    def history_async(self, name: str | None = None, *, limit: int | None = 100) -> Coroutine[Any, Any, list[Grant]]:
        """:meth:`history`, under asyncio."""

    def holds(self) -> list[HoldInfo]:
        """The locks that this client holds now, in the order of their names. Asks no server; in a forked child there are none.

            for hold in client.holds():
                print(hold.name, hold.held_for, hold.remaining)
        """

    def metrics(self) -> Metrics:
        """What this client has counted since it was made, and what it holds and waits for now.

            print(client.metrics().value("locktender_acquires_total", category="orders", end="acquired"))

        It is always counted; reading it asks no server. In a forked child it begins at zero.
        """

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
