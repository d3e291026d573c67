"""Likely mistakes: a bare decorator and a class are refused; a name that was not filled in and a ttl in milliseconds cause a warning."""

import asyncio
import inspect
import warnings

import pytest
from locktender import Client, InvalidArgumentError, configure, lock
from support.observe import until


def refused(make):
    with pytest.raises(InvalidArgumentError, match=r'write @lock\("name"\)'):
        make()


def test_a_bare_decorator_is_refused(client):
    def plain():
        @lock
        def work(): ...

    def of_a_client():
        @client.lock
        def work(user_id):
            return user_id

    def below_another():
        @other
        @lock
        def work(): ...

    def above_another():
        @lock
        @other
        def work(): ...

    def coroutine():
        @lock
        async def work(): ...

    def other(function):
        return function

    for make in (plain, of_a_client, below_another, above_another, coroutine):
        refused(make)


def test_a_class_under_the_decorator_is_refused(client, name):
    for decorator in (lock, client.lock, lock(name), client.lock(name), client.lock(name).skip, client.job(name)):
        with pytest.raises(TypeError, match="Work is a class.*decorate the methods"):

            @decorator
            class Work: ...


def test_functions_that_make_names_are_taken(client, name):
    def key(user_id):
        return f"{name}:{user_id}"

    @client.lock(key)
    def work(user_id):
        return [part for part in "ab" if client.lock(f"{name}:{part}").inspect()]

    @client.lock(lambda user_id: key(user_id))
    def other(user_id):
        return work("a") + work("b")

    assert work("a") == ["a"]
    client.lock(str)


def said(caught):
    return [(str(warning.message), warning.filename, warning.lineno) for warning in caught]


def here():
    return __file__, inspect.currentframe().f_back.f_lineno


def test_a_name_that_nobody_filled_in_is_warned_about_once_a_place(client, name):
    order = 42
    assert order
    seen = []
    with Client(f"memory://{name}", on_event=seen.append) as watched, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            with watched.lock("order:{order}"):
                place = __file__, here()[1] - 1
        [(text, *where)] = said(caught)
        assert "f-string" in text and "{order}" in text and tuple(where) == place
        warning = until(lambda: [event for event in seen if event.kind == "warning"])[0]
        assert (warning.lock, warning.message) == ("order:{order}", text)

        async def main():
            async with watched.lock("order:{order}:x"):
                pass
            with watched.lock("order:{name.id}"):
                pass

        caught.clear()
        asyncio.run(main())
        assert caught == [], "neither is a variable there"

        async def other(order):
            async with watched.lock("order:{order[id]}:x"):
                return here()[1] - 1

        line = asyncio.run(other(1))
        assert [(filename, number) for _, filename, number in said(caught)] == [(__file__, line)]


def test_tags_templates_and_names_from_data_are_no_suspects(client, name):
    tag = "order:{id}"

    @client.lock(name + ":{{tag}}:{part}")
    def work(part):
        with client.lock("{sweetroll}:" + name), client.lock(tag), client.lock("{name:1}:x"):
            return part

    assert work("tag") == "tag"


def test_a_ttl_in_milliseconds_is_warned_about_once_a_place(name):
    seen = []
    with Client(f"memory://{name}", on_event=seen.append) as client, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            client.lock(name, ttl=10_000)
        line = here()[1] - 1
        [(text, *where)] = said(caught)
        assert "was 10 meant" in text and tuple(where) == (__file__, line)
        assert until(lambda: [event for event in seen if event.kind == "warning"])[0].message == text
        for ttl in (10, 3600, 7200):
            client.lock(name, ttl=ttl)
        assert len(caught) == 1
        Client(f"memory://{name}", ttl=30_000)
        configure(f"memory://{name}", ttl=30_000)
        lock("x", ttl=5_000)
        assert len(caught) == 4 and "8 h 20 min" in str(caught[1].message)
    configure("memory://afterwards")
