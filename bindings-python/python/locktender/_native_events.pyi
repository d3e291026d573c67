"""Stub of :mod:`locktender._native`: events, and what an instrumentation records."""

from typing import ClassVar, Literal, TypeAlias, final

@final
class LockEvent:
    """Something that happened to a lock or a server. Fields that don't apply are ``None``."""

    _fields: ClassVar[list[str]]

    @property
    def kind(
        self,
    ) -> Literal[
        "round",
        "busy",
        "not_acquired",
        "queued",
        "notified",
        "acquired",
        "timed_out",
        "cancelled",
        "acquire_failed",
        "renewed",
        "extended",
        "released",
        "handed_over",
        "expired",
        "lost",
        "overlapped",
        "dropped",
        "done",
        "retry",
        "dead",
        "skipped",
        "leader",
        "force_released",
        "server_failed",
        "server_recovered",
        "failed_over",
        "warning",
    ]:
        """What happened."""

    @property
    def level(self) -> int:
        """As in ``logging``."""

    @property
    def lock_name(self) -> str | None:
        """The lock's name."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of all locks that are acquired together, for an event of one of them. For one of the acquire of all ``lock_name`` has
        all names, with commas between them.
        """

    @property
    def key(self) -> str | None:
        """The lock's whole key on the servers: the prefix and the name."""

    @property
    def lock_kind(self) -> Literal["lock", "job", "cron_job", "election", "semaphore", "read_lock", "multi_lock"] | None:
        """What the lock is for: ``lock``, ``job``, ``cron_job``, ``election``, ``semaphore``, ``read_lock`` or ``multi_lock``."""

    @property
    def category(self) -> str | None:
        """The lock's category: see :meth:`Client.lock`."""

    @property
    def owner(self) -> str | None:
        """Our owner value."""

    @property
    def fence(self) -> int | None:
        """Our fence."""

    @property
    def holder(self) -> str | None:
        """The owner value of the holder, for ``busy``, ``not_acquired``, ``timed_out`` and a ``warning``; of the leader, for
        ``leader``; of whose hold was ended, for ``force_released``.
        """

    @property
    def holder_fence(self) -> int | None:
        """The fence of that hold, if the servers show it."""

    @property
    def next_owner(self) -> str | None:
        """The owner value of the next holder, for ``lost``, ``overlapped`` and a ``warning``: the value in the key, or what the
        history shows.
        """

    @property
    def next_fence(self) -> int | None:
        """The fence of that hold, if the servers show it."""

    @property
    def last_owner(self) -> str | None:
        """The owner value of the last attempt of a job, for ``done``, ``dead`` and ``skipped``."""

    @property
    def reason(self) -> str | None:
        """Why the lock was lost."""

    @property
    def took(self) -> float | None:
        """How many seconds it took: the wait of an acquire and the time of a hold, however they ended, the round trip of a renewal or an
        extension.
        """

    @property
    def notified_ago(self) -> float | None:
        """For ``acquired``, if the acquire waited: how many seconds ago it was notified that the lock is free or kept for it."""

    @property
    def overrun(self) -> float | None:
        """For ``expired``, ``lost`` and ``overlapped``: how many seconds after the end of its validity the hold was released, or its loss was
        noticed.
        """

    @property
    def remaining(self) -> float | None:
        """For ``renewed`` and ``extended``: how many seconds of validity were left when the confirmation came."""

    @property
    def rank(self) -> int | None:
        """How many wait before us, for ``queued``."""

    @property
    def attempt(self) -> int | None:
        """The number of the attempt, of a job."""

    @property
    def server(self) -> str | None:
        """The server, for ``server_failed``, ``server_recovered`` and ``failed_over``, and for a ``warning`` about one."""

    @property
    def address(self) -> str | None:
        """The address of the node that answers now, for ``failed_over``."""

    @property
    def old_replication_id(self) -> str | None:
        """The replication id of the node before, for ``failed_over``."""

    @property
    def new_replication_id(self) -> str | None:
        """The replication id of the node that answers now, for ``failed_over``."""

    @property
    def message(self) -> str | None:
        """One sentence more."""

    @property
    def at(self) -> float:
        """When it happened, by this machine's clock: seconds since 1970."""

    def line_protocol(self, **tags: str) -> str:
        """The event as one line of InfluxDB's line protocol, with these tags besides its own: see :mod:`locktender.influxdb`.

            client = Client("memory://example", on_event=lambda event: print(event.line_protocol(app="billing")))
        """

_Attributes: TypeAlias = dict[str, str | int | float]

@final
class _Record:
    """What is to be recorded of an acquire that is followed."""

    @property
    def number(self) -> int:
        """The acquire's number."""

    @property
    def client(self) -> int | None:
        """The number of its client, if it had an event."""

    @property
    def time(self) -> tuple[str, float, _Attributes] | None:
        """A value of a histogram: its name, the seconds, and attributes."""

    @property
    def span(self) -> tuple[str, int, int, _Attributes, str | None, tuple[str, _Attributes] | None] | None:
        """A span that has ended: its name, begin and end in nanoseconds since 1970, attributes, the error, and the event at its end."""

    @property
    def is_last(self) -> bool:
        """Whether no record of this acquire comes any more."""
