"""Fixtures: the server, the peers, and a lock name that no other test uses."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from commands import PROGRAMS
from peers import Peers
from support.server import RealServer


@pytest.fixture(scope="session")
def server() -> Iterator[RealServer]:
    with RealServer() as shared:
        yield shared


@pytest.fixture(scope="session")
def peers(server: RealServer) -> Iterator[Peers]:
    with ExitStack() as stack:
        yield Peers(server.url, stack)


@pytest.fixture
def name() -> str:
    """A lock name of this test alone."""
    return f"interop:{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> list[str]:
    """The program `locktender` of each package."""
    return PROGRAMS[request.param]
