"""Fixtures: the commands of two versions, one server and a quorum that both use, and a name that no other test uses."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from clients import Clients
from support.server import RealServer
from versions import Missing, built_before, built_today


BUILT: "dict[str, str] | str" = "nothing was built"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Builds before the first test, which would have no time for it. Where something is missing, that is the reason of a skip."""
    global BUILT
    try:
        BUILT = {"before": str(built_before()), "today": str(built_today())}
    except Missing as missing:
        BUILT = f"nothing is compared with an earlier version: {missing}"


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    """The command of each version."""
    if isinstance(BUILT, str):
        pytest.skip(BUILT)
    return BUILT


@pytest.fixture(scope="session")
def server() -> Iterator[RealServer]:
    with RealServer() as shared:
        yield shared


@pytest.fixture(scope="session")
def quorum(programs: dict[str, str]) -> Iterator[list[RealServer]]:
    """Three servers that vote at once, as the version before has set them up."""
    with ExitStack() as stack:
        servers = [stack.enter_context(RealServer()) for _ in range(3)]
        Clients(programs, servers).ran("before", "quorum", "init")
        yield servers


@pytest.fixture
def one(programs: dict[str, str], server: RealServer) -> Clients:
    """Clients of both versions on one server."""
    return Clients(programs, [server])


@pytest.fixture(params=["one server", "a quorum"])
def clients(request: pytest.FixtureRequest, programs: dict[str, str]) -> Clients:
    """Clients of both versions, on one server and on a quorum."""
    servers = [request.getfixturevalue("server")] if request.param == "one server" else request.getfixturevalue("quorum")
    return Clients(programs, servers)


@pytest.fixture
def name() -> str:
    """A lock name of this test alone."""
    return f"upgrade:{uuid.uuid4().hex[:12]}"
