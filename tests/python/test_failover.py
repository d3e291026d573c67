"""Failovers: a promoted replica is told of, every hold is confirmed, and quarantine keeps what the replica lacks."""

import asyncio
from collections.abc import Callable

import pytest

from locktender import Client, InvalidArgumentError, LockLostError, UnavailableError
from support.observe import PATIENCE, until
from support.proxy import Proxy
from support.server import RealServer

Servers = Callable[..., RealServer]


def era(server: RealServer) -> str:
    fields = dict(line.split(":", 1) for line in server.command("INFO", "replication").splitlines() if ":" in line)
    return fields["master_replid"]


def replica_of(primary: RealServer, servers: Servers) -> RealServer:
    """A replica that has its primary's data, and doesn't hear of what comes later."""
    replica = servers()
    replica.command("REPLICAOF", "127.0.0.1", primary.port)
    until(lambda: "master_link_status:up" in replica.command("INFO", "replication"))
    replica.command("REPLICAOF", "127.0.0.1", 1)
    return replica


def fail_over(proxy: Proxy, replica: RealServer) -> None:
    replica.command("REPLICAOF", "NO", "ONE")
    proxy.redirect(replica.port)


def test_a_promotion_is_told_and_a_hold_that_the_replica_lacks_is_lost_at_once(servers: Servers, proxies) -> None:
    primary = servers(config=["repl-diskless-sync-delay 0"])
    replica = replica_of(primary, servers)
    proxy = proxies(primary)
    seen, old_era = [], era(primary)
    with Client(primary.url_at(proxy.port), on_event=seen.append, response_timeout=PATIENCE) as client:
        held = client.lock("a", ttl=60).acquire()
        fail_over(proxy, replica)
        client.lock("b").acquire().release()
        # Long before the first renewal, which would come after twenty seconds.
        until(lambda: not held.is_valid())
        with pytest.raises(LockLostError) as lost:
            held.check()
        assert lost.value.reason == "missing"
        [told] = [event for event in seen if event.kind == "failed_over"]
        assert (told.old_replication_id, told.new_replication_id, told.server) == (old_era, era(replica), primary.url_at(proxy.port))
        assert told.address == f"127.0.0.1:{proxy.port}"


@pytest.mark.parametrize("renew", [True, False])
@pytest.mark.parametrize("way", ["threads", "asyncio"])
def test_a_failover_is_noticed_without_a_call(way: str, renew: bool, servers: Servers, proxies) -> None:
    primary = servers(config=["repl-diskless-sync-delay 0"])
    replica = replica_of(primary, servers)
    proxy, seen = proxies(primary), []

    async def main() -> None:
        held = await client.lock("a", ttl=600, renew=renew).acquire_async()
        fail_over(proxy, replica)
        await asyncio.to_thread(until, lambda: not held.is_valid())

    # The first renewal would come after 200 s, the first look at where the name leads after 30 s.
    with Client(primary.url_at(proxy.port), on_event=seen.append, response_timeout=PATIENCE) as client:
        if way == "asyncio":
            asyncio.run(main())
        else:
            held = client.lock("a", ttl=600, renew=renew).acquire()
            fail_over(proxy, replica)
            until(lambda: not held.is_valid())
        until(lambda: {"failed_over", "lost"} <= {event.kind for event in seen})


def test_with_quarantine_the_promoted_replica_grants_nothing_and_gets_the_hold_again(servers: Servers, proxies) -> None:
    primary = servers(config=["repl-diskless-sync-delay 0"])
    proxy = proxies(primary)

    async def main() -> None:
        await client.initialize_quorum_async()
        replica = replica_of(primary, servers)
        held = await client.lock("a", fair=True).acquire_async()
        fail_over(proxy, replica)
        with pytest.raises(UnavailableError) as refused:
            await client.lock("b").acquire_async()
        assert refused.value.servers[0].kind == "quarantine"
        await asyncio.to_thread(until, lambda: replica.holder("a") == held.owner)
        assert held.is_valid()

    url = primary.url_at(proxy.port)
    with Client(url, failover="quarantine", unavailable_after=0.2, response_timeout=PATIENCE) as client:
        asyncio.run(main())


def test_quarantine_is_an_option_of_every_client_of_one_server(servers: Servers) -> None:
    server = servers()
    with Client(server.url, failover="quarantine", unavailable_after=0.2) as client:
        client.initialize_quorum()
        client.lock("a").acquire().release()
        with Client(server.url, failover="confirm") as other, pytest.raises(InvalidArgumentError, match="quarantine"):
            other.lock("b").acquire()
    with pytest.raises(InvalidArgumentError, match="failover"):
        Client(server.url, failover="never")  # type: ignore[arg-type]


def test_a_grant_counts_when_replicas_have_confirmed_it(servers: Servers) -> None:
    primary = servers(config=["repl-diskless-sync-delay 0"])
    replica = replica_of(primary, servers)
    with Client(primary.url, min_replicas=1, replicas_timeout=0.05, unavailable_after=0.3) as client:
        with pytest.raises(UnavailableError, match="0 of 1 replicas") as refused:
            client.lock("a").acquire()
        assert [server.kind for server in refused.value.servers] == ["not_replicated"]
        until(lambda: not primary.command("EXISTS", "a"))
        replica.command("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: "master_link_status:up" in replica.command("INFO", "replication"))
        with client.lock("a") as held:
            assert replica.holder("a") == held.owner
            held.extend(20)

        async def main() -> None:
            async with client.lock("b") as held:
                assert replica.holder("b") == held.owner

        asyncio.run(main())


def test_a_server_in_this_process_has_no_replicas() -> None:
    with pytest.raises(InvalidArgumentError, match="replicas: memory://a is a server in this process"):
        Client("memory://a", min_replicas=1)
