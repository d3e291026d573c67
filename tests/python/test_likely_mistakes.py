"""Likely mistakes: a bare decorator and a class are refused; a ttl in milliseconds causes a warning."""

import inspect
import warnings

import pytest
from locktender import Client, InvalidArgumentError, configure, lock
from support.observe import until


def refused(make):
    with pytest.raises(InvalidArgumentError, match=r'write @lock\("name"\)'):
        make()


def test_a_bare_decorator_is_refused_at_once_where_it_shows_and_else_by_the_first_call(client):
    def coroutine():
        @lock
        async def work(): ...

    def generator():
        @client.lock
        def work():
            yield

    for make in (coroutine, generator):
        refused(make)

    @lock
    def plain(): ...

    @client.lock
    def with_arguments(user_id, *, fast=False): ...

    for call in (plain, lambda: with_arguments(7), lambda: with_arguments(7, fast=True), lambda: with_arguments(fast=True)):
        refused(call)
    with pytest.raises(TypeError, match="a lock is called with one function"):
        lock("name")()


def test_a_class_under_the_decorator_is_refused(client, name):
    for decorator in (lock, client.lock, lock(name), client.lock(name), client.lock(name).skip_if_busy, client.job(name)):
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
