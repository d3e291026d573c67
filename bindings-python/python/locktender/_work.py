"""What runs a program's work, `Job.run` and `Election.lead`: methods of Python's own on the classes of the native module. A daemon
thread may be in the work when the interpreter ends, which then unwinds its stack: that ends the process if a frame of Rust is on it.
"""

from __future__ import annotations

from ._native import Election, Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._native import JobOutcome


def run(self: Job, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> JobOutcome:
    """Runs the job: begins an attempt, calls ``work(attempt, *args, **kwargs)``, and records how it ended.

    What ``work`` returns is the result, and the job is done. What it raises comes back, and the attempt failed: another one may
    begin, by this worker or another; after the last one the job is dead. Ctrl-C, ``sys.exit(0)``, a killed greenlet and the exit of
    the interpreter release the attempt: then it doesn't count. If the job was done before, or becomes done while this worker
    waits, or nothing is to run for its scheduled time, the outcome has ``ran`` false and says why.

        outcome = client.job("mail:7", max_attempts=5).run(lambda attempt: {"sent": 3})
        print(outcome.ran, outcome.result)

    Raises what :meth:`begin` and :meth:`Attempt.complete` raise, and what ``work`` raises.
    """
    from . import _job
    return _job.run(self, work, args, kwargs)


def lead(self: Election, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Leads term after term: campaigns, calls ``work(leadership, *args, **kwargs)`` as the leader, resigns when it has returned, and
    campaigns again, until :meth:`stop`.

    A campaign waits as long as it takes, unless the election has a ``wait`` of its own; it continues while the servers can't be
    reached. A loss can't stop ``work`` here: it calls ``leadership.check()`` before each step, whose :exc:`LockLostError` ends the
    term and not the call. What else ``work`` raises comes back, after the leader has resigned. It resigns only when ``work`` has
    ended, and calls no ``work`` before that.

        def schedule(leadership):
            while not leadership.stopping:
                leadership.check()
                work_a_little()
                election.stop()     # from any thread

        election = client.election("scheduler")
        election.lead(schedule)

    Raises what :meth:`campaign` raises, but :exc:`UnavailableError`; :exc:`AcquireTimeoutError` only if the election has a ``wait``
    of its own. :exc:`InvalidArgumentError` while another call leads by this election.
    """
    from . import _election
    _election.lead(self, work, args, kwargs)


for owner, method in ((Job, run), (Election, lead)):
    method.__qualname__ = f"{owner.__name__}.{method.__name__}"
    setattr(owner, method.__name__, method)
