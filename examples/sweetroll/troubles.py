"""Troubles: what an operator should have seen once, made on purpose. Each is shown as log, metrics, dashboards and alerts show it."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from server import PrivateServer

from locktender import AcquireTimeoutError, Client, LockEvent, LockError, metrics

# Seconds. A renewal begins with two thirds of it left.
TTL = 0.6
APPS = ["Diego", "Gorn"]
PATIENCE = 10.0


class Tavern(NamedTuple):
    """Two applications and the server of their locks."""

    server: PrivateServer
    diego: Client
    gorn: Client


def expired(tavern: Tavern) -> None:
    held = tavern.diego.lock("honeynut", renew=False).acquire()
    tavern.server.delete("honeynut")
    held.release()


def raced(tavern: Tavern) -> None:
    held = tavern.diego.lock("honeynut", renew=False).acquire()
    tavern.server.delete("honeynut")
    with tavern.gorn.lock("honeynut"):
        held.release()


def overslept(tavern: Tavern) -> None:
    held = tavern.diego.lock("fireplace", ttl=TTL / 3, renew=False).acquire()
    time.sleep(TTL / 2)
    held.release()


def lost(tavern: Tavern) -> None:
    held = tavern.diego.lock("mudcrab").acquire()
    tavern.server.delete("mudcrab")
    held.wait_lost(PATIENCE)
    held.release()


def held_too_long(tavern: Tavern) -> None:
    held = tavern.gorn.lock("bathroom", max_hold=TTL / 2).acquire()
    held.wait_lost(PATIENCE)
    held.release()


def renewed_late(tavern: Tavern) -> None:
    """The server stands still from before the renewal until shortly before the end of the hold."""
    ttl = TTL * 3
    with suppress(LockError), tavern.diego.lock("mead", ttl=ttl) as held:
        held.wait_lost(ttl / 6)
        tavern.server.pause()
        held.wait_lost(ttl * 0.6)
        tavern.server.resume()
        held.wait_lost(ttl / 6)


def waited(tavern: Tavern) -> None:
    """The first waiter gets the lock from hand to hand. One who comes behind it gives up, and one doesn't even wait."""
    held = tavern.diego.lock("anvil").acquire()

    def wait() -> None:
        with tavern.gorn.lock("anvil", fair=True, wait=PATIENCE) as later:
            later.extend(TTL)

    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: metrics().value("locktender_waiting", category="anvil") == 1)
    with suppress(AcquireTimeoutError):
        tavern.gorn.lock("anvil", fair=True, wait=TTL / 2).acquire()
    tavern.gorn.lock("anvil").try_acquire()
    held.release()
    waiter.join()


def died(tavern: Tavern) -> None:
    job = tavern.diego.job("letter:42", max_attempts=2, retry_delay=0.0)
    job.reset()
    for error in ("no ink", "no paper"):
        attempt = job.begin()
        assert attempt is not None
        attempt.fail(error)


def resigned(tavern: Tavern) -> None:
    with tavern.gorn.election("innkeeper").campaign() as leadership:
        leadership.wait_lost(TTL)


def restarted(tavern: Tavern) -> None:
    with suppress(LockError), tavern.diego.lock("cellar", ttl=TTL * 5) as held:
        failovers = metrics().value("locktender_failovers_total", app="Diego")
        tavern.server.kill()
        until(lambda: metrics().value("locktender_server_up", app="Diego") == 0)
        tavern.server.revive(empty=False)
        until(lambda: metrics().value("locktender_failovers_total", app="Diego") > failovers or not held.is_valid())


class Trouble(NamedTuple):
    """What happens, and where it shows: an event, a metric with labels, a panel of both dashboards, and the alert that fires."""

    title: str
    make: Callable[[Tavern], None]
    event: str
    metric: str
    labels: dict[str, str]
    panel: str
    alert: str | None = None


TROUBLES = [
    Trouble(
        "Diego's key is deleted, and nobody takes the lock",
        expired,
        "expired",
        "locktender_validity_exceeded_total",
        {"overlap": "excluded"},
        "Validity exceeded",
    ),
    Trouble(
        "Diego's key is deleted, and Gorn takes the lock: an overlap",
        raced,
        "overlapped",
        "locktender_validity_exceeded_total",
        {"overlap": "proved"},
        "Validity exceeded",
        "LocktenderOverlap",
    ),
    Trouble(
        "Diego doesn't renew his lock, and sleeps for longer than it lives",
        overslept,
        "expired",
        "locktender_validity_exceeded_total",
        {"category": "fireplace"},
        "Validity exceeded",
    ),
    Trouble(
        "Diego's key is deleted while he works",
        lost,
        "lost",
        "locktender_losses_total",
        {"reason": "missing"},
        "Lost holds, by reason",
        "LocktenderLockLost",
    ),
    Trouble(
        "Gorn holds the bathroom for longer than its max_hold",
        held_too_long,
        "lost",
        "locktender_losses_total",
        {"reason": "max_hold"},
        "Lost holds, by reason",
    ),
    Trouble(
        "The server stands still, and a renewal is late",
        renewed_late,
        "renewed",
        "locktender_late_renewals_total",
        {},
        "Renewals and extensions",
    ),
    Trouble(
        "Two wait for Diego, and one of them in vain",
        waited,
        "timed_out",
        "locktender_acquires_total",
        {"end": "timed_out"},
        "Wait",
    ),
    Trouble(
        "Diego's job fails for the last time",
        died,
        "dead",
        "locktender_job_attempts_total",
        {"end": "dead"},
        "Attempts of jobs",
        "LocktenderJobDead",
    ),
    Trouble(
        "Gorn leads the inn, and resigns",
        resigned,
        "acquired",
        "locktender_acquires_total",
        {"kind": "election", "end": "acquired"},
        "Rounds, busy, acquired and overlaps",
    ),
    Trouble(
        "The server is killed, and comes back",
        restarted,
        "failed_over",
        "locktender_failovers_total",
        {},
        "Servers",
        "LocktenderFailover",
    ),
]


class Log(logging.Handler):
    """The lines that the library has logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def lines(self, event: str, since: int) -> list[str]:
        found = [record for record in self.records[since:] if getattr(record, "event", "") == event]
        return [f"{record.levelname} {record.getMessage()}" for record in found]


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


def samples(trouble: Trouble) -> list[str]:
    """The lines of the metric's text that have risen."""
    lines = [line for line in metrics().openmetrics().splitlines() if line.startswith(trouble.metric)]
    wanted = [f'{label}="{value}"' for label, value in trouble.labels.items()]
    return [line for line in lines if all(label in line for label in wanted) and not line.endswith(" 0")]


def meet(trouble: Trouble, tavern: Tavern, log: Log) -> None:
    """Makes the trouble and shows it."""
    before = metrics().value(trouble.metric, **trouble.labels)
    # A busy machine can spoil what depends on time.
    for _ in range(5):
        seen = len(log.records)
        trouble.make(tavern)
        if metrics().value(trouble.metric, **trouble.labels) > before:
            break
    until(lambda: bool(log.lines(trouble.event, seen)))
    print(f"\n{trouble.title}")
    print(f"   log     {log.lines(trouble.event, seen)[0]}")
    for line in samples(trouble):
        print(f"   metric  {line}")
    print(f"   panel   {trouble.panel}")
    if trouble.alert:
        print(f"   alert   {trouble.alert}", flush=True)


def show(server: PrivateServer, seconds: float, listeners: Mapping[str, Callable[[LockEvent], object]]) -> None:
    """Makes every trouble once, and again until so many seconds are over. A listener hears the events of its application."""
    log = Log()
    logger = logging.getLogger("locktender")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(log)
    end = time.monotonic() + seconds
    diego, gorn = (Client(server.url, app=app, ttl=TTL, on_event=listeners.get(app)) for app in APPS)
    with diego, gorn:
        tavern = Tavern(server, diego, gorn)
        while True:
            for trouble in TROUBLES:
                meet(trouble, tavern, log)
            if time.monotonic() > end:
                return
            log.records.clear()
