"""A service of Sentinel that fails over under clients of three languages."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from peers import Peers
from support.observe import until
from support.sentinel import Watched
from support.server import RealServer

LANGUAGES = ("rust", "python", "node")


@pytest.fixture
def watched() -> Iterator[Watched]:
    with ExitStack() as stack:
        yield Watched(lambda **options: stack.enter_context(RealServer(**options)))


def test_three_languages_follow_a_failover_and_keep_their_holds(watched: Watched, tmp_path: Path):
    file, times = tmp_path / "count", 3
    file.write_text("0")
    with ExitStack() as stack:
        peers = Peers(watched.url, stack)

        def count():
            for language in LANGUAGES:
                peers[language].send("count", name="counted", file=str(file), times=times)
            assert [peers[language].receive() for language in LANGUAGES] == [{}] * 3

        count()
        owners = {language: peers[language].ask("try", name=language, ttl_ms=60_000)["owner"] for language in LANGUAGES}
        until(lambda: watched.replica.command("EXISTS", *LANGUAGES) == 3)
        watched.fail_over()
        for language, owner in owners.items():
            assert watched.replica.holder(language) == owner
            assert peers[language].ask("release") == {"released": True}
        count()
    assert int(file.read_text()) == 6 * times
