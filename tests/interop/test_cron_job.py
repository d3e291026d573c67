"""Replicas of three languages that run one schedule, by clocks that differ."""

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from peers import Peer, Peers
from support.server import RealServer

# How far behind the others each one's clock is, in seconds.
LAGS = {"rust": 0.3, "python": 40.0, "node": 3600.0}


def scheduled_times(minutes: int) -> list[int]:
    """The last so many minutes, each in milliseconds."""
    now = int(time.time()) // 60
    return [minute * 60_000 for minute in range(now - minutes + 1, now + 1)]


def runs(file: Path) -> list[tuple[int, int]]:
    """The scheduled times that ran, each with its fence, in their order."""
    return [(int(at), int(fence)) for at, fence in (line.split() for line in file.read_text().splitlines())]


def test_each_scheduled_time_runs_once_however_late_a_replica_is(peers: Peers, tmp_path: Path, name: str):
    file = tmp_path / "ran"
    times = scheduled_times(80)
    # As the clocks make them ask: of some scheduled times the one before is still asked for, of others not.
    asks = sorted((at + LAGS[language] * 1e3, at, language) for at in times for language in LAGS)
    why = Counter()
    for _, at, language in asks:
        answer = peers[language].ask("fire", name=name, at_ms=at, file=str(file))
        why[language, answer["reason"]] += 1
    assert [at for at, _ in runs(file)] == times
    assert runs(file) == sorted(runs(file), key=lambda run: run[1]), "fences rise"
    # Nothing is repeated for a replica that is an hour behind, nor for one that is behind by less than a scheduled time.
    assert why == {("rust", None): 80, ("python", "done"): 80, ("node", "missed"): 79, ("node", "done"): 1}


@pytest.mark.parametrize(
    ("each", "times"), [(1, 25), pytest.param(7, 1_000, marks=pytest.mark.long)], ids=["3 replicas", "21 replicas, about two minutes"]
)
def test_replicas_that_ask_at_the_same_moment_run_a_scheduled_time_once(server: RealServer, tmp_path: Path, name: str, each: int, times: int):
    file = tmp_path / "ran"
    fired = scheduled_times(times)
    with ExitStack() as stack:
        replicas = [stack.enter_context(Peer(language, server.url)) for language in LAGS for _ in range(each)]
        for at in fired:
            for replica in replicas:
                replica.send("fire", name=name, at_ms=at, file=str(file))
            answers = [replica.receive()["reason"] for replica in replicas]
            assert answers.count(None) == 1 and set(answers) <= {None, "done", "running"}, answers
    assert [at for at, _ in runs(file)] == fired


def test_a_clock_that_is_an_hour_ahead_stops_nobody_elses_schedule(peers: Peers, tmp_path: Path, name: str):
    file = tmp_path / "ran"
    [now] = scheduled_times(1)
    for language in LAGS:
        assert peers[language].ask("fire", name=name, at_ms=now + 3_600_000, file=str(file))["error"] == "INVALID_ARGUMENT"
    assert peers["node"].ask("fire", name=name, at_ms=now, file=str(file)) == {"reason": None}
    assert [at for at, _ in runs(file)] == [now]
