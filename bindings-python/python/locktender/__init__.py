"""Distributed locks on Redis: renewed while you work, fenced, and handed over at once.

    from locktender import Client

    client = Client("redis://localhost")
    with client.lock("orders:42", ttl=10, wait=5) as hold:
        write(row, fence=hold.fence)
"""

TYPE_CHECKING = False  # without an import of typing

from . import _used_by_native as _used_by_native
from . import _work as _work
from ._children import settle_in as _settle_in
from ._native import (
    AsyncAttempt,
    AsyncHold,
    AsyncLeadership,
    AsyncMultiHold,
    Attempt,
    Client,
    Credentials,
    Election,
    Grant,
    Hold,
    HoldInfo,
    Job,
    JobOutcome,
    JobStatus,
    Leader,
    Leadership,
    Lock,
    LockEvent,
    LockInfo,
    Loss,
    Metric,
    Metrics,
    MultiHold,
    MultiLock,
    Observation,
    Observer,
    OwnerFields,
    Release,
    Sample,
    ServerReport,
    __version__,
    configure,
    cron_job,
    election,
    job,
    lock,
    metrics,
    multi_lock,
    read_lock,
    safe_name,
    semaphore,
)
from ._try_outcome import TryOutcome
from .errors import (
    AcquireTimeoutError,
    ClosedError,
    DeadlockError,
    DeniedError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    JobDeadError,
    KeyConflictError,
    LockError,
    LockLostError,
    NotHeldError,
    ServerFailure,
    UnavailableError,
)

_settle_in()

__all__ = [
    "AcquireTimeoutError",
    "AsyncAttempt",
    "AsyncHold",
    "AsyncLeadership",
    "AsyncMultiHold",
    "Attempt",
    "Client",
    "ClosedError",
    "DeadlockError",
    "Credentials",
    "DeniedError",
    "Election",
    "ForkedError",
    "Grant",
    "Hold",
    "HoldInfo",
    "InternalError",
    "InvalidArgumentError",
    "Job",
    "JobDeadError",
    "JobOutcome",
    "JobStatus",
    "KeyConflictError",
    "Leader",
    "Leadership",
    "Lock",
    "LockError",
    "LockEvent",
    "LockInfo",
    "LockLostError",
    "Loss",
    "Metric",
    "Metrics",
    "MultiHold",
    "MultiLock",
    "NotHeldError",
    "Observation",
    "Observer",
    "OwnerFields",
    "Release",
    "Sample",
    "ServerFailure",
    "ServerReport",
    "TryOutcome",
    "UnavailableError",
    "__version__",
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

if not TYPE_CHECKING:  # a type checker knows each name

    def __getattr__(name):
        from sys import modules

        from ._native import _missing

        _missing(modules[__name__], name)

    def _missing_of_error(error, name):
        # What Python itself looks for in an exception begins with an underscore, also while the interpreter ends.
        if name.startswith("_"):
            raise AttributeError(f"'{type(error).__name__}' object has no attribute '{name}'", name=name, obj=error)
        from ._native import _missing

        _missing(error, name)

    # Not in its own module, which the native one imports.
    LockError.__getattr__ = _missing_of_error
