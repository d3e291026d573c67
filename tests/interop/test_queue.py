"""Waiters of three languages in one queue, and holders of other libraries, which announce no release."""

import random
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from peers import Peer, Peers
from support.observe import LOAD, until
from support.server import RealServer

OURS = ("rust", "python", "node")
FOREIGN = [(ours, foreign) for ours in OURS for foreign in ("redis-py", "redlock", "redis-semaphore")]


@pytest.fixture
def name(name: str) -> str:
    """redis-semaphore has all its locks under this prefix."""
    return f"mutex:{name}"

@pytest.fixture
def order(tmp_path: Path) -> Path:
    """Where whoever has its turn writes its name."""
    file = tmp_path / "order"
    file.touch()
    return file


@pytest.mark.parametrize("seed", range(3))
def test_fair_waiters_are_served_in_one_order_across_languages(server: RealServer, peers: Peers, name: str, order: Path, seed: int):
    with ExitStack() as stack:
        crowd = {f"{language} {n}": stack.enter_context(Peer(language, server.url)) for language in OURS for n in range(2)}
        came = random.Random(seed).sample(sorted(crowd), len(crowd))
        holder = peers[OURS[seed]]
        holder.ask("try", name=name, ttl_ms=600_000)
        for place, who in enumerate(came, 1):
            crowd[who].send("turn", name=name, file=str(order), fair=True, who=who)
            until(lambda place=place: len(server.line(name)) == place)
        assert holder.ask("release") == {"released": True}
        fences = [crowd[who].receive()["fence"] for who in came]
        assert order.read_text().splitlines() == came
        assert fences == sorted(fences)


@pytest.mark.parametrize("language", OURS)
def test_waiters_of_every_language_count_together_while_fair_ones_are_among_them(
    server: RealServer, peers: Peers, name: str, order: Path, language: str
):
    others = [other for other in OURS if other != language]
    for _ in range(10):
        peers[language].send("turn", name=name, file=str(order), fair=True, who=language)
        for other in others:
            peers[other].send("turn", name=name, file=str(order), fair=False, who=other)
        fences = [peers[other].receive()["fence"] for other in (language, *others)]
        assert len(set(fences)) == 3
    assert sorted(order.read_text().splitlines()) == sorted(OURS * 10)


@pytest.mark.parametrize(("ours", "foreign"), FOREIGN)
def test_a_release_that_nobody_tells_is_noticed_as_soon_as_a_peer_would(
    server: RealServer, peers: Peers, name: str, order: Path, ours: str, foreign: str
):
    peers[foreign].ask("try", name=name, ttl_ms=600_000)
    peers[ours].send("turn", name=name, file=str(order), fair=True, who=ours)
    until(lambda: server.line(name))
    began = time.monotonic()
    assert peers[foreign].ask("release") == {"released": True}
    assert peers[ours].receive()["fence"]
    assert time.monotonic() - began < 0.125 + LOAD


@pytest.mark.parametrize(("ours", "foreign"), FOREIGN)
def test_an_expiry_is_noticed_at_once(server: RealServer, peers: Peers, name: str, order: Path, ours: str, foreign: str):
    late = []
    for _ in range(3):
        peers[foreign].ask("try", name=name, ttl_ms=1_300)
        peers[ours].send("turn", name=name, file=str(order), fair=False, who=ours)
        until(lambda: server.line(name))
        expires = time.monotonic() + server.command("PTTL", name) / 1e3
        assert peers[ours].receive()["fence"]
        late.append(time.monotonic() - expires)
    assert max(late) < 0.15, late


@pytest.mark.parametrize("killed", OURS)
def test_f20_a_killed_waiter_costs_those_behind_it_a_claim(server: RealServer, peers: Peers, name: str, order: Path, killed: str):
    holder, *behind = [language for language in OURS if language != killed] + [killed]
    peers[holder].ask("try", name=name, ttl_ms=600_000)
    victim = Peer(killed, server.url)
    victim.send("turn", name=name, file=str(order), fair=True, who="victim")
    until(lambda: server.line(name))
    for place, who in enumerate(behind, 2):
        peers[who].send("turn", name=name, file=str(order), fair=True, who=who)
        until(lambda place=place: len(server.line(name)) == place)
    victim.kill()
    began = time.monotonic()
    assert peers[holder].ask("release") == {"released": True}
    for who in behind:
        assert peers[who].receive()["fence"]
    assert time.monotonic() - began < 0.2 + LOAD
    assert order.read_text().splitlines() == behind
    until(lambda: not server.command("EXISTS", name, f"{{{name}}}:~lt:queue"))
