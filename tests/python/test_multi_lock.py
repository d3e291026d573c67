"""Several locks that are acquired together."""

import asyncio
import copy
import pickle
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import locktender
from locktender import (
    AcquireTimeoutError,
    AsyncMultiHold,
    Client,
    DeadlockError,
    InvalidArgumentError,
    LockEvent,
    LockLostError,
    MultiHold,
    MultiLock,
    NotHeldError,
)

NAMES = ("account:1", "account:2")


@pytest.fixture
def server() -> str:
    return f"memory://multi-lock-{uuid.uuid4()}"


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    client = Client(server, wait=5)
    yield client
    client.close()


def test_all_are_held_or_none(client: Client) -> None:
    accounts = client.multi_lock(NAMES)
    assert accounts.names == NAMES
    with accounts as hold:
        assert isinstance(hold, MultiHold) and hold.names == NAMES and hold.is_valid() and hold.remaining() > 9
        assert [client.lock(name).try_acquire() for name in NAMES] == [None, None]
        assert accounts.try_acquire() is None
        assert {info.kind for info in client.holds()} == {"multi_lock"}
        owners = [info.owner for info in client.locks()]
        assert owners == [hold.owner, hold.owner]
    with client.lock("account:2"):
        assert accounts.try_acquire() is None
        assert client.lock("account:1").inspect() is None
    second = accounts.acquire()
    second.check()
    second.extend(60)
    assert second.remaining() > 50 and second.release().outcome == "released" and second.wait_lost(0) is None
    with pytest.raises(NotHeldError):
        second.check()


def test_fences_rise_for_each_name(client: Client) -> None:
    with client.lock("account:2") as one:
        before = one.fence
    with client.multi_lock(NAMES) as hold:
        fences = hold.fences
        assert list(fences) == list(NAMES) and fences["account:2"] > before
        fences.clear()
        assert len(hold.fences) == 2
    with client.multi_lock(reversed(NAMES)) as later:
        assert all(later.fences[name] > fence for name, fence in hold.fences.items())


async def _in_tasks(client: Client) -> None:
    accounts = client.multi_lock(NAMES)
    async with accounts as hold:
        assert isinstance(hold, AsyncMultiHold) and hold.names == NAMES and set(hold.fences) == set(NAMES)
        await hold.extend(60)
        assert await accounts.try_acquire_async() is None
    again = await accounts.acquire_async()
    assert (await again.release()).outcome == "released"

    @accounts
    async def decorated() -> bool:
        return await client.lock("account:2").try_acquire_async() is None

    assert await decorated()
    with pytest.raises(LockLostError) as lost:
        async with accounts:
            client.lock("account:2").force_release()
            await asyncio.sleep(60)
    assert lost.value.lock_name == "account:2"


def test_tasks_hold_them(server: str) -> None:
    with Client(server, wait=5, ttl=0.3) as client:
        asyncio.run(_in_tasks(client))


def test_they_decorate_functions(client: Client) -> None:
    held = lambda: [info.name for info in client.locks()]  # noqa: E731

    @client.multi_lock(["account:{payer}", "account:{payee}", "{{all}}"])
    def pay(payer: int, payee: int) -> list[str]:
        return held()

    assert pay(1, payee=2) == ["account:1", "account:2", "{all}"]
    with pytest.raises(InvalidArgumentError, match="there twice"):
        pay(1, 1)

    @client.multi_lock(lambda names: names)
    def use(names: list[str]) -> list[str]:
        return held()

    assert use(["b", "a"]) == ["a", "b"]

    @client.multi_lock(NAMES).try_run
    def tried() -> int:
        return 5

    assert tried().result == 5
    with client.lock("account:1"):
        assert tried().ran is False
    with pytest.raises(InvalidArgumentError, match="the template 'b:{who}' asks for 'who'"):
        client.multi_lock(["a", "b:{who}"])(lambda: None)


def test_the_busy_name_is_in_the_error(server: str, client: Client) -> None:
    with Client(server) as other, other.lock("account:2"), pytest.raises(AcquireTimeoutError) as timeout:
        client.multi_lock(NAMES, wait=0.01).acquire()
    assert timeout.value.lock_name == "account:2"


def test_who_holds_one_of_them_would_wait_for_itself(client: Client) -> None:
    with client.lock("account:1"), pytest.raises(DeadlockError, match="account:1"):
        client.multi_lock(NAMES).acquire()
    with client.multi_lock(NAMES), pytest.raises(DeadlockError, match="account:2"):
        client.lock("account:2").acquire()


def test_the_loss_of_one_ends_the_hold_and_the_others_stay_taken_until_its_end(client: Client) -> None:
    lost: list[LockLostError] = []
    reported = threading.Event()

    def on_lost(error: LockLostError) -> None:
        lost.append(error)
        reported.set()

    with pytest.raises(LockLostError), client.multi_lock(NAMES, on_lost=on_lost) as hold:
        assert client.lock("account:2").force_release() is not None
        with pytest.raises(LockLostError):
            hold.extend()
        assert reported.wait(5) and not hold.is_valid() and hold.wait_lost() is not None
        assert client.lock("account:1").try_acquire() is None
    with client.lock("account:1"):
        pass
    assert [error.lock_name for error in lost] == ["account:2"]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda client: client.multi_lock("account:1"), "^names: multi_lock.. takes several names"),
        (lambda client: client.multi_lock(5), "^names: multi_lock.. takes several names"),
        (lambda client: client.multi_lock(["a", 5]), "^names: must be a str"),
        (lambda client: client.multi_lock(b"ab"), "^names: must be a str"),
        (lambda client: client.multi_lock([]), "^names: at least one name"),
        (lambda client: client.multi_lock(["a", "a"]), "^names: .*there twice"),
        (lambda client: client.multi_lock(map(str, range(17))), "^names: at most 16"),
        (lambda client: client.multi_lock(["a", ""]), "name"),
        (lambda client: client.multi_lock("a", "b"), "options: are given by their names"),
        (lambda client: client.multi_lock(["a", "b"], fair=True), "fair"),
        (lambda client: client.multi_lock(["a", "b"], min_hold=1), "min_hold"),
        (lambda client: client.multi_lock(lambda: ["a"]).acquire(), "only in a decorator"),
        (lambda client: Client(["memory://multi-1", "memory://multi-2", "memory://multi-3"]).multi_lock(["a", "b"]), "quorum"),
    ],
)
def test_what_they_cannot_be_is_refused(client: Client, make: Callable[[Any], Any], why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=why):
        make(client)


def test_what_only_one_lock_has_is_not_there(client: Client) -> None:
    accounts: Any = client.multi_lock(NAMES)
    for member in ["name", "inspect", "inspect_async", "force_release", "force_release_async"]:
        with pytest.raises(AttributeError, match=f"'MultiLock' object has no attribute '{member}'; .*names"):
            getattr(accounts, member)
    with accounts as hold:
        for member in ["name", "fence", "hand_over", "downgrade"]:
            with pytest.raises(AttributeError, match=f"'MultiHold' object has no attribute '{member}'; "):
                getattr(hold, member)
        with pytest.raises(TypeError, match="can't be pickled"):
            pickle.dumps(hold)
        assert "account:1" in repr(hold) and "account:1, account:2" in repr(accounts)


def test_they_are_pickled_and_copied() -> None:
    accounts = Client("redis://127.0.0.1:1").multi_lock(NAMES, ttl=3)
    assert copy.deepcopy(accounts) is accounts
    moved = pickle.loads(pickle.dumps(accounts))
    assert isinstance(moved, MultiLock) and moved.names == NAMES and moved.__reduce__()[1][1:] == accounts.__reduce__()[1][1:]


def test_events_have_all_names(server: str) -> None:
    events: list[LockEvent] = []
    with Client(server, on_event=events.append) as client, client.multi_lock(NAMES), client.lock("c"):
        pass
    # The delivery has its own thread, which a second client's event follows.
    delivered = threading.Event()
    with Client(server, on_event=lambda event: delivered.set()) as other, other.lock("d"):
        assert delivered.wait(5)
    released = [(event.lock_name, event.names, event.lock_kind) for event in events if event.kind == "released"]
    assert sorted(released) == [
        ("account:1", NAMES, "multi_lock"),
        ("account:2", NAMES, "multi_lock"),
        ("c", None, "lock"),
    ]
    assert {event.names for event in events if event.lock_kind == "multi_lock"} == {NAMES}


def test_the_default_client_has_them() -> None:
    locktender.configure(f"memory://multi-lock-{uuid.uuid4()}")

    @locktender.multi_lock(["order:{id}", "stock:{id}"])
    def pack(id: int) -> bool:
        return locktender.lock(f"stock:{id}").try_acquire() is None

    assert pack(7)
    with pickle.loads(pickle.dumps(locktender.multi_lock(NAMES))) as hold:
        assert hold.names == NAMES
