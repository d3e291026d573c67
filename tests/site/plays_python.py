"""The applications in Python."""

import ast
import time

from place import Place, Program, at_once, free_port, until


def statuses(place: Place, port: int, *paths: str) -> list[int]:
    """What requests get that are sent at one time."""
    answers = at_once(*(lambda path=path: place.post(port, path) for path in paths))
    return sorted(answer.status for answer in answers)


def web_service(place: Place, port: int, service: Program) -> None:
    """One request at a time for an order, 503 without a server, and a graceful end."""
    place.listens(port, service)
    assert statuses(place, port, "/orders/42/pay", "/orders/42/pay", "/orders/43/pay") == [200, 200, 409]
    first, second = (place.post(port, "/orders/42/pay").json["fence"] for _ in range(2))
    assert first < second
    until(lambda: place.holder("orders:42") is None, "the order is free")

    # A request that is under way is finished, and its lock is free.
    def ends() -> int:
        until(lambda: place.holder("orders:44"), "the order is held")
        return service.terminate()

    answer, _ = at_once(lambda: place.post(port, "/orders/44/pay"), ends)
    assert (answer.status, place.holder("orders:44")) == (200, None)


def without_redis(place: Place, port: int, service: Program) -> None:
    place.listens(port, service)
    place.server.kill()
    began = time.monotonic()
    answer = place.post(port, "/orders/42/pay")
    assert answer.status == 503 and answer.json == {"code": "UNAVAILABLE"} and answer.headers["retry-after"] == "1", answer
    assert time.monotonic() - began < 3


def fastapi(place: Place) -> None:
    place.write("service", "service.py")
    place.write("dependency", "with_refunds.py")
    place.write("test", "test_service.py")
    assert "2 passed" in place.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_service.py")

    ends_in_time(place)

    port = free_port()
    command = ("uvicorn", "--port", port, "--timeout-graceful-shutdown")
    service = place.start(*command, 20, "--workers", 2, "service:app")
    web_service(place, port, service)

    service = place.start(*command, 1, "with_refunds:app")
    place.listens(port, service)
    refunds = statuses(place, port, "/orders/7/refund", "/orders/8/refund")
    assert refunds == [200, 200] and place.holder("orders:7") is None
    assert place.post(port, "/orders/7/refund").status == 200
    with place.locked("orders:7"):
        assert place.post(port, "/orders/7/refund").status == 409
    without_redis(place, port, service)
    service.terminate()


def ends_in_time(place: Place) -> None:
    """A request that takes longer than uvicorn waits is cancelled, and its lock is free."""
    place.write("service", "slow.py", **{"asyncio.sleep(1)": "asyncio.sleep(60)"})
    port = free_port()
    service = place.start("uvicorn", "--port", port, "--timeout-graceful-shutdown", 1, "slow:app")
    place.listens(port, service)
    began = time.monotonic()

    def ends() -> None:
        until(lambda: place.holder("orders:42"), "the order is held")
        service.terminate()

    at_once(lambda: place.post(port, "/orders/42/pay"), ends)
    assert place.holder("orders:42") is None and time.monotonic() - began < 20


def celery(place: Place) -> None:
    place.write("tasks", "tasks.py")
    place.write("test", "test_tasks.py")
    assert "1 passed" in place.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_tasks.py")

    broker = {"CELERY_BROKER_URL": place.url}
    worker = place.start("celery", "--app", "tasks", "worker", "--concurrency", 4, "--loglevel", "WARNING", **broker)
    asks = "from tasks import {0}; asked = [{0}.delay(x) for x in {1}]; print([each.get(timeout=30) for each in asked])"
    made = place.python("-c", asks.format("report", ["monday", "monday", "tuesday", "monday"]), **broker)
    assert sorted(map(str, ast.literal_eval(made))) == ["None", "None", "the report of monday", "the report of tuesday"]
    fences = ast.literal_eval(place.python("-c", asks.format("load", ["news", "news"]), **broker))
    assert len(set(fences)) == 2, fences

    place.python("-c", "from tasks import load; load.delay('sport')", **broker)
    until(lambda: place.holder("feed:sport"), "the task runs")
    assert (worker.terminate(), place.holder("feed:sport")) == (0, None)


def flask(place: Place) -> None:
    place.write("flask", "service.py")
    place.write("conftest", "conftest.py")
    place.write("test", "test_service.py")
    assert "2 passed" in place.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_service.py")
    gunicorn(place, "service:app")


DJANGO = """
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["locks.LockErrors"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}},
)
application = get_wsgi_application()

import views

urlpatterns = [path("orders/<int:order>/pay", views.pay)]
"""


def django(place: Place) -> None:
    place.write("locks", "locks.py")
    place.write("views", "views.py")
    (place.directory / "project.py").write_text(DJANGO)
    gunicorn(place, "project:application")


def gunicorn(place: Place, application: str) -> None:
    port = free_port()
    # A worker may take all three requests at once.
    command = ("gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", 2, "--threads", 3, "--graceful-timeout", 20, application)
    web_service(place, port, place.start(*command, PYTHONPATH=f"{place.directory}"))
    service = place.start(*command, PYTHONPATH=f"{place.directory}")
    without_redis(place, port, service)
    service.terminate()


def queues(place: Place) -> None:
    place.write("rq", "reports.py")
    here = {"PYTHONPATH": f"{place.directory}"}
    workers = [place.start("rq", "worker", "--with-scheduler", "--url", place.url, **here) for _ in range(2)]
    asks = """
import os, sys, time
from redis import Redis
from rq import Queue
import reports
queue = Queue(connection=Redis.from_url(os.environ["LOCKTENDER_URL"]))
jobs = [queue.enqueue(getattr(reports, sys.argv[1]), sys.argv[2]) for _ in range(2)]
while not all(job.get_status(refresh=True) in ("finished", "failed") for job in jobs):
    time.sleep(0.05)
print([job.return_value() for job in jobs])
"""
    made = ast.literal_eval(place.python("-c", asks, "report", "monday", **here))
    assert sorted(map(str, made)) == ["None", "the report of monday"], made
    fences = ast.literal_eval(place.python("-c", asks, "load", "news", **here))
    assert len(set(fences)) == 2 and None not in fences, fences
    for worker in workers:
        worker.kill()

    place.write("dramatiq", "tasks.py")
    broker = {"BROKER_URL": place.url, **here}
    worker = place.start("dramatiq", "tasks", "--processes", 2, "--threads", 2, **broker)
    written = place.directory / "fences"
    place.python("-c", "import sys, tasks; [tasks.load.send('news', sys.argv[1]) for _ in range(2)]", written, **broker)
    until(lambda: written.exists() and len(set(written.read_text().split())) == 2, "both tasks have run")
    assert worker.terminate() == 0


def idempotency(place: Place) -> None:
    for recipe in ("payments", "clicks"):
        place.python(place.write(recipe, f"{recipe}.py"))


def python(place: Place) -> None:
    """The blocks of the tutorial on a real server. tests/python/test_pages.py compares what they print."""
    for block in place.page.blocks():
        if block.language == "python":
            place.python("-c", block.text.replace("memory://demo", place.url))
