"""Words of other libraries in calls and attributes: each is answered with ours."""

import asyncio
import pickle
from pathlib import Path

import locktender
import pytest
from locktender import Client, InvalidArgumentError, lock

MIGRATING = (Path(__file__).parents[2] / "docs/migrating.md").read_text()


@pytest.mark.parametrize(
    ("word", "ours", "has"),
    [
        ("locked", "inspect()", "lock"),
        ("owned", "is_valid()", "held"),
        ("reacquire", "extend()", "held"),
        ("token", "owner of the hold", "held"),
        ("token", "owner of the hold", "lock"),
        ("get_owner_id", "owner of the hold", "lock"),
        ("ping", "check_servers()", "client"),
        ("quit", "close()", "client"),
        ("using", "with client.lock(name):", "client"),
        ("unlock", "release()", "held"),
    ],
)
def test_a_word_of_another_library_is_answered_with_ours(client, name, word, ours, has):
    assert word in MIGRATING
    with client.lock(name) as held:
        subject = {"lock": client.lock(name), "held": held, "client": client}[has]
        with pytest.raises(AttributeError) as raised:
            getattr(subject, word)
        assert f"has no attribute '{word}'; " in str(raised.value) and ours in str(raised.value)
        assert not hasattr(subject, word)


def test_from_url_says_that_the_class_takes_the_url():
    assert "from_url" in MIGRATING
    with pytest.raises(AttributeError, match=r"^type object 'Client' has no attribute 'from_url'; .*Client\(url\)"):
        Client.from_url("redis://localhost")


def test_another_attribute_is_missing_as_usual(client, name):
    with pytest.raises(AttributeError, match="^'Lock' object has no attribute 'aquire'$") as raised:
        client.lock(name).aquire  # noqa: B018
    assert (raised.value.name, raised.value.obj.name) == ("aquire", name)
    assert pickle.loads(pickle.dumps(lock(name))).name == name


def test_options_in_an_acquire_are_sent_to_the_lock(client, name):
    subject = client.lock(name)
    for call in (subject.acquire, subject.try_acquire, subject.acquire_async, subject.try_acquire_async):
        for options, words in (
            ({"timeout": 3}, "how long an acquire waits is wait"),
            ({"blocking": False}, "try_acquire()"),
            ({"blocking_timeout": 3}, "here it is wait"),
            ({"wait": 3}, "wait is an option of the lock: give it to lock()"),
        ):
            with pytest.raises(InvalidArgumentError) as raised:
                call(**options)
            assert words in str(raised.value)
        for argument in (5, False):
            with pytest.raises(InvalidArgumentError, match=r"lock\(name, wait=5\) \(given: (5|False)\)"):
                call(argument)
    subject.acquire().release()


def test_options_have_names(client, name):
    for call in (client.lock, client.job, client.cron_job, client.election, lock, locktender.job, locktender.cron_job):
        with pytest.raises(InvalidArgumentError, match=r"given by their names.*ttl=10.*\(given: 10\)"):
            call(name, 10)
    for call in (Client, locktender.configure):
        with pytest.raises(InvalidArgumentError, match="a server is one URL, such as redis://"):
            call("localhost", 6379)
    with pytest.raises(InvalidArgumentError) as raised:
        Client("redis://localhost", "hunter2")
    assert "hunter2" not in str(raised.value)


def test_a_coroutine_says_that_it_is_awaited_first(client, name):
    async def main():
        acquiring = client.lock(name).acquire_async()
        with pytest.raises(AttributeError, match=r"coroutine acquire_async\(\) has no attribute 'fence': await it first"):
            acquiring.fence  # noqa: B018
        with pytest.raises(TypeError, match=r"await it first: `async with await …acquire_async\(\) as held:`"):
            async with acquiring:
                pass
        with pytest.raises(TypeError, match="await it first"), acquiring:
            pass
        async with await acquiring as held:
            assert held.fence > 0

    asyncio.run(main())


def test_a_client_shows_its_server_and_prefix_and_no_password(monkeypatch):
    assert repr(Client("redis://ann:hunter2@localhost:6400/3", prefix="app:")) == (
        "<locktender.Client redis://***@localhost:6400/3 prefix='app:'>".replace("'", '"')
    )
    assert repr(Client(["memory://a", "memory://b"])) == "<locktender.Client memory://a,memory://b>"
    client = Client("unix:///run/redis.sock?pass=hunter2")
    client.close()
    assert repr(client) == "<locktender.Client unix:///run/redis.sock?*** (closed)>"
    monkeypatch.delenv("LOCKTENDER_URL", raising=False)
    assert repr(Client()) == "<locktender.Client no server>"
