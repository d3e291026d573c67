"""Locks: what the contract can't say of acquire and inspect, and the entries of `with lock`."""

import threading
import time

import pytest
from locktender import AcquireTimeoutError, LockLostError, NotHeldError
from support.observe import PATIENCE


def test_a_timeout_tells_the_holder(each_client, name):
    lock = each_client.lock(name, ttl=300, wait=0.1)
    held = lock.acquire()
    began = time.monotonic()
    with pytest.raises(AcquireTimeoutError) as caught:
        lock.acquire()
    assert 0.1 <= time.monotonic() - began < 1
    with held:
        error = caught.value
        assert (error.code, error.lock_name, error.holder) == ("ACQUIRE_TIMEOUT", name, held.owner)
        assert error.remaining is not None and 298 < error.remaining <= 300
        assert isinstance(error, TimeoutError) and held.owner in str(error)


def test_inspect(each_client, name):
    lock = each_client.lock(name, ttl=200)
    assert lock.inspect() is None
    with lock as held:
        first = lock.inspect()
        assert first is not None and first.fence is None
        held.extend()  # from here on its value shows the fence
        info = lock.inspect()
        assert info is not None and info.fields is not None
        assert (info.owner, info.fence, info.waiters) == (held.owner, held.fence, 0)
        assert 198 < info.remaining <= 200
        assert info.fields.pid is not None and info.fields.host and info.fields.id
        assert info.fields.at is not None and f" at={info.fields.at:%Y-%m-%dT%H:%M:%S}." in held.owner
        assert repr(info).startswith("LockInfo(name=")


def test_release_and_extend_of_a_lock_say_where_they_are(client, name):
    lock = client.lock(name)
    for method in (lock.release, lock.extend):
        with pytest.raises(NotHeldError, match=r"what acquire\(\) returned"):
            method()
    with pytest.raises(NotHeldError):
        lock.extend(5, by=2)


def test_with_is_kept_apart_by_thread(client, name):
    """One Lock object of which two threads hold entries at once (here the key is lost in between)."""
    lock = client.lock(name, renew=False, ttl=0.15)
    entered, leave = threading.Event(), threading.Event()
    fences = []

    def other():
        with pytest.raises(LockLostError), lock as held:
            fences.append(held.fence)
            entered.set()
            leave.wait(PATIENCE)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(PATIENCE)
    with client.lock(name) as held:
        pass  # the other's has expired
    with lock as held:
        fences.append(held.fence)
        leave.set()
        thread.join(PATIENCE)
        assert held.is_valid(), "the other thread left its own"
    assert fences[0] < fences[1]


def test_an_exit_in_another_thread_takes_the_only_open_one(client, name):
    lock = client.lock(name)
    lock.__enter__()
    thread = threading.Thread(target=lambda: lock.__exit__(None, None, None))
    thread.start()
    thread.join(PATIENCE)
    assert lock.inspect() is None


def test_an_exit_that_belongs_to_nobody_names_the_way_out(client, name):
    lock = client.lock(name)
    with pytest.raises(NotHeldError, match=r"with lock.acquire\(\) as held"):
        lock.__exit__(None, None, None)


def test_entries_of_one_thread_end_in_reverse_order(server, client, name):
    lock = client.lock(name, ttl=0.3)
    with pytest.raises(LockLostError), lock as first:
        server.command("DEL", name)
        first.wait_lost(PATIENCE)
        with lock as second:
            assert second.fence > first.fence
        assert lock.inspect() is None, "the inner one was released"


def test_locks_are_shared_by_threads(each_client, name):
    lock = each_client.lock(name)
    inside = []

    def work():
        for _ in range(20):
            with lock:
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
