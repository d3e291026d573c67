"""The decorator: names from arguments, signatures, results."""

import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import inspect
import pickle
import types

import pytest
from locktender import AcquireTimeoutError, Client, InvalidArgumentError, LockLostError, TryOutcome, lock
from support.server import RealServer


def held_names(client, *names):
    return [name for name in names if client.lock(name).inspect()]


def test_the_name_is_filled_from_the_arguments(each_client, name):
    @each_client.lock(name + ":{user_id}:{mode}", wait=0)
    def charge(user_id, *, mode="full"):
        """Takes money."""
        return held_names(each_client, f"{name}:7:full", f"{name}:7:part")

    assert charge(7) == [f"{name}:7:full"]
    assert charge(user_id=7, mode="part") == [f"{name}:7:part"]
    assert held_names(each_client, f"{name}:7:full") == []
    assert (charge.__name__, charge.__doc__) == ("charge", "Takes money.")
    assert list(inspect.signature(charge).parameters) == ["user_id", "mode"]


def test_attributes_items_and_methods(each_client, name):
    class Account:
        id = 7

        @each_client.lock(name + ":{self.id}:{options[kind]}:{rest}")
        def charge(self, options, *rest):
            return held_names(each_client, f"{name}:7:a:(1, 2)")

    assert Account().charge({"kind": "a"}, 1, 2) == [f"{name}:7:a:(1, 2)"]


def test_double_braces_are_a_literal_tag(each_client, name):
    @each_client.lock("{{" + name + "}}:{part}")
    def work(part):
        return held_names(each_client, f"{{{name}}}:x")

    @each_client.lock("{{" + name + "}}:plain")
    def plain():
        return held_names(each_client, f"{{{name}}}:plain")

    assert work("x") == [f"{{{name}}}:x"]
    assert plain() == [f"{{{name}}}:plain"]


def test_a_callable_makes_the_name(each_client, name):
    @each_client.lock(lambda user_id: f"{name}:{user_id}")
    def charge(user_id):
        return held_names(each_client, f"{name}:7")

    assert charge(7) == [f"{name}:7"]


def test_outside_a_decorator_braces_are_braces(each_client, name):
    with each_client.lock("{tag}:" + name) as held:
        assert held.name == "{tag}:" + name
    with pytest.raises(InvalidArgumentError, match="only in a decorator"):
        each_client.lock(lambda: "x").acquire()


def test_busy_is_an_error(each_client, name):
    @each_client.lock(name, wait=0)
    def work():
        raise AssertionError("it doesn't run")

    with each_client.lock(name), pytest.raises(AcquireTimeoutError):
        work()


def test_skip_returns_none_when_busy(each_client, name):
    @each_client.lock(name + ":{part}").skip_if_busy
    def work(part):
        """Works."""
        return held_names(each_client, f"{name}:x")

    assert (work.__name__, work.__doc__) == ("work", "Works.")
    assert work("x") == [f"{name}:x"]
    with each_client.lock(f"{name}:x"):
        assert work("x") is None, "and doesn't wait, whatever the lock's wait"
    assert work(part="x") == [f"{name}:x"]


def test_skip_of_coroutine_functions(each_client, name):
    @each_client.lock(name).skip_if_busy
    async def work():
        return held_names(each_client, name)

    async def main():
        assert await work() == [name]
        async with each_client.lock(name):
            assert await work() is None

    assert inspect.iscoroutinefunction(work)
    asyncio.run(main())


def test_try_run_tells_none_from_not_run(each_client, name):
    @each_client.lock(name).try_run
    def work(result):
        """Works."""
        return result

    @each_client.lock(name).try_run
    async def coroutine(result):
        return result

    async def main():
        assert await coroutine(7) == TryOutcome(True, 7)
        async with each_client.lock(name):
            assert await coroutine(7) == TryOutcome(False)

    answer = work(None)
    assert (answer.ran, answer.result, bool(answer)) == (True, None, True)
    with each_client.lock(name):
        answer = work(7)
    assert (answer.ran, answer.result, bool(answer)) == (False, None, False)
    assert answer == TryOutcome(False) == pickle.loads(pickle.dumps(answer)) != TryOutcome(True)
    assert (work.__name__, work.__doc__, repr(answer)) == ("work", "Works.", "TryOutcome(ran=False, result=None)")
    asyncio.run(main())


def test_coroutine_functions(each_client, name):
    @each_client.lock(name + ":{part}", wait=0)
    async def work(part):
        await asyncio.sleep(0)
        return held_names(each_client, f"{name}:x")

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(work("x")) == [f"{name}:x"]
    assert held_names(each_client, f"{name}:x") == []


def test_the_default_client_decorates(server: RealServer, name, monkeypatch):
    from locktender import configure

    @lock(name + ":{part}")
    def work(part):
        with Client(server.url) as client:
            return held_names(client, f"{name}:x")

    configure(server.url)
    assert work("x") == [f"{name}:x"]
    configure("memory://afterwards")


def test_a_loss_carries_the_result(client, server: RealServer, name):
    @client.lock(name, ttl=0.3)
    def work():
        server.command("DEL", name)
        return "done"

    with pytest.raises(LockLostError) as caught:
        work()
    assert caught.value.result == "done"


def test_a_loss_carries_the_result_of_a_coroutine(client, server: RealServer, name):
    @client.lock(name, ttl=0.3, on_lost="continue")
    async def work():
        server.command("DEL", name)
        await asyncio.sleep(0)
        return "done"

    with pytest.raises(LockLostError) as caught:
        asyncio.run(work())
    assert caught.value.result == "done"


def test_the_error_of_the_function_comes_out(each_client, name):
    lost = LockLostError("of something else")

    @each_client.lock(name)
    def work():
        raise lost

    with pytest.raises(LockLostError) as caught:
        work()
    assert caught.value is lost and caught.value.result is None
    assert each_client.lock(name).inspect() is None


@pytest.mark.parametrize("template", ["{nobody}", "{user_id", "{}", "{0}"])
def test_a_template_that_cannot_be_filled_is_refused_when_it_decorates(each_client, template):
    with pytest.raises(InvalidArgumentError, match="template"):

        @each_client.lock(template)
        def work(user_id):
            pass


def test_a_template_that_cannot_be_filled_by_a_call_is_refused_then(each_client):
    @each_client.lock("{user.id}")
    def work(user):
        pass

    with pytest.raises(InvalidArgumentError, match=r"\{user.id\}"):
        work(7)


def _generator():
    yield


async def _async_generator():
    yield


@contextlib.contextmanager
def _manager():
    yield


@contextlib.asynccontextmanager
async def _async_manager():
    yield


class _Generating:
    def __call__(self):
        yield


@pytest.mark.parametrize(
    "function",
    [_generator, _async_generator, _manager, _async_manager, functools.partial(_generator), _Generating()],
    ids=["generator", "async generator", "manager", "async manager", "partial", "object"],
)
@pytest.mark.parametrize("way", ["plain", "skip"])
def test_a_function_whose_work_begins_after_the_call_is_refused_when_it_decorates(each_client, name, function, way):
    lock = each_client.lock(name)
    with pytest.raises(InvalidArgumentError, match="without the lock: take the lock inside"):
        (lock.skip_if_busy if way == "skip" else lock)(function)
    with pytest.raises(InvalidArgumentError, match="decorates functions"):
        lock(7)


def test_a_manager_that_is_used_up_by_the_function_is_no_manager(each_client, name):
    """`ContextDecorator` makes functions of contextlib, too, which run when they are called."""

    @each_client.lock(name)
    @_manager()
    def work():
        return held_names(each_client, name)

    assert work() == [name]


def test_objects_that_are_called_are_functions_too(each_client, name):
    class Work:
        def __call__(self):
            return held_names(each_client, name)

    class AsyncWork:
        async def __call__(self):
            await asyncio.sleep(0)
            return held_names(each_client, name)

    assert each_client.lock(name)(Work())() == [name]
    assert asyncio.run(each_client.lock(name)(AsyncWork())()) == [name]
    assert asyncio.run(each_client.lock(name)(functools.partial(AsyncWork().__call__))()) == [name]


ran = []


async def _work():
    ran.append(1)


def _started():
    generator = _generating_work()
    next(generator)
    return generator


def _generating_work():
    yield
    ran.append(1)


@types.coroutine
def _old_coroutine():
    ran.append(1)
    yield


class _Awaitable:
    def __await__(self):
        ran.append(1)
        yield


NOT_RUN = {
    "coroutine": (_work, "decorate the coroutine function itself"),
    "old coroutine": (_old_coroutine, "decorate the coroutine function itself"),
    "generator": (_generating_work, "inside of the generator"),
    "started generator": (_started, "inside of the generator"),
    "async generator": (_async_generator, "async with lock"),
    "manager": (_manager, "inside of it"),
    "async manager": (_async_manager, "inside of it"),
    "future": (concurrent.futures.Future, "return its result"),
    "awaitable": (_Awaitable, "return its result"),
}


@pytest.mark.parametrize("kind", NOT_RUN)
@pytest.mark.parametrize("skip", [False, True])
def test_what_would_run_without_the_lock_is_refused_when_it_comes_back(each_client, name, skip, kind):
    """Hidden behind a plain function, as by most decorators of other packages. Nothing is left that would warn."""
    make, instead = NOT_RUN[kind]
    lock = each_client.lock(name)
    made = []

    def work():
        made.append(make())
        return made[0]

    with pytest.raises(InvalidArgumentError, match=f"without the lock: .*{instead}"):
        (lock.skip_if_busy if skip else lock)(work)()
    assert ran == [] and lock.inspect() is None
    if kind == "future":
        assert made[0].cancelled()
    made.clear()
    gc.collect()


# Here a loop does wait for a lock, and on a busy machine that takes long enough for a warning.
@pytest.mark.filterwarnings("ignore:waiting for lock:RuntimeWarning")
@pytest.mark.parametrize("hidden", [False, True])
def test_a_task_would_run_without_the_lock(each_client, name, hidden):
    tasks = []

    def start():
        tasks.append(asyncio.get_running_loop().create_task(_work()))
        return tasks[0]

    async def start_coroutine():
        return start()

    async def main():
        lock = each_client.lock(name)
        with pytest.raises(InvalidArgumentError, match="without the lock: wait for it inside"):
            if hidden:
                lock(start)()
            else:
                await lock(start_coroutine)()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert ran == [] and await lock.inspect_async() is None

    asyncio.run(main())


def test_results_that_are_there_already_come_back(each_client, name, tmp_path):
    done = concurrent.futures.Future()
    done.set_result(7)
    lock = each_client.lock(name)
    assert lock(lambda: done)() is done
    assert list(lock(lambda: iter([1, 2]))()) == [1, 2]
    with lock(lambda: open(tmp_path / "file", "w"))() as file:
        assert not file.closed

    async def main():
        future = asyncio.get_running_loop().create_future()
        future.set_result(7)
        return await lock(lambda: future)()

    assert asyncio.run(main()) == 7


def test_wrong_arguments_are_the_functions_own_error(each_client):
    @each_client.lock("{user_id}")
    def work(user_id):
        pass

    with pytest.raises(TypeError):
        work()
