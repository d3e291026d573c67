"""Readers, writers, holders of permits and of several locks in three languages, which are killed and paused at random."""

import itertools
import os
import random
import signal
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from peers import Peer
from support.observe import PATIENCE, until
from support.server import RealServer

LANGUAGES = ("rust", "python", "node")
TTL_MS = 300


class Span(NamedTuple):
    """A hold was valid from its first line to its last one."""

    begins: int
    ends: int
    role: str
    fence: int


def spans_of(file: Path) -> list[Span]:
    """Two holds of a reader in one period count as one: no writer may come between them."""
    holds = defaultdict(list)
    # The last line may not be whole.
    for line in file.read_text().split("\n")[:-1]:
        pid, role, fence, before, after = line.split()
        holds[pid, role, int(fence)].append((int(before), int(after)))
    spans = (
        Span(min(after for _, after in times), max(before for before, _ in times), role, fence)
        for (_, role, fence), times in holds.items()
    )
    return sorted(span for span in spans if span.begins < span.ends)


@pytest.mark.parametrize(
    ("readers", "writers", "wide", "permits", "seconds"),
    [
        (6, 2, 0, 0, 3),
        (0, 1, 0, 6, 2),
        (0, 2, 4, 0, 2),
        pytest.param(20, 2, 1, 0, 20, marks=pytest.mark.long),
        pytest.param(0, 2, 0, 20, 20, marks=pytest.mark.long),
        pytest.param(2, 4, 12, 2, 20, marks=pytest.mark.long),
    ],
    ids=["readers", "permits", "several locks", "20 readers", "20 for permits", "12 for several locks"],
)
def test_nobody_is_inside_beside_a_writer_and_no_more_than_permitted(
    server: RealServer, tmp_path: Path, name: str, readers: int, writers: int, wide: int, permits: int, seconds: int
):
    file = tmp_path / "inside"
    file.touch()
    chance = random.Random(readers)
    roles: list[str | int] = [*["reader"] * readers, *["writer"] * writers, *["wide"] * wide, *[3] * permits]
    with ExitStack() as stack:
        alive: dict[int, tuple[Peer, str | int]] = {}

        def start(language: str, role: str | int) -> None:
            peer = stack.enter_context(Peer(language, server.url))
            stack.callback(peer.kill_now)
            alive[peer.pid] = peer, role
            peer.send("occupy", name=name, **{"as": role}, ttl_ms=TTL_MS, file=str(file))

        for role, language in zip(roles, itertools.cycle(LANGUAGES)):
            start(language, role)
        until(lambda: len({span.role for span in spans_of(file)}) > 1, PATIENCE)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            pid = chance.choice(list(alive))
            if chance.random() < 0.6:
                peer, role = alive.pop(pid)
                peer.kill_now()
                start(peer.library, role)
            else:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.4 * chance.random())
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.1)
    spans = spans_of(file)
    assert {span.role for span in spans} == {str(role) for role in roles}
    inside: list[Span] = []
    highest = {"writer": 0, "others": 0}
    for span in spans:
        inside = [*(other for other in inside if other.ends >= span.begins), span]
        # Who has several locks is a writer of this one.
        kinds = Counter("writer" if other.role == "wide" else other.role for other in inside)
        assert len(kinds) == 1 and kinds["writer"] <= 1 and kinds["3"] <= 3, inside
        # A writer's fence is above all before, and everybody's is above that of each writer before.
        side = "writer" if span.role in ("writer", "wide") else "others"
        assert span.fence > (max(highest.values()) if side == "writer" else highest["writer"]), spans
        highest[side] = max(highest[side], span.fence)
