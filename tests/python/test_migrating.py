"""docs/migrating.md: the code of both sides does the same work."""

from types import SimpleNamespace
from typing import Any

import redis
from locktender import Client
from support.page import Page
from support.server import RealServer

JOB_BY_HAND, JOB, SKIP_BY_HAND, ONCE, SKIP, BEAT = (
    block.text for block in Page("docs/migrating.md").blocks() if block.language == "python"
)


class Scope(dict[str, Any]):
    """What a block finds, and the work that it did."""

    def __init__(self, server: RealServer, client: Client, *works: str) -> None:
        self.done: list[str] = []
        super().__init__({name: lambda name=name: self.done.append(name) for name in works})
        self.update(client=client, r=redis.Redis.from_url(server.url))

    def run(self, block: str) -> None:
        exec(block, self)


def test_a_job_made_by_hand_and_a_job_know_of_each_other_s_runs(servers) -> None:
    server = servers()
    with Client(server.url) as client:
        scope = Scope(server, client, "send")
        for block in (JOB_BY_HAND, JOB_BY_HAND, JOB):
            scope.run(block)
        assert scope.done == ["send"]
        server.command("DEL", "mail:2026-11-21")
        client.job("job:mail:2026-11-21").reset()
        for _ in range(2):
            scope.run(JOB)
        assert scope.done == ["send", "send"]


def test_a_task_that_takes_a_lock_or_goes_away_runs_once_or_skips(servers) -> None:
    server = servers()
    with Client(server.url) as client:
        scope = Scope(server, client, "tidy", "fill")
        for block in (SKIP_BY_HAND, ONCE, SKIP):
            scope.run(block)
        scope["fill"]()
        with client.lock("cache"):
            assert scope["fill"]() is None
        assert scope.done == ["tidy", "tidy", "fill"]


def test_each_beat_sends_through_a_job_of_its_own(servers) -> None:
    server = servers()
    with Client(server.url) as client:
        scope = Scope(server, client)

        class PersistentScheduler:
            def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **_options: Any) -> Any:
                scope.done.append(entry.name)
                return SimpleNamespace(id="a task")

        scope["PersistentScheduler"] = PersistentScheduler
        scope.run(BEAT)
        entry = SimpleNamespace(name="report", schedule=SimpleNamespace(run_every=86_400))
        scope["OnceScheduler"]().apply_async(entry)
        assert scope.done == ["report"]
        assert client.cron_job("beat:report", every=86_400).status().result == "a task"
