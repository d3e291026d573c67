"""Bodies of locks: which exit ends which hold, a hold that is entered twice, a task that would wait for itself."""

import asyncio
import contextlib
import functools
import inspect
import threading

import greenlet
import pytest
from locktender import AcquireTimeoutError, Client, DeadlockError, InvalidArgumentError, LockLostError, NotHeldError
from support.observe import PATIENCE, until
from support.server import RealServer


def lose(server: RealServer, held):
    """Has the hold lost, and waits until its holder knows."""
    server.command("DEL", held.name)
    loss = held.wait_lost(PATIENCE)
    assert loss is not None


def short(client, name):
    return client.lock(name, ttl=0.3)


def line():
    """The place of the caller's next line, as errors name it."""
    frame = inspect.currentframe().f_back
    return f"{__file__}:{frame.f_lineno + 1}"


# Whose exit it is.


def generators(lock):
    def body():
        with lock as held:
            yield held

    return body


def test_the_exit_of_a_generator_ends_its_own_hold(client, server: RealServer, name):
    """Two interleaved bodies of one thread: the first lost its hold, the second has a valid one."""
    body = generators(short(client, name))
    first, second = body(), body()
    lose(server, next(first))
    held = next(second)
    with pytest.raises(LockLostError):
        next(first, None)
    assert held.is_valid() and client.lock(name).try_acquire() is None, "the second's was left alone"
    assert next(second, None) is None
    assert client.lock(name).inspect() is None


def test_the_exit_of_a_generator_that_another_thread_ends(client, server: RealServer, name):
    body = generators(short(client, name))
    first, raised = body(), []
    lose(server, next(first))

    def end_it():
        second = body()
        held = next(second)
        try:
            next(first, None)
        except LockLostError as error:
            raised.append(error)
        raised.append("kept" if held.is_valid() else "released")
        second.close()
        raised.append("kept" if held.is_valid() else "released")

    thread = threading.Thread(target=end_it)
    thread.start()
    thread.join(PATIENCE)
    assert isinstance(raised[0], LockLostError) and raised[1:] == ["kept", "released"]


def test_the_exit_of_a_greenlet_ends_its_own_hold(client, server: RealServer, name):
    lock = short(client, name)

    def body():
        with lock as held:
            greenlet.getcurrent().parent.switch(held)

    first, second = greenlet.greenlet(body), greenlet.greenlet(body)
    lose(server, first.switch())
    held = second.switch()
    with pytest.raises(LockLostError):
        first.switch()
    assert held.is_valid() and client.lock(name).try_acquire() is None
    second.switch()
    assert client.lock(name).inspect() is None


def test_the_exit_of_a_task_ends_its_own_hold(client, server: RealServer, name):
    lock = client.lock(name, ttl=0.3, on_lost="continue")

    async def body():
        async with lock as held:
            yield held

    async def main():
        first, second = body(), body()
        held = await anext(first)
        server.command("DEL", name)
        assert await held.wait_lost(PATIENCE)
        held = await anext(second)
        with pytest.raises(LockLostError):
            await anext(first, None)
        assert held.is_valid() and await lock.try_acquire_async() is None
        assert await anext(second, None) is None
        assert await lock.inspect_async() is None

    asyncio.run(main())


def test_a_stack_ends_the_hold_of_its_thread(client, server: RealServer, name):
    """A stack's exit comes from another frame than its entry: then the thread tells."""
    lock, entered, leave = short(client, name), threading.Event(), threading.Event()
    holds = []

    def other():
        with pytest.raises(LockLostError), contextlib.ExitStack() as stack:
            holds.append(stack.enter_context(lock))
            entered.set()
            assert leave.wait(PATIENCE)

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(PATIENCE)
    lose(server, holds[0])
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(lock)
        leave.set()
        thread.join(PATIENCE)
        assert held.is_valid(), "the other thread's stack left its own"
    assert client.lock(name).inspect() is None


def test_of_two_stacks_of_one_thread_the_lost_hold_ends_first(client, server: RealServer, name):
    lock = short(client, name)
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    lose(server, first.enter_context(lock))
    held = second.enter_context(lock)
    with pytest.raises(LockLostError):
        first.close()
    assert held.is_valid(), "what is valid isn't released by an exit that may be another's"
    second.close()
    assert client.lock(name).inspect() is None


# Entering.


def test_a_hold_that_is_over_is_not_entered_again(each_client, name):
    ran = []
    with each_client.lock(name).acquire() as held:
        ran.append(1)
    with pytest.raises(NotHeldError), held:
        ran.append(2)
    ticket = each_client.lock(name).acquire()
    ticket.hand_over()
    with pytest.raises(NotHeldError), ticket:
        ran.append(3)
    assert ran == [1]


def test_a_lost_hold_is_not_entered(client, server: RealServer, name):
    held = short(client, name).acquire()
    lose(server, held)
    with pytest.raises(LockLostError), held:
        raise AssertionError("it doesn't run")


def test_a_hold_has_one_body(each_client, name):
    with each_client.lock(name) as held:
        with pytest.raises(InvalidArgumentError, match="in a `with` already"), held:
            raise AssertionError("it doesn't run")
        held.check()


def test_entering_under_asyncio(client, server: RealServer, name, on_each_loop):
    async def refused(held, error):
        with pytest.raises(error):
            async with held:
                raise AssertionError("it doesn't run")

    async def main():
        async with await client.lock(name).acquire_async() as held:
            await refused(held, InvalidArgumentError)
            held.check()
        await refused(held, NotHeldError)
        held = await short(client, name).acquire_async()
        server.command("DEL", name)
        assert await held.wait_lost(PATIENCE)
        await refused(held, LockLostError)

    on_each_loop(main)


# A task that would wait for itself.


def refused_at(place):
    return pytest.raises(DeadlockError, match=f"since {place}, .*re-entrant")


@pytest.mark.parametrize("wait", [None, 0.05])
def test_a_thread_that_would_wait_for_itself_learns_where_it_took_the_lock(each_client, name, wait):
    lock = each_client.lock(name, wait=wait)
    place = line()
    with lock as held:
        with refused_at(place) as caught:
            lock.acquire()
        assert (caught.value.code, caught.value.lock_name) == ("DEADLOCK", name)
        with refused_at(place), each_client.lock(name):
            raise AssertionError("it doesn't run")
        held.check()
    place = line()
    with each_client.lock(name).acquire():
        with refused_at(place):
            lock.acquire()
    with contextlib.ExitStack() as stack:
        place = line()
        stack.enter_context(lock)
        with refused_at(place):
            lock.acquire()
    assert lock.inspect() is None


def test_a_decorated_function_that_calls_itself_is_refused(each_client, name):
    @each_client.lock(name)
    def outer():
        inner()

    @each_client.lock(name)
    def inner():
        raise AssertionError("it doesn't run")

    with pytest.raises(DeadlockError) as caught:
        place = line()
        outer()
    assert f"since {place}, " in str(caught.value)

    @each_client.lock(name)
    async def coroutine():
        await coroutine()

    async def main():
        with pytest.raises(DeadlockError) as caught:
            place = line()
            await coroutine()
        assert f"since {place}, " in str(caught.value)

    asyncio.run(main())
    with pytest.raises(DeadlockError, match="already, and would wait"):
        asyncio.run(coroutine())  # called by no line of the program's
    with pytest.raises(AssertionError):
        inner()
    assert each_client.lock(name).inspect() is None


def test_a_task_that_would_wait_for_itself_is_refused(each_client, name, on_each_loop):
    lock = each_client.lock(name)

    async def main():
        place = line()
        async with lock as held:
            with refused_at(place):
                await lock.acquire_async()
            with refused_at(place):
                async with lock:
                    raise AssertionError("it doesn't run")
            held.check()
        async with await lock.acquire_async():
            with pytest.raises(DeadlockError):
                await lock.acquire_async()
        assert await lock.inspect_async() is None

    on_each_loop(main)


def test_one_attempt_of_the_same_task_finds_the_lock_busy(each_client, name):
    with each_client.lock(name):
        assert each_client.lock(name).try_acquire() is None
        with pytest.raises(AcquireTimeoutError):
            each_client.lock(name, wait=0).acquire()


def test_who_would_not_wait_for_itself_waits(client, server: RealServer, name):
    """Other threads, greenlets and tasks; another client; a hold without a body, which somebody else may release."""
    lock = client.lock(name, wait=0.05)
    with lock:
        for waiter in (run_thread, run_greenlet, run_task):
            assert isinstance(waiter(lock), AcquireTimeoutError), waiter
        with Client(server.url) as other, pytest.raises(AcquireTimeoutError):
            other.lock(name, wait=0.05).acquire()
    held = lock.acquire()
    with pytest.raises(AcquireTimeoutError):
        lock.acquire()
    timer = threading.Timer(0.05, held.release)
    timer.start()
    with client.lock(name, wait=PATIENCE):
        timer.join()


def attempt(lock, ended):
    try:
        lock.acquire()
    except Exception as error:
        ended.append(error)


def run_thread(lock):
    ended = []
    thread = threading.Thread(target=attempt, args=(lock, ended))
    thread.start()
    thread.join(PATIENCE)
    return ended[0]


def run_greenlet(lock):
    ended = []
    greenlet.greenlet(functools.partial(attempt, lock, ended)).switch()
    return ended[0]


def run_task(lock):
    async def main():
        try:
            await lock.acquire_async()
        except Exception as error:
            return error

    return asyncio.run(main())


def test_a_task_may_wait_again_after_its_hold_is_over(client, server: RealServer, name):
    with client.lock(name) as held:
        held.release()
        with client.lock(name):
            pass
    with client.lock(name) as held:
        ticket = held.hand_over()
        with client.adopt(ticket):
            pass
    with pytest.raises(LockLostError), short(client, name) as held:
        lose(server, held)
        with client.lock(name):
            pass
    until(lambda: not server.command("EXISTS", name))
