"""Stub of :mod:`locktender._native`: the plain results of operations."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal, final

from ._native_options import _Seconds

@final
class Credentials:
    """A user and a password for a server, and how long they are good: what a client's ``credentials`` may return.

        client = Client("rediss://db.example", credentials=lambda: Credentials("token", user="billing", expires_in=900))

    ``password``
        The password, or a token.
    ``user``
        The user. Default: the server's default user.
    ``expires_in``
        For how many seconds from now they are good. When two thirds of that are over, ``credentials`` is called for the next ones; less
        than a second counts as a second. Default unknown: it is called again after 5 minutes.
    """

    def __new__(cls, password: str, *, user: str | None = None, expires_in: _Seconds | None = None) -> Credentials: ...
    @property
    def user(self) -> str | None:
        """The user; ``None`` for the server's default user."""

    @property
    def password(self) -> str:
        """The password."""

    @property
    def expires_in(self) -> float | None:
        """For how many seconds they are good; ``None`` if that is unknown."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class _Asked:
    """What a thread is asked to find out."""

    @property
    def server(self) -> str:
        """The server's address, without credentials."""

    @property
    def credentials(self) -> Callable[..., object] | None:
        """The client's callable; ``None`` if the client is gone."""

@final
class Release:
    """How a release ended."""

    @property
    def outcome(self) -> Literal["released", "expired", "taken"]:
        """``released``; ``expired`` if the lock had run out and is free, no server could be asked until its ttl was over, or one of its
        keys holds what no lock writes there; ``taken`` if another owner has it, or had it in between."""

    @property
    def next_owner(self) -> str | None:
        """With ``taken``: the owner value of the next holder, which has it now or had it in between; ``None`` if that is unknown."""

    @property
    def next_fence(self) -> int | None:
        """With ``taken``: the fence of the latest hold that came between, if the servers show it. It is about the microsecond in
        which it was issued, so it also says since when."""

    @property
    def overrun(self) -> float:
        """How many seconds after the end of its validity it was released, by our clock."""

    @property
    def kept(self) -> float:
        """With ``released``: for how many seconds the lock stays taken, because of its ``min_hold``."""

@final
class Loss:
    """How a lock was lost. The fields are those of :exc:`LockLostError`."""

    @property
    def reason(self) -> Literal["expired", "missing", "taken", "superseded", "conflict", "max_hold", "closed", "ended"]:
        """Why: its validity ran out; its key is gone, is or was another owner's, has a newer fence, or holds what no lock writes;
        ``max_hold``; the client was closed; what was to be adopted has ended, or was adopted before."""

    @property
    def next_owner(self) -> str | None:
        """The owner value of the next holder, if that is known."""

    @property
    def next_fence(self) -> int | None:
        """The fence of the hold of ``next_owner``, or of one that came between, if the servers show it."""

    @property
    def overrun(self) -> float:
        """How many seconds the holder continued after the end of its validity."""

@final
class LockInfo:
    """What the servers show of a held lock."""

    @property
    def name(self) -> str:
        """The lock's name, without the client's prefix."""

    @property
    def owner(self) -> str:
        """The holder's owner value, or the value that another library wrote, up to its first 1,024 bytes. If several hold the lock, that of
        the holder whose hold ends last."""

    @property
    def fields(self) -> OwnerFields | None:
        """The value's fields, if locktender wrote it."""

    @property
    def remaining(self) -> float:
        """How many seconds the key remains; ``math.inf`` if it has no expiry."""

    @property
    def fence(self) -> int | None:
        """The fence of the hold if its value shows it, else ``None``: on one server mostly from the first renewal on. On a quorum the last
        one issued."""

    @property
    def holder_count(self) -> int:
        """The number of holders: 1, but for a semaphore and for readers."""

    @property
    def holders(self) -> list[str]:
        """The owner values of the holders, the first hundred whose holds end."""

    @property
    def available(self) -> int | None:
        """The free permits of a semaphore; ``None`` for any other lock."""

    @property
    def waiters(self) -> int:
        """The length of the queue. The waiters of one process count as one unless the lock is a fair one."""

    @property
    def queue(self) -> list[str]:
        """The first hundred of them, in the order of the line, each with the readable fields of its process."""

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
    def at(self) -> datetime | None:
        """When the holder asked, by its own clock (UTC)."""

    @property
    def id(self) -> str | None:
        """The unique id of the acquisition."""

@final
class Grant:
    """A hold that its holder has noted in the history."""

    @property
    def name(self) -> str:
        """The lock's name, without the client's prefix."""

    @property
    def owner(self) -> str:
        """The owner value."""

    @property
    def fields(self) -> OwnerFields | None:
        """The fields of the owner value."""

    @property
    def fence(self) -> int:
        """The fencing token."""

    @property
    def began(self) -> datetime:
        """When the hold began, by the server's clock (UTC)."""

    @property
    def ended(self) -> datetime | None:
        """When it ended, by the server's clock; ``None`` if it continues, or if its end wasn't noted."""

    @property
    def state(self) -> Literal["holds", "released", "lost"]:
        """Its state when it was noted last: ``holds``, ``released`` or ``lost``."""

    @property
    def is_shared(self) -> bool:
        """Whether others may have had the lock at the same time: it is the hold of a reader, or of a permit."""

@final
class HoldInfo:
    """A hold of this client."""

    @property
    def name(self) -> str:
        """The lock's name, without the client's prefix."""

    @property
    def kind(self) -> Literal["lock", "job", "cron_job", "election", "semaphore", "read_lock", "multi_lock"]:
        """What the lock is for: ``lock``, ``job``, ``cron_job``, ``election``, ``semaphore``, ``read_lock`` or ``multi_lock``."""

    @property
    def owner(self) -> str:
        """The owner value: the value of the key on the servers begins with it."""

    @property
    def fence(self) -> int:
        """The fencing token."""

    @property
    def held_for(self) -> float:
        """How many seconds ago the lock was granted."""

    @property
    def remaining(self) -> float:
        """How many seconds the lock is guaranteed to be held if nothing renews it."""

@final
class ServerReport:
    """What one server really guarantees."""

    @property
    def server(self) -> str:
        """Its address, without credentials."""

    @property
    def failure(self) -> str | None:
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
        """How far its clock is ahead of this machine's, in seconds; negative if it is slow."""

    @property
    def denied(self) -> list[str] | None:
        """What locks need and this client's user may not do, one line each; ``None`` if that is unknown."""

    @property
    def warnings(self) -> list[str]:
        """What needs attention, one sentence each."""
