"""A quorum: a client of several servers."""

import asyncio
import time

import pytest
from locktender import Client, InvalidArgumentError
from support.observe import PATIENCE


def test_a_quorum_holds_once_its_servers_are_trusted(servers):
    three = [servers() for _ in range(3)]
    client = Client([server.url for server in three], response_timeout=PATIENCE)
    client.initialize_quorum()
    with client.lock("a") as held:
        assert held.is_valid()
        assert sum(server.holder("a") == held.owner for server in three) >= 2
        assert client.lock("a").try_acquire() is None

    async def again():
        await client.initialize_quorum_async()
        async with client.lock("a") as later:
            return later.fence

    assert asyncio.run(again()) > held.fence
    client.close()


def test_a_client_of_another_quorum_is_refused(servers):
    three = [servers() for _ in range(3)]
    with Client([server.url for server in three], response_timeout=PATIENCE) as client:
        client.initialize_quorum()
    with Client(three[0].url) as single, pytest.raises(InvalidArgumentError, match="n=3 max_ttl=60000"):
        single.lock("a").acquire()


def test_a_check_says_what_each_server_guarantees(servers):
    evicting = servers(config=["maxmemory-policy allkeys-lru"])
    with Client([evicting.url, "redis://127.0.0.1:1"], response_timeout=PATIENCE) as client:
        began = time.monotonic()
        report, missing = client.check_servers()
        assert report.role == "master"
        assert any("noeviction" in warning for warning in report.warnings)
        assert abs(report.clock_offset) <= time.monotonic() - began + 0.001  # one clock, read at two moments
        assert missing.failure and missing.version is None
        assert asyncio.run(client.check_servers_async())[0].eviction == "allkeys-lru"
        assert report.denied == [] and missing.denied is None


def test_a_check_says_which_rights_are_missing(servers):
    server = servers(users={"app": ("pw", "~* &* +@all -pttl")})
    with Client(f"redis://app:pw@127.0.0.1:{server.port}") as client:
        (report,) = client.check_servers()
    assert report.denied == ["PTTL of :~lt:probe, to read how long a lock remains"]
    assert any("a right is missing: PTTL" in warning for warning in report.warnings)
