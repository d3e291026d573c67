"""The upgrade drill: clients of the version before and of this one use the same locks on the same servers, as during an update."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients import TTL, Clients, line
from support.observe import PATIENCE, PROMPTLY, until

ORDERS = [("before", "today"), ("today", "before")]
each_order = pytest.mark.parametrize(("first", "second"), ORDERS, ids=[" and then ".join(order) for order in ORDERS])

BUSY, DEAD = 75, 80


@each_order
def test_neither_gets_a_lock_that_the_other_holds(clients: Clients, name: str, first: str, second: str) -> None:
    with clients.hold(first, name) as holder:
        fence = holder.fence()
        assert clients.ran(second, "run", "-n", name, "--", "echo", "inside", code=BUSY) == ""
        assert clients.ran(second, "hold", "-n", name, code=BUSY) == ""
        # Both read the same of the holder.
        shown = [clients.asked(version, "show", name) for version in (first, second)]
        assert [each["pid"] for each in shown] == [holder.process.pid] * 2
        holder.release()
    assert int(clients.ran(second, "run", "-n", name, "--", "sh", "-c", "echo $LOCKTENDER_FENCE")) > fence


@each_order
def test_a_hold_that_is_renewed_stays_a_hold_for_the_other(clients: Clients, name: str, first: str, second: str) -> None:
    with clients.hold(first, name, ttl="1s") as holder:
        holder.fence()
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            clients.ran(second, "run", "-n", name, "--", "true", code=BUSY)
        holder.release()
    clients.ran(second, "run", "-n", name, "--", "true")


@each_order
def test_the_lock_of_a_dead_holder_is_free_for_the_other_after_its_ttl(clients: Clients, name: str, first: str, second: str) -> None:
    with clients.hold(first, name, ttl="1s") as holder:
        fence = holder.fence()
        with clients.hold(second, name) as waiter:
            clients.until_waiting(name)
            holder.kill()
            assert waiter.fence() > fence


def test_fences_rise_across_both(clients: Clients, name: str) -> None:
    fences = []
    for number in range(20):
        version = ORDERS[0][number % 2]
        # Each of a process of its own, which knows no earlier fence.
        fences.append(int(clients.ran(version, "run", "-n", name, "--", "sh", "-c", "echo $LOCKTENDER_FENCE")))
    assert fences == sorted(set(fences)), fences


def test_a_released_lock_is_handed_from_each_to_the_other(clients: Clients, name: str) -> None:
    """A waiter that isn't notified looks a second later: ten of these would take longer than is asked here."""
    fences = []
    with ExitStack() as stack:
        holder = stack.enter_context(clients.hold("before", name))
        fences.append(holder.fence())
        took = 0.0
        for number in range(10):
            waiter = stack.enter_context(clients.hold(ORDERS[1][number % 2], name))
            clients.until_waiting(name)
            began = time.monotonic()
            holder.release()
            fences.append(waiter.fence())
            took += time.monotonic() - began
            holder = waiter
        holder.release()
    assert fences == sorted(set(fences)), fences
    assert took < 3 * PROMPTLY, f"ten hand-overs took {took:.1f} s"


def test_fair_waiters_of_both_get_the_lock_in_the_order_of_their_arrival(one: Clients, name: str) -> None:
    with ExitStack() as stack:
        holder = stack.enter_context(one.hold("before", "--fair", name))
        fences = [holder.fence()]
        waiters = []
        for number in range(6):
            waiters.append(stack.enter_context(one.hold(ORDERS[1][number % 2], "--fair", name)))
            one.until_waiting(name, number + 1)
        for waiter in waiters:
            holder.release()
            fences.append(waiter.fence())
            holder = waiter
        holder.release()
    assert fences == sorted(set(fences)), fences


def test_both_crowd_around_one_lock_and_are_never_inside_together(clients: Clients, name: str, tmp_path: Path) -> None:
    """mkdir fails if another one is inside, and each writes its fence."""
    inside, written = tmp_path / "inside", tmp_path / "fences"
    script = f"mkdir {inside} && echo $LOCKTENDER_FENCE >>{written} && rmdir {inside}"
    end = time.monotonic() + 5

    def work(version: str) -> int:
        done = 0
        while time.monotonic() < end:
            clients.ran(version, "run", "-w", str(PATIENCE), name, "--", "sh", "-c", script)
            done += 1
        return done

    with ThreadPoolExecutor() as pool:
        workers = [pool.submit(work, version) for version in ("before", "today") * 3]
        rounds = [worker.result() for worker in workers]
    fences = [int(each) for each in written.read_text().split()]
    assert len(fences) == sum(rounds) and all(rounds)
    assert fences == sorted(set(fences)), fences


@each_order
def test_readers_of_both_are_inside_together_and_no_writer_is(one: Clients, name: str, first: str, second: str) -> None:
    with one.hold(first, "--read", name) as reader, one.hold(second, "--read", "-n", name) as other:
        reader.fence()
        other.fence()
        for version in (first, second):
            one.ran(version, "run", "-n", name, "--", "true", code=BUSY)
        with one.hold(second, name) as writer:
            one.until_waiting(name)
            reader.release()
            other.release()
            writer.fence()
            one.ran(first, "run", "--read", "-n", name, "--", "true", code=BUSY)


@each_order
def test_both_take_from_the_same_permits(one: Clients, name: str, first: str, second: str) -> None:
    words = ("--permits", "2", name)
    with one.hold(first, *words) as holder, one.hold(second, "-n", *words) as other:
        holder.fence()
        other.fence()
        for version in (first, second):
            one.ran(version, "run", "-n", *words, "--", "true", code=BUSY)
        with one.hold(second, *words) as waiter:
            one.until_waiting(name)
            holder.release()
            waiter.fence()


@each_order
def test_several_locks_are_busy_if_the_other_holds_one_of_them(one: Clients, name: str, first: str, second: str) -> None:
    names = [f"{name}:{number}" for number in range(3)]
    with one.hold(first, names[1]) as holder:
        holder.fence()
        one.ran(second, "run", "-n", *names, "--", "true", code=BUSY)
        # It holds none of the others, either.
        one.ran(first, "run", "-n", names[0], names[2], "--", "true")
        with one.hold(second, *names) as waiter:
            one.until_waiting(names[1])
            holder.release()
            assert line(waiter.process)
            for each in names:
                one.ran(first, "run", "-n", each, "--", "true", code=BUSY)


@each_order
def test_the_attempts_of_a_job_are_counted_across_both(one: Clients, name: str, first: str, second: str) -> None:
    options = ("--max-attempts", "3", "--retry-delay", "1ms")
    fails = ("sh", "-c", "echo $LOCKTENDER_ATTEMPT; exit 3")
    attempts = [one.ran(version, "job", *options, name, "--", *fails, code=3).strip() for version in (first, second, first)]
    assert attempts == ["1", "2", "3"]
    for version in (second, first):
        assert one.ran(version, "job", *options, name, "--", "echo", "again", code=DEAD) == ""
    one.ran(second, "reset", name)
    assert one.ran(first, "job", *options, name, "--", "sh", "-c", "echo $LOCKTENDER_ATTEMPT") == "1\n"


@each_order
def test_the_result_of_a_job_is_the_others_result(one: Clients, name: str, first: str, second: str) -> None:
    with one.started(first, "job", name, "--", "sh", "-c", "read -r line; echo made: $line") as worker, ThreadPoolExecutor() as pool:
        assert worker.stdin is not None
        until(lambda: one.shows(second, name), PATIENCE)
        waiter = pool.submit(one.ran, second, "job", "-w", str(PATIENCE), name, "--", "echo", "made again")
        one.until_waiting(name)
        worker.stdin.write("apples\n")
        worker.stdin.close()
        assert worker.wait(PATIENCE) == 0
        assert waiter.result() == "made: apples\n"
    assert one.ran(second, "job", name, "--", "echo", "made again") == "made: apples\n"


@each_order
def test_a_scheduled_time_is_run_by_one_of_both(one: Clients, name: str, first: str, second: str) -> None:
    at = f"@{int(time.time())}"
    words = ("cron-job", "--at", at, name, "--", "echo", "ran")
    assert [one.ran(version, *words) for version in (first, second, first)] == ["ran\n", "", ""]


@each_order
def test_the_other_leads_when_a_leader_ends(one: Clients, name: str, first: str, second: str) -> None:
    lead = ("lead", "--ttl", TTL, name, "--", "sh", "-c", "echo $LOCKTENDER_TERM; read -r line")
    with one.started(first, *lead) as leader, one.started(second, *lead) as other:
        # One of them leads; `show` says which.
        one_of = {leader.pid: (leader, other), other.pid: (other, leader)}
        until(lambda: one.shows(second, name), PATIENCE)
        one.until_waiting(name)
        ahead, behind = one_of[one.asked(first, "show", name)["pid"]]
        assert ahead.stdin is not None
        term = int(line(ahead))
        ahead.stdin.close()
        assert int(line(behind)) > term


@each_order
def test_operators_of_one_see_and_end_the_holds_of_the_other(one: Clients, name: str, first: str, second: str) -> None:
    with one.hold(first, name, ttl="1s") as holder:
        fence = holder.fence()
        assert json.loads(one.ran(second, "ls", "--json", name))["pid"] == holder.process.pid
        time.sleep(1)
        listed = [json.loads(each) for each in one.ran(second, "history", "--json", name).splitlines()]
        assert [(each["fence"], each["state"]) for each in listed] == [(fence, "holds")]
        one.ran(second, "break", "--yes", name)
        assert holder.process.wait(PATIENCE) == 79
