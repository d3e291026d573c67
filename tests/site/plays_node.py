"""The applications in Node."""

import http.client
import time

from place import Place, free_port, until
from plays_python import web_service, without_redis


def express(place: Place) -> None:
    place.write("service", "service.mjs")
    place.write("server", "server.mjs")
    place.write("test", "service.test.mjs")
    place.run("node", "--test")

    port = free_port()
    web_service(place, port, place.start("node", "server.mjs", PORT=f"{port}"))
    hangs_up(place)
    service = place.start("node", "server.mjs", PORT=f"{port}")
    without_redis(place, port, service)
    assert service.terminate() == 0


def hangs_up(place: Place) -> None:
    """A customer who hangs up frees the lock, and a connection that is kept alive keeps no process."""
    place.write("service", "service.mjs", **{"sleep(1_000": "sleep(60_000"})
    port = free_port()
    service = place.start("node", "server.mjs", PORT=f"{port}")
    place.listens(port, service)
    customer = http.client.HTTPConnection("127.0.0.1", port)
    customer.request("POST", "/orders/45/pay")
    until(lambda: place.holder("orders:45"), "the order is held")
    customer.close()
    until(lambda: place.holder("orders:45") is None, "the order is free")

    place.write("service", "service.mjs")
    service.terminate()
    service = place.start("node", "server.mjs", PORT=f"{port}")
    place.listens(port, service)
    customer.request("POST", "/orders/46/pay")
    until(lambda: place.holder("orders:46"), "the order is held")
    began = time.monotonic()
    service.process.terminate()
    assert customer.getresponse().status == 200
    assert service.process.wait(30) == 0 and time.monotonic() - began < 4
    customer.close()


def fastify(place: Place) -> None:
    place.write("service", "service.mjs")
    port = free_port()
    web_service(place, port, place.start("node", "service.mjs", PORT=f"{port}"))
    service = place.start("node", "service.mjs", PORT=f"{port}")
    without_redis(place, port, service)
    assert service.terminate() == 0


def bullmq(place: Place) -> None:
    place.write("worker", "worker.mjs")
    place.write("add", "add.mjs")
    workers = [place.start("node", "worker.mjs") for _ in range(2)]
    assert place.run("node", "add.mjs") == "4 jobs are done\n"
    # Both workers write into files of their own, so the order of a customer's jobs is seen in each of them alone.
    lines = [line for worker in workers for line in worker.output.splitlines()]
    assert len(lines) == 8 and sorted(lines) == sorted(
        f"customer {customer}: {month} {what}" for customer in (7, 8) for month in ("May", "June") for what in ("begins", "ends")
    )
    for worker in workers:
        for customer in (7, 8):
            own = [line.split()[-1] for line in worker.output.splitlines() if line.startswith(f"customer {customer}")]
            assert own == ["begins", "ends"] * (len(own) // 2), own
    assert [worker.terminate() for worker in workers] == [0, 0]
    assert place.holder("customer:7") is None


def node(place: Place) -> None:
    """The blocks of the tutorial, each with the output that the page shows after it."""
    blocks = place.page.blocks()
    for block, after in zip(blocks, blocks[1:]):
        if block.language == "js":
            (place.directory / "step.mjs").write_text(block.text)
            assert place.run("node", "step.mjs") == after.text
