"""Candidates of three languages, of which the leader is killed or paused again and again."""

import os
import random
import signal
import threading
from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from locktender import Client, ClosedError
from peers import Peer
from support.observe import PATIENCE, until
from support.server import RealServer

LANGUAGES = ("rust", "python", "node")
TTL_MS = 300


class Line(tuple[int, int, int, int]):
    """A leader's line: its process, its term, and two times between which its term was valid."""

    pid, term, before, after = (property(lambda self, at=at: self[at]) for at in range(4))


@pytest.mark.parametrize(("each", "times"), [(1, 4), pytest.param(2, 60, marks=pytest.mark.long)], ids=["3 candidates", "6 candidates"])
def test_one_leads_at_a_time_however_often_leaders_are_killed_or_paused(
    server: RealServer, tmp_path: Path, name: str, each: int, times: int
):
    file = tmp_path / "led"
    file.touch()
    chance = random.Random(7)

    def lines() -> list[Line]:
        # The last line may not be whole yet.
        return [Line(map(int, line.split())) for line in file.read_text().split("\n")[:-1]]

    def last() -> Line | None:
        return max(lines(), key=lambda line: line.term, default=None)

    observed: list[int] = []

    def observe(client: Client) -> None:
        with suppress(ClosedError):
            observed.extend(seen.leader.term for seen in client.election(name).observe() if seen.leader)

    with ExitStack() as stack:
        client = stack.enter_context(Client(server.url))
        observer = threading.Thread(target=observe, args=(client,))
        observer.start()
        candidates: dict[int, Peer] = {}

        def start(language: str) -> None:
            peer = stack.enter_context(Peer(language, server.url))
            stack.callback(peer.kill_now)
            candidates[peer.pid] = peer
            peer.send("lead", name=name, ttl_ms=TTL_MS, file=str(file))

        for language in LANGUAGES * each:
            start(language)
        for deed in ["kill", "pause"] * times:
            leader = until(last, PATIENCE)
            assert leader
            # Somebody else now and then, who may have become the leader since.
            pid = leader.pid if chance.random() < 0.8 else chance.choice(list(candidates))
            if deed == "kill":
                killed = candidates.pop(pid)
                killed.kill_now()
                start(killed.library)
            else:
                os.kill(pid, signal.SIGSTOP)
            if pid == leader.pid:
                until(lambda before=leader: last().term > before.term, PATIENCE)  # type: ignore[misc, union-attr]
            if deed == "pause":
                # Somebody else may lead now; it goes on in the middle of its work.
                os.kill(pid, signal.SIGCONT)

        client.close()
        observer.join(PATIENCE)
    terms = defaultdict(list)
    for line in lines():
        terms[line.term].append(line)
    assert 4 * len(terms) > 5 * times and {candidate.library for candidate in candidates.values()} == set(LANGUAGES)
    # An observer may miss a leader, but sees no older one again.
    assert observed and observed == sorted(observed)
    # A term is one leader's. It was valid from its first line to its last one, and no other term was valid meanwhile.
    spans = []
    for term, led in sorted(terms.items()):
        assert len({line.pid for line in led}) == 1, led
        spans.append((term, min(line.after for line in led), max(line.before for line in led)))
    for (term, _, ends), (later, begins, _) in zip(spans, spans[1:], strict=False):
        assert ends < begins, f"the terms {term} and {later} were valid at the same time"
