"""Bodies in generators: entered in one thread, task or greenlet, which then goes on with other work, as in the sync dependencies and the
streaming responses of web frameworks, and in fixtures. Whoever asks for the lock there meanwhile does not wait for itself."""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import greenlet
import pytest
from locktender import Client, DeadlockError
from locktender.testing import Clock
from support.observe import PATIENCE, until


@pytest.fixture
def lock(each_client, name):
    return each_client.lock(name, wait=PATIENCE)


@contextlib.contextmanager
def dependency(lock):
    with lock as held:
        yield held


def waits(lock):
    """Until somebody waits for the lock."""
    until(lambda: (info := lock.inspect()) and info.waiters)


@contextlib.contextmanager
def left_elsewhere(lock, first):
    """Another thread leaves the first body as soon as somebody waits for the lock."""

    def leave():
        waits(lock)
        first.__exit__(None, None, None)

    thread = threading.Thread(target=leave)
    thread.start()
    try:
        yield
    finally:
        thread.join(PATIENCE)


def test_a_thread_of_a_pool_may_wait_for_the_body_that_it_entered_before(lock):
    first, second = dependency(lock), dependency(lock)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(first.__enter__).result(PATIENCE)
        with left_elsewhere(lock, first):
            assert pool.submit(second.__enter__).result(PATIENCE).is_valid()
        second.__exit__(None, None, None)
    assert lock.inspect() is None


@pytest.mark.parametrize("way", ["hold", "decorator", "stack"])
def test_it_may_wait_in_every_way(lock, way):
    first = dependency(lock)
    with ThreadPoolExecutor(1) as pool, left_elsewhere(lock, first):
        pool.submit(first.__enter__).result(PATIENCE)
        if way == "hold":
            pool.submit(lambda: lock.acquire().release()).result(PATIENCE)
        elif way == "decorator":
            pool.submit(lock(lambda: None)).result(PATIENCE)
        else:
            with contextlib.ExitStack() as stack:
                pool.submit(stack.enter_context, lock).result(PATIENCE)
    assert lock.inspect() is None


def test_a_greenlet_may_wait_for_the_body_that_it_entered_before(lock):
    def work():
        first = dependency(lock)
        first.__enter__()
        with left_elsewhere(lock, first), lock as held:
            return held.is_valid()

    assert greenlet.greenlet(work).switch()


def test_a_task_may_wait_for_the_body_that_it_entered_before(lock, on_each_loop):
    async def body():
        async with lock as held:
            yield held

    async def leave(first):
        while not ((info := await lock.inspect_async()) and info.waiters):
            await asyncio.sleep(0)
        await anext(first, None)

    async def main():
        first = body()
        await anext(first)
        leaving = asyncio.create_task(leave(first))
        async with lock as held:
            assert held.is_valid()
        await leaving

    on_each_loop(main)


def test_all_requests_of_a_pool_get_their_lock(lock):
    """A pool's threads enter and leave bodies for the requests, each in whichever thread is free."""
    with ThreadPoolExecutor(8) as requests, ThreadPoolExecutor(9) as pool:

        def request(_):
            body = dependency(lock)
            fence = pool.submit(body.__enter__).result(PATIENCE).fence
            pool.submit(body.__exit__, None, None, None).result(PATIENCE)
            return fence

        assert len(set(requests.map(request, range(60)))) == 60


def test_a_generator_that_runs_is_refused(lock):
    """A streaming response whose own step asks once more: its body is on the stack."""

    def chunks():
        with lock:
            with pytest.raises(DeadlockError, match="re-entrant"):
                lock.acquire()
            yield 1
            with pytest.raises(DeadlockError, match="re-entrant"):
                nested()
            yield 2

    @lock
    def nested():
        raise AssertionError("it doesn't run")

    assert list(chunks()) == [1, 2]
    assert lock.inspect() is None


@pytest.mark.parametrize("way", ["body", "hold"])
@pytest.mark.parametrize("wait", [None, 60])
def test_a_wait_that_may_be_for_itself_is_warned_of_after_five_seconds(name, way, wait):
    warnings = []

    def on_event(event):
        if event.kind == "warning":
            warnings.append(event)

    with Clock() as clock, Client(f"memory://{name}", ttl=600, on_event=on_event) as client, ThreadPoolExecutor(1) as pool:
        lock = client.lock(name, wait=wait)
        first = dependency(lock)
        held = pool.submit(first.__enter__ if way == "body" else lock.acquire).result(PATIENCE)
        second = pool.submit(lock.acquire)
        waits(lock)
        clock.advance(4)
        assert not warnings, "it may be an ordinary wait"
        clock.advance(2)
        [warning] = until(lambda: list(warnings))
        assert warning.lock_name == name and "may" in warning.message and "re-entrant" in warning.message, warning.message
        held.release()
        second.result(PATIENCE).release()
        if way == "body":
            first.__exit__(None, None, None)
