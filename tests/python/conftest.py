"""Fixtures: one shared server, servers and proxies of one test, and a lock name that no other test uses."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from locktender import Client
from support.loops import LOOPS, Main
from support.observe import PATIENCE
from support.proxy import Proxy
from support.server import RealServer


@pytest.fixture(scope="session")
def server() -> Iterator[RealServer]:
    """The server that tests share. Use `name` for keys; to break or flush a server take one of `servers`."""
    with RealServer() as shared:
        yield shared


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lock name of this test alone."""
    return f"{request.node.originalname}:{uuid.uuid4().hex[:12]}"


@pytest.fixture
def servers() -> Iterator[Callable[..., RealServer]]:
    """servers(**options of RealServer) starts a server of the test's own, closed with the test."""
    with ExitStack() as stack:

        def start(*arguments: Any, **options: Any) -> RealServer:
            return stack.enter_context(RealServer(*arguments, **options))

        yield start


@pytest.fixture
def proxies() -> Iterator[Callable[[RealServer], Proxy]]:
    """proxies(server) puts a proxy of the test's own before a server."""
    with ExitStack() as stack:
        yield lambda behind: stack.enter_context(Proxy(behind.port))


@pytest.fixture
def proxy(server: RealServer, proxies: Callable[[RealServer], Proxy]) -> Proxy:
    """A proxy before the shared server."""
    return proxies(server)


@pytest.fixture
def client(server: RealServer) -> Iterator[Client]:
    """A client of the shared server, which waits for its answers: an attempt that isn't repeated may meet a stalled machine."""
    with Client(server.url, response_timeout=PATIENCE) as client:
        yield client


@pytest.fixture(params=LOOPS)
def on_each_loop(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    """on_each_loop(main) runs a program of coroutines, on every kind of event loop."""
    return LOOPS[request.param]


@pytest.fixture(params=["memory", "redis"])
def each_client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of the in-memory server, and one of the shared server."""
    if request.param == "memory":
        url = f"memory://{uuid.uuid4()}"
    else:
        url = request.getfixturevalue("server").url
    with Client(url, response_timeout=PATIENCE) as client:
        yield client
