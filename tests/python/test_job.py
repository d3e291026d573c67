"""Jobs in Python: what the contract can't say, because only Python has it."""

import asyncio
import os
import pickle
import re
import sys
import threading
import time
from datetime import datetime, timedelta, timezone, tzinfo

import pytest
from locktender import AsyncAttempt, Attempt, Client, Hold, InvalidArgumentError, JobDeadError, JobOutcome, LockLostError
from locktender._failure import failure
from support.script import run


@pytest.fixture
def client(request: pytest.FixtureRequest):
    with Client(f"memory://{request.node.name}") as client:
        yield client


def test_an_attempt_is_a_hold_and_work_gets_it_before_its_arguments(client: Client):
    seen = []

    def work(attempt, day, *, urgent):
        seen.append((isinstance(attempt, Attempt) and isinstance(attempt, Hold), day, urgent, attempt.is_valid()))
        return [1, {"a": None}]

    outcome = client.job("mail").run(work, "monday", urgent=True)
    assert seen == [(True, "monday", True, True)]
    assert (type(outcome), outcome.ran, outcome.result) == (JobOutcome, True, [1, {"a": None}])


def test_the_decorator_fills_the_name_and_runs_the_job_once_for_each(client: Client):
    days = []

    @client.job("mail:{day}")
    def mail(attempt: Attempt, day: str) -> int:
        days.append(day)
        return attempt.number

    assert [mail("mon").ran, mail("mon").ran, mail(day="tue").ran] == [True, False, True]
    assert days == ["mon", "tue"] and mail.__name__ == "mail"

    @client.job("report:{day}")
    async def report(attempt: AsyncAttempt, day: str) -> str:
        return f"{day} {attempt.number}"

    assert asyncio.run(report("mon")).result == "mon 1"


class Timeout(BaseException):
    """As those of gevent and eventlet."""


class Untellable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


LATIN_1 = os.fsdecode(b"caf\xe9.csv")


@pytest.mark.parametrize(
    ("error", "noted"),
    [
        (KeyboardInterrupt(), None),
        (GeneratorExit(), None),
        (SystemExit(), None),
        (SystemExit(0), None),
        (SystemExit(False), None),
        (SystemExit(3), "SystemExit: 3"),
        (SystemExit("no such file"), "SystemExit: no such file"),
        (Timeout("5 seconds"), "Timeout: 5 seconds"),
        (asyncio.CancelledError(), "CancelledError"),  # of something that this thread waited for: it has no task
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (ValueError(LATIN_1), r"ValueError: caf\udce9.csv"),
        (Untellable(), "Untellable"),
    ],
)
def test_which_errors_are_failures_of_the_work_and_what_is_noted(error: BaseException, noted: "str | None"):
    assert failure(error) == noted


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups of Python 3.11")
def test_a_group_is_no_failure_if_none_of_its_members_is_one():
    assert failure(BaseExceptionGroup("", [KeyboardInterrupt(), SystemExit(0)])) is None
    assert failure(BaseExceptionGroup("both", [KeyboardInterrupt(), ValueError("no")])) is not None
    assert failure(ExceptionGroup("one", [ValueError("no")])) is not None


def test_a_killed_greenlet_is_no_failure_of_its_work():
    greenlet = pytest.importorskip("greenlet")
    assert failure(greenlet.GreenletExit()) is None


@pytest.mark.parametrize(("given", "noted"), [("no", "no"), (LATIN_1, r"caf\udce9.csv"), (Untellable(), "Untellable"), (7, "7")])
def test_a_failure_by_hand_keeps_any_text(client: Client, given: object, noted: str):
    client.job("mail").begin().fail(given)
    assert client.job("mail").status().last_error == noted


@pytest.mark.parametrize("error", [SystemExit(3), Timeout("5 seconds"), ValueError(LATIN_1), Untellable()])
def test_work_that_ends_by_an_odd_error_has_failed_and_raises_it(client: Client, error: BaseException):
    def work(attempt):
        raise error

    async def work_async(attempt):
        work(attempt)

    async def main():
        # A task that ends by a SystemExit ends its loop.
        with pytest.raises(type(error)) as raised:
            await client.job("async", max_attempts=1).run_async(work_async)
        assert raised.value is error

    with pytest.raises(type(error)) as raised:
        client.job("sync", max_attempts=1).run(work)
    assert raised.value is error
    asyncio.run(main())
    with pytest.raises(type(error)), client.job("hand", max_attempts=1).begin():
        raise error
    assert [client.job(name).status().last_error for name in ("sync", "async", "hand")] == [failure(error)] * 3


def test_a_cancelled_task_of_the_work_is_its_failure(client: Client):
    async def work(attempt):
        inner = asyncio.create_task(asyncio.sleep(60))
        inner.cancel()
        await inner

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(client.job("mail", max_attempts=1).run_async(work))
    assert client.job("mail").status().last_error == "CancelledError"


def test_work_of_a_task_that_fails_when_the_loss_cancels_it_has_failed(client: Client):
    async def work(attempt):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("not tidied up") from None

    with pytest.raises(ValueError, match="not tidied up"):
        asyncio.run(client.job("mail", ttl=0.05, renew=False, retry_delay=60).run_async(work))
    status = client.job("mail").status()
    assert status.last_error == "ValueError: not tidied up" and status.retry_in is not None and status.retry_in > 50


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_failure_of_the_work_gives_the_attempt_back(client: Client, error: type[BaseException]):
    def work(attempt):
        raise error

    with pytest.raises(error):
        client.job("mail", max_attempts=1).run(work)
    assert (client.job("mail").status().state, client.job("mail").status().attempts) == ("new", 0)


def test_a_cancelled_task_gives_the_attempt_back(client: Client):
    async def work(attempt):
        begun.set()
        await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(client.job("mail", max_attempts=1).run_async(work))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await client.job("mail").status_async()

    begun = asyncio.Event()
    assert asyncio.run(main()).attempts == 0


def test_a_loss_cancels_the_work_of_a_task_and_the_attempt_counts(client: Client):
    async def work(attempt):
        await asyncio.sleep(60)

    with pytest.raises(LockLostError):
        asyncio.run(client.job("mail", ttl=0.05, renew=False).run_async(work))
    assert client.job("mail").status().attempts == 1


def test_the_end_of_a_body_that_raised_is_a_failure(client: Client):
    with pytest.raises(ZeroDivisionError), client.job("mail", max_attempts=1).begin():
        1 / 0
    with pytest.raises(JobDeadError) as dead:
        client.job("mail").begin()
    assert (dead.value.attempts, dead.value.last_error) == (1, "ZeroDivisionError: division by zero")

    async def main():
        async with await client.job("async").begin_async():
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(main())
    assert client.job("async").status().last_error == "ValueError: no"
    with client.job("quiet").begin():
        pass
    assert client.job("quiet").status().state == "new"


@pytest.mark.parametrize("result", [{1, 2}, float("nan"), object(), {(1, 2): 3}, {1: 2, "1": 3}, [{None: 1, "null": 2}], LATIN_1, {LATIN_1: 1}])
def test_a_result_that_json_cannot_express_fails_the_run_and_by_hand_the_attempt_goes_on(client: Client, result: object):
    with pytest.raises(InvalidArgumentError, match="^result: JSON can't express it"):
        client.job("mail", max_attempts=1).run(lambda attempt: result)
    assert client.job("mail").status().state == "dead"
    attempt = client.job("by hand").begin()
    with pytest.raises(InvalidArgumentError):
        attempt.complete(result)
    attempt.complete("another")
    assert client.job("by hand").status().result == "another"


def test_the_worker_gets_the_result_that_everybody_gets(client: Client):
    def work(attempt):
        return {1: ("a", "b"), None: "c"}

    async def work_async(attempt):
        return work(attempt)

    everybody = {"1": ["a", "b"], "null": "c"}
    assert [client.job("sync").run(work).result for _ in range(2)] == [everybody] * 2
    assert [asyncio.run(client.job("async").run_async(work_async)).result for _ in range(2)] == [everybody] * 2


def test_a_result_that_is_nested_too_deeply_for_python_is_its_text(client: Client):
    with client.job("deep").begin() as attempt:
        attempt._complete("[" * 20_000 + "]" * 20_000)
    assert client.job("deep").status().result == "[" * 20_000 + "]" * 20_000


def test_work_of_the_other_kind_is_refused(client: Client):
    async def work(attempt): ...

    with pytest.raises(InvalidArgumentError, match="use run_async"):
        client.job("mail").run(work)
    assert client.job("mail").status().state == "new"
    with pytest.raises(InvalidArgumentError, match="returns nothing to await: use run"):
        asyncio.run(client.job("mail").run_async(lambda attempt: 1))
    with pytest.raises(InvalidArgumentError, match="returns a generator"):
        client.job("lazy").run(lambda attempt: (n for n in range(3)))
    with pytest.raises(InvalidArgumentError, match="runs functions"):
        client.job("mail").run(None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_attempts": True}, "max_attempts: must be a whole number from 1 to 10000"),
        ({"max_attempts": 2.5}, "max_attempts: must be a whole number"),
        ({"max_attempts": 0}, r"max_attempts: must be from 1 to 10000 \(given: 0\)"),
        ({"retry_delay": 3601}, "retry_delay: must be a number of seconds from 0 s to 3600 s"),
        ({"retention": 0.5}, "retention: must be from 1 s to"),
        ({"retries": 5}, "retries: here it is max_attempts"),
        ({"retry_dealy": 5}, "retry_dealy: .*did you mean retry_delay?"),
        ({"retention": "a day"}, "retention: must be a number of seconds"),
    ],
)
def test_wrong_options_are_refused_at_once(client: Client, options: dict, said: str):
    with pytest.raises(InvalidArgumentError, match=said):
        client.job("mail", **options)


def test_whether_another_attempt_may_begin_is_a_bool(client: Client):
    attempt = client.job("mail").begin()
    with pytest.raises(InvalidArgumentError, match=r"retry: must be True or False \(given: 'no'\)"):
        attempt.fail("no", retry="no")  # type: ignore[arg-type]
    attempt.complete()


def test_a_job_pickles_by_its_name_and_options():
    with Client("memory://pickled", pickle_name="jobs") as client:
        client.job("mail", max_attempts=1).begin().fail("no")
        again = pickle.loads(pickle.dumps(client.job("mail", max_attempts=7)))
        assert again.name == "mail" and again.status().state == "dead"


def test_a_schedules_decorator_runs_once_for_each_scheduled_time(client: Client):
    ran = []

    @client.cron_job("nightly:{shard}", every=366 * 86_400, max_lateness=366 * 86_400)
    def nightly(attempt: Attempt, shard: int) -> int:
        ran.append(shard)
        return shard

    assert [nightly(1).reason, nightly(1).reason, nightly(shard=2).reason] == [None, "done", None]
    assert ran == [1, 2]


def test_a_scheduled_time_is_a_datetime_with_a_zone_or_seconds(client: Client):
    at = datetime.now(timezone(timedelta(hours=5))).replace(microsecond=123_000)
    assert client.cron_job("nightly", at=at).run(lambda attempt: None).ran
    assert client.cron_job("nightly", at=at.timestamp()).run(lambda attempt: None).reason == "done"
    assert client.job("nightly").status().scheduled_time == at


class Nowhere(tzinfo):
    """A time zone that does not say what it is."""

    def utcoffset(self, _at):
        return None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": datetime(2026, 11, 25, 2)}, "at: must be a datetime with a time zone"),
        ({"at": datetime(2026, 11, 25, 2, tzinfo=Nowhere())}, "at: must be a datetime with a time zone"),
        ({"at": "02:00"}, "at: must be a datetime with a time zone"),
        ({"at": float("nan")}, "at: must be a datetime with a time zone"),
        ({"at": True}, "at: must be a datetime with a time zone"),
        ({"at": 12.5}, "at: must be a time from the year 2000 to 9999; as a number it counts the seconds since 1970"),
        ({"every": 0.5}, "every: must be from 1 s"),
        ({"on_overlap": "queue"}, 'on_overlap: must be "skip" or "wait"'),
        ({"on_overlap": 3}, 'on_overlap: must be "skip" or "wait" (given: 3)'),
        ({"retention": 60}, "retention: leave it out"),
        ({"misfire_grace_time": 60}, "misfire_grace_time: here it is max_lateness"),
    ],
)
def test_wrong_options_of_a_schedule_are_refused_at_once(client: Client, options: dict, said: str):
    with pytest.raises(InvalidArgumentError, match=re.escape(said)):
        client.cron_job("nightly", **options)


def test_a_job_of_a_schedule_pickles_as_one():
    with Client("memory://pickled-once", pickle_name="schedules") as client:
        nightly = client.cron_job("nightly", every=366 * 86_400, max_lateness=366 * 86_400)
        assert nightly.run(lambda attempt: 1).ran
        again = pickle.loads(pickle.dumps(nightly)).run(lambda attempt: 2)
        assert (again.reason, again.result) == ("done", 1)


def test_backups_in_threads_wait_and_one_takes_over(client: Client):
    outcomes, begun = [], threading.Event()

    def first(attempt):
        begun.set()
        time.sleep(0.05)
        raise ValueError

    def backup():
        outcomes.append(client.job("mail").run(lambda attempt: attempt.number))

    threads = [threading.Thread(target=backup) for _ in range(3)]
    with pytest.raises(ValueError):
        client.job("mail").run(lambda attempt: [begun.set(), [thread.start() for thread in threads], first(attempt)])
    for thread in threads:
        thread.join()
    assert sorted(outcome.ran for outcome in outcomes) == [False, False, True]
    assert {outcome.result for outcome in outcomes} == {2}


def test_an_interrupt_while_it_waits_leaves_nothing_behind():
    text = run("""
        import _thread, threading
        from locktender import Client
        client = Client("memory://interrupted")
        attempt = client.job("mail").begin()
        threading.Timer(0.1, _thread.interrupt_main).start()
        try:
            client.job("mail").run(lambda attempt: 1)
        except KeyboardInterrupt:
            pass
        attempt.complete(2)
        print(client.job("mail").status().attempts, client.job("mail").status().result)
    """)
    assert text == "1 2\n"
