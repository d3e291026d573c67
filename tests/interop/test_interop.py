"""Exclusion between languages and libraries: the holder of a name excludes all others."""

from itertools import permutations
from pathlib import Path

import pytest
from peers import Peers
from support.observe import until
from support.server import RealServer

OURS = ("rust", "python", "node")
PAIRS = list(permutations(OURS, 2))
FOREIGN = [(ours, foreign) for ours in OURS for foreign in ("redis-py", "redlock", "redis-semaphore")]


@pytest.fixture
def name(name: str) -> str:
    """redis-semaphore has all its locks under this prefix."""
    return f"mutex:{name}"


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_languages_exclude_each_other(peers: Peers, name: str, first: str, second: str):
    holder, other = peers[first], peers[second]
    held = holder.ask("try", name=name, ttl_ms=60_000)
    assert other.ask("try", name=name, ttl_ms=60_000) == {"owner": None}
    assert other.ask("acquire", name=name, wait_ms=0) == {"error": "ACQUIRE_TIMEOUT", "holder": held["owner"]}
    assert holder.ask("release") == {"released": True}
    assert other.ask("try", name=name, ttl_ms=60_000)["fence"] > held["fence"]
    assert other.ask("release") == {"released": True}


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_owners_read_alike(peers: Peers, name: str, first: str, second: str):
    holder, other = peers[first], peers[second]
    held = holder.ask("try", name=name, ttl_ms=60_000)
    seen = other.ask("inspect", name=name)
    assert seen == holder.ask("inspect", name=name)
    # The value shows the fence from the first renewal on.
    assert (seen["owner"], seen["fence"]) == (held["owner"], None)
    assert (seen["fields"]["app"], seen["fields"]["pid"]) == (f"peer {first}", holder.pid)
    holder.ask("release")
    assert other.ask("inspect", name=name) == {"owner": None}


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_holds_move_between_languages(peers: Peers, name: str, first: str, second: str):
    giver, taker = peers[first], peers[second]
    given = giver.ask("try", name=name, ttl_ms=60_000)
    ticket = giver.ask("hand_over")["ticket"]
    taken = taker.ask("adopt", ticket=ticket)
    assert taken["fence"] > given["fence"]
    assert giver.ask("inspect", name=name)["owner"] == taken["owner"] != given["owner"]
    assert giver.ask("try", name=name, ttl_ms=60_000) == {"owner": None}
    assert taker.ask("release") == {"released": True}


@pytest.mark.parametrize(("ours", "foreign"), FOREIGN)
def test_our_hold_excludes_another_library(peers: Peers, server: RealServer, name: str, ours: str, foreign: str):
    held = peers[ours].ask("try", name=name, ttl_ms=60_000)
    assert peers[foreign].ask("try", name=name, ttl_ms=60_000) == {"owner": None}
    assert server.holder(name) == held["owner"]
    assert peers[ours].ask("release") == {"released": True}
    assert peers[foreign].ask("try", name=name, ttl_ms=60_000)["owner"]
    assert peers[foreign].ask("release") == {"released": True}


@pytest.mark.parametrize(("ours", "foreign"), FOREIGN)
def test_another_librarys_hold_excludes_ours(peers: Peers, server: RealServer, name: str, ours: str, foreign: str):
    held = peers[foreign].ask("try", name=name, ttl_ms=60_000)
    assert held["owner"] == server.holder(name)
    assert peers[ours].ask("try", name=name, ttl_ms=60_000) == {"owner": None}
    assert peers[ours].ask("acquire", name=name, wait_ms=0) == {"error": "ACQUIRE_TIMEOUT", "holder": held["owner"]}
    assert peers[ours].ask("inspect", name=name) == {"owner": held["owner"], "fence": None, "fields": None}
    assert peers[foreign].ask("release") == {"released": True}
    assert peers[ours].ask("acquire", name=name, wait_ms=0)["owner"] == server.holder(name)
    assert peers[ours].ask("release") == {"released": True}


@pytest.mark.parametrize(("ours", "foreign"), FOREIGN)
def test_nobody_releases_what_another_holds(peers: Peers, server: RealServer, name: str, ours: str, foreign: str):
    peers[foreign].ask("try", name=name, ttl_ms=60_000)
    server.command("DEL", name)
    held = peers[ours].ask("try", name=name, ttl_ms=60_000)
    assert peers[foreign].ask("release") == {"released": False}
    assert server.holder(name) == held["owner"]
    server.command("SET", name, "somebody", "PX", 60_000)
    assert peers[ours].ask("release") == {"released": False}
    assert server.command("GET", name) == "somebody"


@pytest.mark.parametrize(("ours", "foreign"), FOREIGN)
def test_a_waiter_of_ours_writes_nothing_behind_anothers_value(
    peers: Peers, server: RealServer, name: str, ours: str, foreign: str
):
    held = peers[foreign].ask("try", name=name, ttl_ms=60_000)
    peers[ours].send("acquire", name=name, wait_ms=60_000)
    until(lambda: server.line(name))
    assert server.command("GET", name) == held["owner"]
    assert peers[foreign].ask("release") == {"released": True}
    assert peers[ours].receive()["owner"] == server.holder(name)
    assert peers[ours].ask("release") == {"released": True}


def test_three_languages_count_together(peers: Peers, name: str, tmp_path: Path):
    file, times = tmp_path / "count", 30
    file.write_text("0")
    for language in OURS:
        peers[language].send("count", name=name, file=str(file), times=times)
    for language in OURS:
        assert peers[language].receive() == {}
    assert int(file.read_text()) == times * len(OURS)
