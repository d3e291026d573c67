"""OpenTelemetry: how an acquire's span ends, for every error of an acquire. It ends as the metrics count it, if they count it."""

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest
from locktender import Client, Lock, LockError
from locktender.opentelemetry import LocktenderInstrumentor
from locktender.testing import ScriptedServer
from support.observe import PATIENCE, until
from test_opentelemetry import Telemetry


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    telemetry = Telemetry()
    LocktenderInstrumentor().instrument(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters)
    yield telemetry
    LocktenderInstrumentor().uninstrument()


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(f"memory://{uuid.uuid4().hex}", app="billing", prefix="p:") as client:
        yield client


def refusal(acquire: Callable[[], object]) -> str:
    with pytest.raises(LockError) as raised:
        acquire()
    return raised.value.code


def counted(client: Client) -> dict[str, float]:
    """How the client's acquires ended, as its metrics count them."""
    samples = [sample for metric in client.metrics() if metric.name == "locktender_acquires_total" for sample in metric.samples]
    return {sample.labels["end"]: sample.value for sample in samples if sample.value}


ASKED = {
    "ACQUIRE_TIMEOUT": ("always acquire: busy", "timed_out"),
    "UNAVAILABLE": ("always acquire: fail refused", "acquire_failed"),
    "DENIED": ("always acquire: fail denied", "acquire_failed"),
    "KEY_CONFLICT": ("always acquire: conflict", "acquire_failed"),
}


@pytest.mark.parametrize("code", ASKED)
def test_an_acquire_that_has_asked_ends_as_the_metrics_count_it(telemetry, code):
    script, end = ASKED[code]
    with Client(ScriptedServer(script), unavailable_after=0.01) as client:
        assert refusal(client.lock("orders:1", wait=0.01).acquire) == code
        [span] = telemetry.spans(1)
        told = span.attributes["locktender.end"], span.attributes["error.type"], span.attributes["locktender.lock_name"]
        assert (told, counted(client)) == ((end, code, "orders:1"), {end: 1})


def test_an_acquire_that_waits_while_its_client_closes_was_cancelled(telemetry, client):
    held = client.lock("orders:1").acquire()
    codes: list[str] = []
    waits = threading.Thread(target=lambda: codes.append(refusal(client.lock("orders:1", wait=PATIENCE).acquire)))
    waits.start()
    until(lambda: client.metrics().value("locktender_waiting"), PATIENCE)
    client.close()
    waits.join()
    assert not held.is_valid()
    span = next(span for span in telemetry.spans(3) if "error.type" in span.attributes and span.name == "acquire")
    assert (span.attributes["locktender.end"], codes) == ("cancelled", ["CLOSED"])
    assert counted(client) == {"acquired": 1, "cancelled": 1}


def test_a_dead_job_ends_as_the_metrics_count_it(telemetry, client):
    job = client.job("mail:7", max_attempts=1)
    job.begin().fail("no address", retry=False)
    assert refusal(job.begin) == "JOB_DEAD"
    span = telemetry.spans(3)[-1]
    assert (span.attributes["locktender.end"], span.attributes["error.type"]) == ("dead", "JOB_DEAD")
    assert counted(client) == {"acquired": 1, "dead": 1}


def waits_for_itself(client: Client) -> str:
    with client.lock("orders:1"):
        return refusal(client.lock("orders:1").__enter__)


def of_a_closed_client(client: Client, acquire: Callable[[], object]) -> str:
    client.close()
    return refusal(acquire)


async def awaited(lock: Lock) -> None:
    async with lock:
        pass


LOCK = {"lock_name": "orders:1", "key": "p:orders:1", "kind": "lock", "category": "orders", "app": "billing"}
#: What is refused before it asks a server: how, with which code, and what its span says of the lock.
REFUSED = {
    "waits for itself": (waits_for_itself, "DEADLOCK", LOCK),
    "try": (lambda client: of_a_closed_client(client, client.lock("orders:1").try_acquire), "CLOSED", LOCK),
    "closed": (lambda client: of_a_closed_client(client, client.lock("orders:1", category="f").acquire), "CLOSED", {**LOCK, "category": "f"}),
    "async": (lambda client: of_a_closed_client(client, lambda: asyncio.run(awaited(client.lock("orders:1")))), "CLOSED", LOCK),
    "job": (lambda client: of_a_closed_client(client, client.job("orders:1").begin), "CLOSED", {**LOCK, "kind": "job"}),
    "election": (lambda client: of_a_closed_client(client, client.election("orders:1").campaign), "CLOSED", {**LOCK, "kind": "election"}),
}


@pytest.mark.parametrize("way", REFUSED)
def test_a_refused_acquire_tells_its_lock_and_nothing_counts_it(telemetry, client, way):
    refuse, code, lock = REFUSED[way]
    assert refuse(client) == code
    LocktenderInstrumentor().uninstrument()  # what has ended is told then
    [*others, span] = sorted(telemetry.spans(1), key=lambda span: "error.type" in span.attributes)
    told = dict(span.attributes)
    assert told.pop("locktender.wait") >= 0
    wanted = {f"locktender.{name}": value for name, value in lock.items()}
    assert told == {**wanted, "locktender.end": "acquire_failed", "locktender.rounds": 0, "error.type": code}
    acquires = {"acquired": 1} if others else {}
    durations = [point.count for point in telemetry.metrics()["locktender.wait.duration"].data.data_points] if others else []
    assert (counted(client), durations) == (acquires, list(acquires.values()))


def test_no_listener_hears_of_a_refused_acquire(telemetry):
    heard: list[str] = []
    with Client(f"memory://{uuid.uuid4().hex}", on_event=lambda event: heard.append(event.kind)) as client:
        waits_for_itself(client)
        with client.lock("orders:2"):
            pass
        until(lambda: heard.count("released") == 2, PATIENCE)
    assert "acquire_failed" not in heard
