"""Locks that several hold at once: readers, and semaphores."""

import asyncio
import copy
import pickle
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import locktender
from locktender import Client, DeadlockError, Hold, InvalidArgumentError, Lock, LockLostError, NotHeldError


@pytest.fixture
def server() -> str:
    return f"memory://several-{uuid.uuid4()}"


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    client = Client(server, wait=5)
    yield client
    client.close()


def test_as_many_hold_a_semaphore_as_it_has_permits(client: Client) -> None:
    renders = client.semaphore("renders", permits=2)
    with renders as one, renders as two:
        assert one.fence < two.fence
        assert renders.try_acquire() is None and client.lock("renders").try_acquire() is None
        info = renders.inspect()
        assert info is not None and (info.holder_count, info.available) == (2, 0)
        assert {one.owner, two.owner} == set(info.holders)
        assert [hold.kind for hold in client.holds()] == ["semaphore", "semaphore"]
    assert renders.inspect() is None


def test_a_thread_that_has_every_permit_would_wait_for_itself(client: Client) -> None:
    renders = client.semaphore("renders", permits=2)
    with renders, renders:
        with pytest.raises(DeadlockError, match="renders"):
            renders.acquire()
        with pytest.raises(DeadlockError):
            client.lock("renders").acquire()


async def _three(client: Client) -> int:
    most, inside = 0, 0

    async def work() -> None:
        nonlocal most, inside
        async with client.semaphore("renders", permits=3):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    await asyncio.gather(*[work() for _ in range(20)])
    return most


def test_tasks_share_the_permits(client: Client) -> None:
    assert asyncio.run(_three(client)) == 3


@pytest.mark.parametrize("permits", [0, 10_001, -1, True, "5", 2.0, None])
def test_permits_are_a_whole_number_from_1_to_10000(client: Client, permits: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="^permits: must be a whole number from 1 to 10000"):
        client.semaphore("renders", permits=permits)


def test_a_semaphore_without_permits_is_no_call(client: Client) -> None:
    with pytest.raises(TypeError, match="permits"):
        client.semaphore("renders")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="permits"):
        client.semaphore("renders", 5)  # type: ignore[call-arg, misc]


@pytest.mark.parametrize("make", [lambda client: client.read_lock("a", min_hold=1), lambda client: client.semaphore("a", permits=2, min_hold=1)])
def test_what_they_lack_is_refused_at_once(client: Client, make: Callable[[Client], Lock]) -> None:
    with pytest.raises(InvalidArgumentError, match="min_hold"):
        make(client)


def test_readers_share_a_lock_and_a_writer_does_not(client: Client) -> None:
    prices = client.read_lock("prices")
    with prices as one, prices as two:
        assert one.fence == two.fence
        assert client.lock("prices").try_acquire() is None
        with pytest.raises(DeadlockError):
            client.lock("prices").acquire()
    with client.lock("prices"), pytest.raises(DeadlockError):
        prices.acquire()


def test_who_reads_may_read_once_more_past_a_writer_that_waits(server: str, client: Client) -> None:
    queued = threading.Event()
    other = Client(server, wait=5, on_event=lambda event: queued.set() if event.kind == "queued" else None)
    prices, written = client.read_lock("prices"), list[Hold]()
    with prices as outer:
        writer = threading.Thread(target=lambda: written.append(other.lock("prices").acquire()))
        writer.start()
        assert queued.wait(5)
        with prices as inner:
            assert inner.fence == outer.fence
    writer.join(5)
    assert written[0].fence > outer.fence
    written[0].release()
    other.close()


def test_a_writer_becomes_a_reader_whose_loss_is_reported(client: Client) -> None:
    lost: list[LockLostError] = []
    reported = threading.Event()

    def on_lost(error: LockLostError) -> None:
        lost.append(error)
        reported.set()

    writer = client.lock("prices", on_lost=on_lost).acquire()
    reader = writer.downgrade()
    assert reader.fence > writer.fence and reader.name == "prices"
    with client.read_lock("prices"), pytest.raises(NotHeldError):
        writer.downgrade()
    with pytest.raises(InvalidArgumentError):
        reader.downgrade()
    assert client.lock("prices").force_release() is not None
    with pytest.raises(LockLostError):
        reader.extend()
    assert reported.wait(5) and [error.lock_name for error in lost] == ["prices"]


async def _downgraded(client: Client) -> None:
    async with client.lock("prices", on_lost="continue") as writer:
        reader = await writer.downgrade()
    async with reader:
        assert reader.is_valid() and reader.fence > writer.fence
    assert await client.lock("prices").inspect_async() is None


def test_a_writer_becomes_a_reader_under_asyncio(client: Client) -> None:
    asyncio.run(_downgraded(client))


def test_a_reader_is_handed_over_and_a_permit_is_not(client: Client) -> None:
    ticket = client.read_lock("prices").acquire().hand_over()
    with client.adopt(ticket), client.read_lock("prices"):
        pass
    with client.semaphore("renders", permits=2) as permit, pytest.raises(InvalidArgumentError, match="permit"):
        permit.hand_over()


def test_they_decorate_functions(client: Client) -> None:
    @client.semaphore("renders:{page}", permits=2, category="renders")
    def render(page: int) -> list[str]:
        info = client.lock(f"renders:{page}").inspect()
        assert info is not None
        return info.holders

    assert len(render(7)) == 1

    @client.read_lock("prices").try_run
    def prices() -> int:
        return 5

    assert prices().result == 5
    with client.lock("prices"):
        assert prices().ran is False


def test_they_are_pickled_and_copied() -> None:
    client = Client("redis://127.0.0.1:1")
    for lock, expected in [(client.read_lock("a", ttl=3), "read_lock"), (client.semaphore("a", permits=4, wait=1), "semaphore")]:
        assert copy.deepcopy(lock) is lock
        function, arguments = lock.__reduce__()
        assert expected in arguments
        moved = pickle.loads(pickle.dumps(lock))
        assert isinstance(moved, Lock) and moved.name == "a" and moved.__reduce__()[1][1:] == arguments[1:]
        assert function.__name__ == "made_of"


def test_the_default_client_has_them() -> None:
    locktender.configure(f"memory://several-{uuid.uuid4()}")
    with locktender.semaphore("renders", permits=1) as hold, locktender.read_lock("prices"):
        assert hold.is_valid() and locktender.lock("renders").try_acquire() is None
    moved = pickle.loads(pickle.dumps(locktender.semaphore("renders", permits=1)))
    with moved as hold:
        assert hold.is_valid()


def test_several_servers_have_none() -> None:
    client = Client(["memory://several-1", "memory://several-2", "memory://several-3"])
    for make in (client.read_lock, lambda name: client.semaphore(name, permits=2)):
        with pytest.raises(InvalidArgumentError, match="quorum"):
            make("a")
    client.close()
