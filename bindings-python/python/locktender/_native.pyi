"""The native module. Everything here is exported by ``locktender`` (and ``locktender.testing``): import it from there.

All times are seconds: ``float``, ``int`` or ``datetime.timedelta`` where you give them, ``float`` where you get them. The classes are in
the stubs next to this one, ``_native_*.pyi``, which are no modules.
"""

from collections.abc import Callable, Iterable
from typing import Any

from typing_extensions import Unpack

from ._native_client import Client as Client, _ClientOptions, _Servers
from ._native_election import (
    AsyncLeadership as AsyncLeadership,
    Election as Election,
    Leader as Leader,
    Leadership as Leadership,
    Observation as Observation,
    Observer as Observer,
    _Leading as _Leading,
)
from ._native_events import LockEvent as LockEvent, _Record as _Record
from ._native_hold import (
    AsyncHold as AsyncHold,
    AsyncMultiHold as AsyncMultiHold,
    Hold as Hold,
    MultiHold as MultiHold,
    _BaseHold as _BaseHold,
    _TaskHold as _TaskHold,
    _ThreadHold as _ThreadHold,
)
from ._native_job import (
    AsyncAttempt as AsyncAttempt,
    Attempt as Attempt,
    Job as Job,
    JobOutcome as JobOutcome,
    JobStatus as JobStatus,
    _AroundAttempt as _AroundAttempt,
)
from ._native_lock import Lock as Lock, MultiLock as MultiLock, _Around as _Around, _BaseLock as _BaseLock
from ._native_metrics import Metric as Metric, Metrics as Metrics, Sample as Sample
from ._native_options import _CronJobOptions, _JobOptions, _LockOptions, _MultiLockOptions
from ._native_testing import Clock as Clock, ScriptedServer as ScriptedServer, Seen as Seen
from ._native_values import (
    Credentials as Credentials,
    Grant as Grant,
    HoldInfo as HoldInfo,
    LockInfo as LockInfo,
    Loss as Loss,
    OwnerFields as OwnerFields,
    Release as Release,
    ServerReport as ServerReport,
    _Asked as _Asked,
)

__all__ = [
    "AsyncAttempt",
    "AsyncHold",
    "AsyncLeadership",
    "AsyncMultiHold",
    "Attempt",
    "Client",
    "Clock",
    "Credentials",
    "Election",
    "Grant",
    "Hold",
    "HoldInfo",
    "Job",
    "JobOutcome",
    "JobStatus",
    "Leader",
    "Leadership",
    "Lock",
    "LockEvent",
    "LockInfo",
    "Loss",
    "Metric",
    "Metrics",
    "MultiHold",
    "MultiLock",
    "Observation",
    "Observer",
    "OwnerFields",
    "Release",
    "Sample",
    "ScriptedServer",
    "Seen",
    "ServerReport",
    "_Around",
    "_AroundAttempt",
    "_Asked",
    "_BaseHold",
    "_BaseLock",
    "_Leading",
    "_Record",
    "_TaskHold",
    "_ThreadHold",
    "__version__",
    "_close_all",
    "_missing",
    "_fail_credentials",
    "_follow",
    "_forked",
    "_give_credentials",
    "_histogram_bounds",
    "_next_credentials",
    "_next_events",
    "_number_of",
    "_use",
    "configure",
    "cron_job",
    "election",
    "job",
    "lock",
    "metrics",
    "multi_lock",
    "read_lock",
    "safe_name",
    "semaphore",
]

__version__: str

def election(name: str, **options: Unpack[_LockOptions]) -> Election:
    """An election of the default client: see :meth:`Client.election`. It stays with the client that is the default one at its first
    use.

        from locktender import election

        scheduler = election("scheduler")                    # scheduler.lead(schedule) campaigns and leads, again and again
    """

def job(name: str, **options: Unpack[_JobOptions]) -> Job:
    """A job of the default client: see :meth:`Client.job`.

        from locktender import job

        @job("mail:{day}", max_attempts=5)
        def mail(attempt: Attempt, day: str) -> None: ...
    """

def lock(name: str | Callable[..., str], **options: Unpack[_LockOptions]) -> Lock:
    """A lock of the default client: see :meth:`Client.lock`.

    The default client is made at the first operation, from what :func:`configure` was given or else from the environment's
    ``LOCKTENDER_URL``.

        from locktender import lock

        @lock("user:{user_id}", wait=2)
        def charge(user_id: int) -> None: ...
    """

def read_lock(name: str | Callable[..., str], **options: Unpack[_LockOptions]) -> Lock:
    """A read lock of the default client: see :meth:`Client.read_lock`. **The writer is** :func:`lock` of the same name.

        from locktender import read_lock

        @read_lock("prices:{shop}")
        def prices(shop: str) -> dict[str, int]: ...
    """

def semaphore(name: str | Callable[..., str], *, permits: int, **options: Unpack[_LockOptions]) -> Lock:
    """A semaphore of the default client: see :meth:`Client.semaphore`.

        from locktender import semaphore

        @semaphore("renders", permits=5)
        def render(page: str) -> bytes: ...
    """

def multi_lock(names: Iterable[str] | Callable[..., Iterable[str]], **options: Unpack[_MultiLockOptions]) -> MultiLock:
    """Several locks of the default client, acquired together: see :meth:`Client.multi_lock`.

        from locktender import multi_lock

        @multi_lock(["account:{payer}", "account:{payee}"])
        def pay(payer: int, payee: int) -> None: ...
    """

def cron_job(name: str, **options: Unpack[_CronJobOptions]) -> Job:
    """A job of the default client that runs once per scheduled time: see :meth:`Client.cron_job`.

        from locktender import cron_job

        @cron_job("nightly", every=3600)
        def nightly(attempt: Attempt) -> None: ...        # nightly() in each replica; one of them runs it
    """

def metrics() -> Metrics:
    """The metrics of all clients of this process, as those of one client: see :meth:`Client.metrics`. The totals of those that are gone stay.

        from locktender import metrics

        print(metrics().openmetrics())
    """

def safe_name(text: str, /) -> str:
    """A lock's name for any text: an empty one, one that is too long, one with ``{``, ``}``, NUL or ``:~lt:``.

    Two texts never get the same name, and every language gives a text the same one. What a name can't have is written as ``%XX``,
    and so is ``%``. Of a text whose name would be too long the beginning stays, with the SHA-256 of the whole. Use it for all
    texts of a kind or for none: ``safe_name("50%")`` is not the lock ``50%``. ::

        with client.lock(safe_name(user)) as hold: ...
    """

def configure(servers: _Servers | None = None, **options: Unpack[_ClientOptions]) -> None:
    """Sets the default client, from the next operation on: the arguments are those of :class:`Client`.

        configure("redis://localhost", prefix="billing:", wait=5)
    """


def _use(named: Callable[[str, str], Any], /) -> None: ...
def _next_events() -> list[tuple[Callable[..., object] | None, LockEvent | _Record | tuple[str, dict[str, Any]]]]: ...
def _next_credentials() -> _Asked: ...
def _give_credentials(asked: _Asked, credentials: Credentials, /) -> None: ...
def _fail_credentials(asked: _Asked, error: BaseException, text: str, /) -> None: ...
def _number_of(client: Client, /) -> int: ...
def _follow(follower: Callable[[_Record], None] | None, /) -> None: ...
def _histogram_bounds() -> list[float]: ...
def _close_all() -> None: ...
def _missing(object: object, name: str, /) -> None: ...
def _forked() -> None: ...
