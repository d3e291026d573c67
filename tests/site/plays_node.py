"""The applications in Node."""

import http.client
import re
import time
import urllib.error
import urllib.request

from place import Place, at_once, free_port, until
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


def x(place):
    raise NotImplementedError


bullmq = fastify = node = x
