"""Distributed locks on Redis: renewed while you work, fenced, and handed over at once.

    from locktender import Client

    client = Client("redis://localhost")
    with client.lock("orders:42", ttl=10, wait=5) as held:
        write(row, fence=held.fence)
"""

from . import _used_by_native as _used_by_native
from ._children import settle_in as _settle_in
from ._native import (
    AsyncAttempt,
    AsyncHeld,
    AsyncLeadership,
    Attempt,
    Client,
    Election,
    Event,
    Held,
    Job,
    JobOutcome,
    JobStatus,
    Leader,
    Leadership,
    Lock,
    LockInfo,
    Loss,
    Observation,
    Observer,
    OwnerFields,
    Release,
    ServerReport,
    __version__,
    configure,
    job,
    lock,
    once,
    safe_name,
)
from ._ran import Ran
from .errors import (
    AcquireTimeoutError,
    ClosedError,
    DeniedError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    JobDeadError,
    KeyConflictError,
    LockError,
    LockLostError,
    NotHeldError,
    ServerError,
    UnavailableError,
)

_settle_in()

__all__ = [
    "AcquireTimeoutError",
    "AsyncAttempt",
    "AsyncHeld",
    "AsyncLeadership",
    "Attempt",
    "Client",
    "ClosedError",
    "DeniedError",
    "Election",
    "Event",
    "ForkedError",
    "Held",
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
    "LockInfo",
    "LockLostError",
    "Loss",
    "NotHeldError",
    "Observation",
    "Observer",
    "OwnerFields",
    "Ran",
    "Release",
    "ServerError",
    "ServerReport",
    "UnavailableError",
    "__version__",
    "configure",
    "job",
    "lock",
    "once",
    "safe_name",
]
