"""Elections in Python: what the contract can't say, because only Python has it."""

import asyncio
import os
import threading

import pytest
from locktender import AsyncLeadership, Client, Hold, InvalidArgumentError, Leadership, LockLostError, configure, election
from support.observe import PATIENCE, until


@pytest.fixture
def client(request: pytest.FixtureRequest):
    with Client(f"memory://{request.node.name}") as client:
        yield client


def test_a_leadership_is_a_hold_and_work_gets_it_before_its_arguments(client: Client):
    election, seen = client.election("x"), []

    def work(leadership, day, *, urgent):
        seen.append((isinstance(leadership, Leadership) and isinstance(leadership, Hold), day, urgent, leadership.term == leadership.fence))
        election.stop()

    election.lead(work, "monday", urgent=True)
    assert seen == [(True, "monday", True, True)]
    with client.election("x").campaign() as leadership:
        assert not leadership.stopping and leadership.is_valid()
    assert client.lock("x").inspect() is None


def test_stop_from_another_thread_ends_a_campaign_or_waits_for_the_work(client: Client):
    election, begun, goes_on = client.election("x"), threading.Event(), threading.Event()

    def work(leadership):
        begun.set()
        assert goes_on.wait(PATIENCE) and leadership.stopping
        leadership.check()

    leads = threading.Thread(target=election.lead, args=(work,))
    leads.start()
    assert begun.wait(PATIENCE)
    waits = client.election("x")
    candidate = threading.Thread(target=waits.lead, args=(work,))
    candidate.start()
    until(lambda: client.lock("x").inspect().waiters == 1)
    waits.stop()
    candidate.join(PATIENCE)
    assert not candidate.is_alive()
    election.stop()
    assert leads.is_alive() and client.lock("x").inspect(), "it resigned while its work ran"
    goes_on.set()
    leads.join(PATIENCE)
    assert not leads.is_alive() and client.lock("x").inspect() is None


def test_a_forked_child_may_lead_while_its_parent_does(client: Client):
    election, begun, goes_on = client.election("x"), threading.Event(), threading.Event()

    def work(leadership):
        begun.set()
        assert goes_on.wait(PATIENCE) and leadership.is_valid() and not leadership.stopping
        election.stop()

    leads = threading.Thread(target=election.lead, args=(work,))
    leads.start()
    assert begun.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        try:
            # A server in memory is another one here.
            election.lead(lambda leadership: election.stop())
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    goes_on.set()
    leads.join(PATIENCE)
    assert not leads.is_alive()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_the_work_raises_comes_back_and_another_call_may_lead(client: Client, error: type[BaseException]):
    election = client.election("x")

    def work(leadership):
        raise error

    for _ in range(2):
        with pytest.raises(error):
            election.lead(work)
        assert client.lock("x").inspect() is None


def test_one_call_leads_at_a_time(client: Client):
    election = client.election("x")

    def work(leadership):
        with pytest.raises(InvalidArgumentError, match="this election leads already: one call of lead"):
            election.lead(work)
        election.stop()

    election.lead(work)


def test_the_loss_of_another_lock_is_an_error_of_the_work(client: Client):
    other = client.lock("y", ttl=0.02, renew=False).acquire()
    assert other.wait_lost(PATIENCE)
    with pytest.raises(LockLostError) as raised:
        client.election("x").lead(lambda leadership: other.check())
    assert raised.value.lock_name == "y"


def test_a_loss_cancels_the_work_and_the_next_one_begins_after_its_end(client: Client):
    seen = []

    async def work(leadership):
        assert isinstance(leadership, AsyncLeadership)
        seen.append(leadership.term)
        if len(seen) == 4:
            raise ValueError("enough")
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            seen.append("cancelled")
            await asyncio.sleep(0)
            seen.append("ended")

    with pytest.raises(ValueError, match="enough"):
        asyncio.run(client.election("x", ttl=0.02, renew=False).lead_async(work))
    assert seen[1:3] == ["cancelled", "ended"] and seen[3] > seen[0] and len(seen) == 4


def test_a_cancelled_task_resigns_after_its_work_has_ended(client: Client):
    held = []

    async def main():
        begun = asyncio.Event()

        async def work(leadership):
            begun.set()
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                held.append(client.lock("x").inspect().owner == leadership.owner)

        task = asyncio.create_task(client.election("x").lead_async(work))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert held == [True] and client.lock("x").inspect() is None


def test_a_cancelled_campaign_leaves_nothing(client: Client):
    async def main():
        async with await client.election("x").campaign_async() as leadership:
            task = asyncio.create_task(client.election("x").lead_async(asyncio.sleep))
            while not client.lock("x").inspect().waiters:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert leadership.is_valid()

    asyncio.run(main())
    assert client.lock("x").inspect() is None


def test_what_is_no_work_is_refused(client: Client):
    async def work(leadership): ...

    election = client.election("x")
    for lead in (election.lead, lambda work: asyncio.run(election.lead_async(work))):
        with pytest.raises(InvalidArgumentError, match="leads by functions"):
            lead(None)
    with pytest.raises(InvalidArgumentError, match=r"use lead_async\(\)"):
        election.lead(work)
    with pytest.raises(InvalidArgumentError, match=r"use lead\(\)"):
        asyncio.run(election.lead_async(lambda leadership: None))
    assert client.lock("x").inspect() is None


def test_an_observer_is_an_iterator_for_threads_and_for_tasks(client: Client):
    leadership = client.election("x").campaign()
    observer = client.election("x").observe()
    assert iter(observer) is observer
    for observation in observer:
        assert observation.leader and observation.leader.owner == leadership.owner
        break
    leadership.resign()
    assert next(observer).leader is None

    async def main():
        async with await client.election("x").campaign_async() as leadership:
            async for observation in client.election("x").observe():
                assert observation.leader and observation.leader.term == leadership.term
                assert f"term={leadership.term}" in repr(observation)
                break

    asyncio.run(main())


def test_a_cancelled_observer_goes_on_where_it_was(client: Client):
    async def main():
        observer = client.election("x").observe()
        assert (await anext(observer)).leader is None
        waiting = asyncio.ensure_future(anext(observer))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with await client.election("x").campaign_async() as leadership:
            assert (await anext(observer)).leader.term == leadership.term

    asyncio.run(main())


def test_an_election_of_the_module_stays_with_the_default_client_of_its_first_use(request: pytest.FixtureRequest):
    made = election("x")
    with pytest.raises(InvalidArgumentError, match="tll"):
        election("x", tll=5)
    first = f"memory://{request.node.name}"
    configure(first)
    with made.campaign() as leadership, Client(first) as client:
        assert client.lock("x").inspect().owner == leadership.owner
        configure("memory://afterwards")
        assert made.try_campaign() is None
    made.stop()
    made.lead(lambda leadership: pytest.fail("it was stopped"))
