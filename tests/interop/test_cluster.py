"""A cluster whose slot moves under clients of three languages."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from peers import Peers
from support.checkout import binaries
from support.cluster import Cluster
from support.observe import PATIENCE, until
from support.server import RealServer

LANGUAGES = ("rust", "python", "node")
OLDEST, *_, NEWEST = sorted(binaries(), key=lambda binary: [int(part) for part in binary.version.split(".")])

# The locks: those of the first part are held all the time, those of the second one change hands all the time.
NAMES = [f"{{orders}}:{number}" for number in range(20)]
KEPT, SHARED = NAMES[:12], NAMES[12:]

# Some renewals of each hold fall into each part of the move.
TTL_MS = 1_500

FILLERS = 10_000


class Turns:
    """The resource that the locks protect: the lines that holders have added, in the order in which they came."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.touch()

    def lines(self) -> list[tuple[str, int, str]]:
        # The last line may not be whole yet.
        parts = (line.split() for line in self.file.read_text().split("\n")[:-1])
        return [(name, int(fence), language) for name, fence, language in parts]

    def fences(self, name: str) -> list[int]:
        return [fence for each, fence, _ in self.lines() if each == name]

    def go_on(self, names: list[str], seconds: float = 0) -> None:
        """Waits until each of these locks has been held twice more, and at least for so long."""
        since = time.monotonic() + seconds
        before = {name: max(self.fences(name), default=0) for name in names}

        def more(name: str) -> bool:
            return len({fence for fence in self.fences(name) if fence > before[name]}) >= 2

        until(lambda: time.monotonic() >= since and all(map(more, names)), seconds + 2 * PATIENCE)


@pytest.fixture
def formed() -> Iterator[Callable[..., Cluster]]:
    with ExitStack() as stack:
        yield lambda **options: Cluster(lambda **node: stack.enter_context(RealServer(**node)), **options)


@pytest.mark.parametrize(
    ("version", "seconds"),
    [(NEWEST.name, 3), *(pytest.param(each.name, 60, marks=pytest.mark.long) for each in (OLDEST, NEWEST))],
)
def test_three_languages_go_on_while_a_slot_moves(formed: Callable[..., Cluster], tmp_path: Path, version: str, seconds: float):
    cluster = formed(version=version)
    slot = cluster.slot(NAMES[0])
    cluster.fill("orders", FILLERS)
    to = next(node for node in cluster.nodes if node is not cluster.primary(slot))
    turns, stop = Turns(tmp_path / "turns"), tmp_path / "stop"
    with ExitStack() as stack:
        # Those that hold, and those that wait for what they hold.
        keepers, workers = Peers(cluster.url, stack), Peers(cluster.url, stack)
        kept: dict[str, int] = {}
        for index, language in enumerate(LANGUAGES):
            names = KEPT[index::3]
            kept |= zip(names, keepers[language].ask("keep", names=names, ttl_ms=TTL_MS)["fences"])
        for language in LANGUAGES:
            workers[language].send("rotate", names=NAMES, file=str(turns.file), stop=str(stop), wait_ms=600_000)
        turns.go_on(SHARED)

        cluster.begin_move(slot, to)
        turns.go_on(SHARED)
        moved = 0
        while moved < FILLERS // 2:
            moved += cluster.move_keys(slot, to, 100)
        # The move stays half done for a while.
        turns.go_on(SHARED, seconds)
        while cluster.move_keys(slot, to, 100):
            pass
        turns.go_on(SHARED)
        cluster.finish_move(slot, to)
        turns.go_on(SHARED)

        assert not any(turns.fences(name) for name in KEPT), "another one got what is held"
        for language in LANGUAGES:
            assert keepers[language].ask("let_go") == {"released": len(KEPT) // 3}, language
        turns.go_on(NAMES)
        stop.touch()
        for language in LANGUAGES:
            answer = workers[language].receive()
            assert min(answer.get("turns", [0])) > 0, (language, answer)

    # A resource that refuses older fences has refused nobody who was valid, and no two holders have had one fence.
    fences, holders = defaultdict(int, kept), dict.fromkeys(kept.items(), "kept")
    for name, fence, language in turns.lines():
        assert fence >= fences[name], (name, fence, language)
        assert holders.setdefault((name, fence), language) == language, (name, fence)
        fences[name] = fence
