"""What can go wrong. The code is the contract, the text is one sentence.

Every error is a :class:`LockError`; most are also what Python itself would raise (``TimeoutError``, ``ConnectionError``, ...).
All of them pickle, with code and fields.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


# The page about errors, with a heading for each code.
_PAGE = "https://github.com/locktender/locktender/blob/main/docs/errors.md#"


class LockError(Exception):
    """Any error of this package.

    ``code`` is the same text in Python, Node and Rust; ``lock_name`` is the lock's name where the error is about one; ``docs_url`` is the
    page about the code.
    """

    code: str = "INTERNAL"
    lock_name: str | None

    def __init__(self, message: str = "", *, lock_name: str | None = None) -> None:
        super().__init__(message)
        self.lock_name = lock_name

    @property
    def docs_url(self) -> str:
        """The address of what the documentation says of the code: when it occurs, and what to do."""
        return _PAGE + self.code.lower()


class AcquireTimeoutError(LockError, TimeoutError):
    """``wait`` ran out while the lock was held.

    ``holder`` is the holder's owner value, ``remaining`` the seconds its key had left: ``math.inf`` if it has no expiry.
    ``rank`` is how many waited before this one, or None if the server had not queued it.
    """

    code = "ACQUIRE_TIMEOUT"

    def __init__(
        self,
        message: str = "",
        *,
        lock_name: str | None = None,
        holder: str | None = None,
        remaining: float | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(message, lock_name=lock_name)
        self.holder = holder
        self.remaining = remaining
        self.rank = rank


class LockLostError(LockError):
    """The lock was ours and no longer is.

    ``reason`` is one of ``expired``, ``missing``, ``taken``, ``superseded``, ``conflict``, ``max_hold``, ``closed`` and, of an
    ``adopt``, ``ended``; ``next_owner`` the owner value of the next holder, which holds it now or held it in between, if that is known;
    ``next_fence`` the fence of that hold, if the servers show it; ``overrun`` the seconds the holder continued after its validity had
    ended; ``result`` what the body of a decorated function had returned.
    """

    code = "LOCK_LOST"

    def __init__(
        self,
        message: str = "",
        *,
        lock_name: str | None = None,
        reason: str | None = None,
        next_owner: str | None = None,
        next_fence: int | None = None,
        overrun: float = 0.0,
        result: Any = None,
    ) -> None:
        super().__init__(message, lock_name=lock_name)
        self.reason = reason
        self.next_owner = next_owner
        self.next_fence = next_fence
        self.overrun = overrun
        self.result = result


class NotHeldError(LockError):
    """The lock was already released or handed over by this handle, or was never held by it."""

    code = "NOT_HELD"


class ServerFailure:
    """Why one server didn't answer as it should: its address, a kind such as ``refused`` or ``timeout``, and a sentence."""

    __slots__ = ("kind", "message", "server")

    server: str
    kind: str
    message: str

    def __init__(self, server: str, kind: str, message: str) -> None:
        self.server = server
        self.kind = kind
        self.message = message

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerFailure):
            return NotImplemented
        return (self.server, self.kind, self.message) == (other.server, other.kind, other.message)

    def __hash__(self) -> int:
        return hash((self.server, self.kind, self.message))

    def __repr__(self) -> str:
        return f"ServerFailure(server={self.server!r}, kind={self.kind!r}, message={self.message!r})"


class _ServersError(LockError):
    servers: list[ServerFailure]

    def __init__(
        self, message: str = "", *, lock_name: str | None = None, servers: Iterable[tuple[str, str, str]] = ()
    ) -> None:
        super().__init__(message, lock_name=lock_name)
        self.servers = [ServerFailure(*server) for server in servers]


class UnavailableError(_ServersError, ConnectionError):
    """The server, or a majority of several, could not be used; ``servers`` has one error for each that failed."""

    code = "UNAVAILABLE"


class DeniedError(_ServersError, PermissionError):
    """The servers refused the credentials, or the rights to what a lock needs; ``servers`` has one error for each."""

    code = "DENIED"


class KeyConflictError(LockError):
    """A key of the lock holds something that no lock writes there, such as a list. It was left as it is."""

    code = "KEY_CONFLICT"


class InvalidArgumentError(LockError, ValueError):
    """An option, a name or a URL is wrong; the text says which, and what was given."""

    code = "INVALID_ARGUMENT"


class DeadlockError(LockError, RuntimeError):
    """The thread or task holds this lock already, and would wait for itself. Locks are not re-entrant: pass the hold down."""

    code = "DEADLOCK"


class ClosedError(LockError, RuntimeError):
    """The client is closed."""

    code = "CLOSED"


class ForkedError(LockError, RuntimeError):
    """The handle was inherited through a fork: the lock is the parent's."""

    code = "FORKED"


class JobDeadError(LockError):
    """The job's last attempt failed or died: no further one begins. ``attempts`` is how many there were, ``last_error`` what the
    last one said when it failed, or that its worker died.
    """

    code = "JOB_DEAD"

    def __init__(
        self, message: str = "", *, lock_name: str | None = None, attempts: int | None = None, last_error: str | None = None
    ) -> None:
        super().__init__(message, lock_name=lock_name)
        self.attempts = attempts
        self.last_error = last_error


class InternalError(LockError):
    """A bug of this package; please report it."""

    code = "INTERNAL"


# The native module finds the class of an error by its code.
_ALL = (
    AcquireTimeoutError, LockLostError, NotHeldError, UnavailableError, DeniedError, KeyConflictError,
    InvalidArgumentError, DeadlockError, ClosedError, ForkedError, JobDeadError, InternalError,
)
_CLASSES = {kind.code: kind for kind in _ALL}
