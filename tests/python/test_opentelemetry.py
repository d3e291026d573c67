"""OpenTelemetry, by its own API and SDK: spans of acquires and holds, and metrics equal to the client's."""

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
import uuid
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, Histogram, InMemoryMetricReader, Sum
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from locktender import AcquireTimeoutError, Client, ClosedError, LockLostError, UnavailableError, metrics
from locktender._spans import Followed
from locktender.opentelemetry import LocktenderInstrumentor
from support.observe import PATIENCE, until

PAGE = Path(__file__).parents[2] / "docs/observability.md"

#: The environment of programs that import this file.
HERE = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}

#: How many holds each of four threads has.
COUNT = 2_500 if os.environ.get("LOCKTENDER_LONG") else 200


class Telemetry:
    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(shutdown_on_exit=False), MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.tracers.get_tracer("test")

    def spans(self, count):
        """The spans of locktender, once there are as many."""

        def made():
            found = [span for span in self.exporter.get_finished_spans() if span.instrumentation_scope.name == "locktender"]
            return found if len(found) >= count else None

        return until(made, PATIENCE)

    def metrics(self):
        read = self.reader.get_metrics_data()
        return {metric.name: metric for scope in read.resource_metrics for each in scope.scope_metrics for metric in each.metrics}


@pytest.fixture
def telemetry():
    telemetry = Telemetry()
    LocktenderInstrumentor().instrument(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters)
    yield telemetry
    LocktenderInstrumentor().uninstrument()


@pytest.fixture
def client():
    with Client(f"memory://{uuid.uuid4().hex}", app="billing") as client:
        yield client


def shown(spans):
    return sorted(
        (span.name, span.attributes["locktender.end"], span.status.status_code is StatusCode.ERROR and span.attributes["error.type"])
        for span in spans
    )


def test_the_totals_of_a_client_that_is_gone_are_exported(telemetry):
    with Client("memory://gone", app="gone before the export") as client, client.lock("orders:1"):
        pass
    del client
    gc.collect()
    points = telemetry.metrics()["locktender.holds"].data.data_points
    mine = [point for point in points if point.attributes["locktender.app"] == "gone before the export"]
    assert [(point.value, point.attributes["locktender.end"]) for point in mine if point.value] == [(1, "released")]


def test_an_acquire_and_its_hold_are_spans_within_that_of_the_caller(telemetry, client):
    name = 'orders:"<4 2>"'
    with telemetry.tracer.start_as_current_span("request") as request, client.lock(name, ttl=60) as held:
        assert client.lock(name).try_acquire() is None
    spans = telemetry.spans(3)
    assert shown(spans) == [("acquire", "acquired", False), ("acquire", "not_acquired", False), ("hold", "released", False)]
    assert {span.parent.span_id for span in spans} == {request.get_span_context().span_id}
    acquire, _, hold = spans
    common = {"locktender.lock_name": name, "locktender.key": name, "locktender.category": "orders", "locktender.kind": "lock"}
    common |= {"locktender.app": "billing", "locktender.owner": held.owner, "locktender.fence": held.fence}
    found = dict(acquire.attributes)
    assert 0 <= found.pop("locktender.wait") < 60
    assert found == {**common, "locktender.end": "acquired", "locktender.rounds": 1}
    assert dict(hold.attributes) == {**common, "locktender.end": "released"}
    assert (acquire.kind, hold.kind, hold.start_time) == (SpanKind.CLIENT, SpanKind.INTERNAL, acquire.end_time)


def test_several_locks_have_one_hold_that_ends_with_the_first_of_them_that_ends(telemetry, client):
    orders = client.multi_lock(["orders:1", "orders:2"])
    with telemetry.tracer.start_as_current_span("request") as request:
        orders.acquire().release()
        held = orders.acquire()
    client.lock("orders:2").force_release()
    with pytest.raises(LockLostError):
        held.extend()
    held.release()
    spans = telemetry.spans(4)
    assert shown(spans) == [*[("acquire", "acquired", False)] * 2, ("hold", "lost", "LOCK_LOST"), ("hold", "released", False)]
    assert {span.parent.span_id for span in spans} == {request.get_span_context().span_id}
    assert {span.attributes["locktender.lock_name"] for span in spans} == {"orders:1, orders:2"}


def test_an_end_is_an_error_where_the_caller_got_one_or_the_hold_was_lost(telemetry, client):
    held = client.lock("orders:1").acquire()
    with pytest.raises(AcquireTimeoutError):
        client.lock("orders:1", wait=0.02).acquire()
    held.release()
    client.lock("orders:2", max_hold=0.02).acquire().wait_lost(PATIENCE)
    client.adopt(client.lock("orders:4").acquire().hand_over()).release()
    with client.job("mail:7").begin():
        pass
    client.election("scheduler").campaign().resign()
    forgotten = client.lock("orders:5").acquire()
    with pytest.warns(ResourceWarning):
        del forgotten
    client.close()
    with pytest.raises(ClosedError):
        client.lock("orders:1").acquire()
    spans = telemetry.spans(16)
    assert shown(spans) == [
        ("acquire", "acquire_failed", "CLOSED"),
        *[("acquire", "acquired", False)] * 7,
        ("acquire", "timed_out", "ACQUIRE_TIMEOUT"),
        ("hold", "dropped", False),
        ("hold", "handed_over", False),
        ("hold", "lost", "LOCK_LOST"),
        *[("hold", "released", False)] * 4,
    ]
    assert {span.attributes.get("locktender.job.attempt") for span in spans if span.attributes.get("locktender.kind") == "job"} == {1}
    [event] = [event for span in spans for event in span.events]
    assert (event.name, event.attributes["locktender.reason"]) == ("lost", "max_hold")


def test_each_task_has_its_own_parent_and_a_cancelled_wait_is_no_error(telemetry, client):
    async def task(name):
        with telemetry.tracer.start_as_current_span(name) as span:
            async with client.lock(name):
                await asyncio.sleep(0)
            return name, span.get_span_context().span_id

    async def work():
        parents = dict(await asyncio.gather(*(task(f"orders:{number}") for number in range(5))))
        held = await client.lock("mail:7").acquire_async()
        waits = asyncio.ensure_future(client.lock("mail:7").acquire_async())
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        await held.release()
        return parents

    parents = asyncio.run(work())
    spans = telemetry.spans(13)
    assert {span.parent.span_id == parents[span.attributes["locktender.lock_name"]] for span in spans if span.parent} == {True}
    assert shown(spans) == [
        *[("acquire", "acquired", False)] * 6,
        ("acquire", "cancelled", False),
        *[("hold", "released", False)] * 6,
    ]


ROWS = re.findall(r"^\| `(locktender\.[\w.]+)` \| `(locktender_\w+)` \| ([\w-]+) \| `(.+?)` \|$", PAGE.read_text(), re.M)


def test_each_metric_has_the_numbers_of_the_client_under_the_name_that_the_page_tells(telemetry):
    client = Client(f"memory://{uuid.uuid4().hex}", app="counted")
    held = client.lock("orders:42").acquire()
    with client.lock("mail:7") as mail:
        mail.extend(60)
    client.lock("orders:42").try_acquire()
    with pytest.raises(AcquireTimeoutError):
        client.lock("orders:42", wait=0.01).acquire()
    telemetry.spans(5)
    found, read = telemetry.metrics(), metrics()
    assert [row[1] for row in ROWS] == [metric.name for metric in read]
    for metric, (name, _, kind, unit) in zip(read, ROWS):
        samples = [sample for sample in metric.samples if sample.labels["app"] == "counted"]
        if not samples:
            continue
        assert found[name].unit == unit
        assert type(found[name].data) is {"gauge": Gauge, "histogram": Histogram}.get(kind, Sum), name
        assert getattr(found[name].data, "is_monotonic", None) is {"counter": True, "up-down": False}.get(kind), name
        for sample in samples:
            wanted = {"server.address" if label == "server" else f"locktender.{label}": text for label, text in sample.labels.items()}
            [point] = [point for point in found[name].data.data_points if wanted.items() <= dict(point.attributes).items()]
            if sample.buckets is not None:
                assert list(point.explicit_bounds) == [bound for bound, _ in sample.buckets[:-1]]
                assert point.count == sample.buckets[-1][1], name
            elif "longest" not in name and "least" not in name:
                assert point.value == sample.value, (name, wanted)
    held.release()
    client.close()


def test_a_server_has_the_attributes_of_a_database_server_without_credentials(telemetry):
    with Client("redis://ann:hunter2@127.0.0.1:1/3", unavailable_after=0.01) as client:
        with pytest.raises(UnavailableError):
            client.lock("orders:42").inspect()
        points = [dict(point.attributes) for point in telemetry.metrics()["locktender.server_up"].data.data_points]
    server = {"server.address": "127.0.0.1", "server.port": 1, "db.system.name": "redis", "db.namespace": "3"}
    assert {**server, "locktender.app": ""} in points
    assert "ann" not in str(points)


def test_nothing_is_left_of_many_holds_in_many_threads(telemetry, client):
    def work(thread):
        for number in range(COUNT):
            with client.lock(f"orders:{thread}:{number}", ttl=3600):
                pass

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(telemetry.spans(8 * COUNT)) == 8 * COUNT
    until(lambda: not [one for one in gc.get_objects() if isinstance(one, Followed)], PATIENCE)


def test_a_listener_that_blocks_lets_nothing_grow_without_a_bound(telemetry):
    blocked, go_on = threading.Event(), threading.Event()

    def listen(event):
        blocked.set()
        go_on.wait(PATIENCE)

    with Client(f"memory://{uuid.uuid4().hex}", on_event=listen) as client:
        client.lock("first").acquire().release()
        assert blocked.wait(PATIENCE)
        for _ in range(3_000):
            client.lock("orders:42").acquire().release()
        gc.collect()
        followed = sum(isinstance(each, Followed) for each in gc.get_objects())
        go_on.set()
    # Each of them has four words at least: two events of the acquire, its answer, and the end of its hold.
    assert 0 < followed <= 4_096 / 3
    telemetry.spans(2 * followed)
    with Client(f"memory://{uuid.uuid4().hex}") as client, client.lock("later"):
        pass
    until(lambda: any(span.attributes["locktender.lock_name"] == "later" for span in telemetry.spans(2 * followed)), PATIENCE)


def test_the_tools_of_opentelemetry_find_it():
    (found,) = entry_points(group="opentelemetry_instrumentor", name="locktender")
    assert found.load() is LocktenderInstrumentor
    assert not LocktenderInstrumentor().is_instrumented_by_opentelemetry


EXIT = """
from locktender import Client
from test_opentelemetry import LocktenderInstrumentor, Telemetry, TracerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

def names(read):
    told = [metric.name for each in read.resource_metrics for scope in each.scope_metrics for metric in scope.metrics]
    return " ".join(name for name in told if name in ("locktender.holds", "locktender.hold.duration"))

meters = MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter(formatter=names))])
tracers, client = TracerProvider(), Client("memory://exit")
tracers.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: span.name + " ")))
LocktenderInstrumentor().instrument(tracer_provider=tracers, meter_provider=meters)
kept = client.lock("mail:7").acquire()
with client.lock("orders:42"):
    pass
"""


def test_what_has_ended_at_the_exit_is_told_and_nothing_to_a_provider_that_has_ended():
    done = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=60, env=HERE)
    told = ["acquire", "acquire", "hold", "locktender.hold.duration", "locktender.holds"]
    assert (sorted(done.stdout.split()), done.stderr) == (told, "")


GREENLETS = """
from gevent import monkey
monkey.patch_all()
import gevent
from locktender import Client
from test_opentelemetry import LocktenderInstrumentor, Telemetry

telemetry, client = Telemetry(), Client("memory://greenlets")
LocktenderInstrumentor().instrument(tracer_provider=telemetry.tracers)

def work(number):
    with telemetry.tracer.start_as_current_span("request") as span, client.lock("orders:42") as held:
        gevent.sleep(0)
        return held.fence, span.get_span_context().span_id

parents = dict(each.value for each in gevent.joinall([gevent.spawn(work, number) for number in range(5)]))
spans = telemetry.spans(10)
assert [parents[span.attributes["locktender.fence"]] for span in spans] == [span.parent.span_id for span in spans]
"""


def test_each_greenlet_has_its_own_parent():
    subprocess.run([sys.executable, "-c", GREENLETS], check=True, timeout=60, env=HERE)


class Thrower:
    def __getattr__(self, name):
        raise RuntimeError("a test")


def test_one_client_alone_and_a_provider_that_raises(client, capfd):
    telemetry = Telemetry()
    with Client(f"memory://{uuid.uuid4().hex}") as other:
        LocktenderInstrumentor().instrument(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters, client=client)
        for each in (other, client):
            with each.lock("orders:42"):
                pass
        assert {span.attributes["locktender.app"] for span in telemetry.spans(2)} == {"billing"}
        assert {point.attributes["locktender.app"] for point in telemetry.metrics()["locktender.holds"].data.data_points} == {"billing"}
        LocktenderInstrumentor().uninstrument()
        LocktenderInstrumentor().instrument(tracer_provider=Thrower(), meter_provider=Thrower())
        with client.lock("orders:42") as held:
            assert held.is_valid()
        LocktenderInstrumentor().uninstrument()
    assert capfd.readouterr() == ("", "")
    assert len(telemetry.spans(2)) == 2


def test_without_the_api_the_error_says_what_to_install():
    program = "import sys; sys.modules['opentelemetry'] = None; import locktender; import locktender.opentelemetry"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ModuleNotFoundError: locktender.opentelemetry needs the package opentelemetry-api: pip install" in ran.stderr
