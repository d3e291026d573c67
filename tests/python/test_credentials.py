"""Credentials that a callable gives: plain or async, with and without an end, and what its failures become."""

import asyncio
import os
import subprocess
import sys
import threading
import traceback

import pytest

from locktender import Client, Credentials, DeniedError, InvalidArgumentError, UnavailableError
from support.observe import PATIENCE, until
from support.page import Page
from support.server import RealServer
from support.tokens import Tokens

TTL = 4.5


@pytest.fixture
def guarded(servers) -> RealServer:
    """A server that asks everybody for a password."""
    return servers(password="the-administrators")


def url(server: RealServer) -> str:
    return f"redis://127.0.0.1:{server.port}"


def test_a_hold_outlives_three_tokens_on_the_same_connections(guarded, name):
    tokens, warnings = Tokens(guarded, life=3), []
    on_event = lambda event: warnings.append(event) if event.kind in ("lost", "warning", "server_failed") else None
    with Client(url(guarded), credentials=tokens, on_event=on_event, connect_timeout=PATIENCE) as client:
        with client.lock(name, ttl=TTL) as held:
            until(lambda: len(tokens.connections()) >= 2)
            before = tokens.connections().keys()
            for number in range(2, 5):
                until(lambda: min(tokens.connections().values()) >= number)
                guarded.command("ACL", "DELUSER", f"token-{number - 1}")
            assert tokens.connections().keys() == before and held.is_valid()
    assert (warnings, tokens.threads) == ([], {"locktender-credentials"})


ANSWERS = {
    "a password": lambda: "the-administrators",
    "a pair": lambda: ("ann", "hunter2"),
    "a value": lambda: Credentials("hunter2", user="ann", expires_in=60),
    "the server's": lambda server: {"redis": "the-administrators"}[server.split(":")[0]],
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_an_answer_may_have_any_of_these_forms(servers, name, answer, kind):
    server = servers(password="the-administrators", users={"ann": ("hunter2", "~* &* +@all")})

    async def of_server(server):
        await asyncio.sleep(0)
        return answer(server)

    async def of_nobody():
        await asyncio.sleep(0)
        return answer()

    wrapped = answer if kind == "plain" else of_server if answer is ANSWERS["the server's"] else of_nobody
    with Client(url(server), credentials=wrapped, connect_timeout=PATIENCE) as client, client.lock(name) as held:
        assert server.holder(name) == held.owner


def test_under_asyncio_it_runs_beside_the_loop(guarded, name):
    loops = set()

    async def credentials():
        loops.add(id(asyncio.get_running_loop()))
        return "the-administrators"

    async def program():
        async with Client(url(guarded), credentials=credentials, connect_timeout=PATIENCE) as client:
            async with client.lock(name) as held:
                assert held.is_valid()
        return id(asyncio.get_running_loop())

    assert asyncio.run(program()) not in loops and len(loops) == 1


def test_what_it_raises_is_the_cause_and_the_next_call_counts(guarded, name):
    answers = [ValueError("no token today"), "the-administrators"]

    def credentials():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with Client(url(guarded), credentials=credentials, connect_timeout=PATIENCE) as client:
        with pytest.raises(DeniedError, match="`credentials` failed: ValueError: no token today") as caught:
            client.lock(name).acquire()
        assert isinstance(caught.value.__cause__, ValueError)
        assert "raise answer" in "".join(traceback.format_exception(caught.value))
        assert caught.value.servers[0].kind == "denied"

        def acquires():
            try:
                return client.lock(name).try_acquire()
            except DeniedError:  # the answer of a moment ago
                return None

        until(acquires).release()


class Mute(Exception):
    """An error that can't even say what it is."""

    def __str__(self):
        raise RuntimeError("it has no words")


@pytest.mark.parametrize(("error", "said"), [(Mute(), "`credentials` failed: Mute)"), (ValueError("\ud800"), r"ValueError: \\ud800")], ids=["mute", "surrogate"])
def test_an_error_is_shown_as_far_as_it_can_be(guarded, name, error, said):
    def credentials():
        raise error

    with Client(url(guarded), credentials=credentials, connect_timeout=PATIENCE) as client:
        with pytest.raises(DeniedError) as caught:
            client.lock(name).acquire()
    assert said.replace("\\\\", "\\") in str(caught.value).replace("\\\\", "\\") and caught.value.__cause__ is error


@pytest.mark.parametrize("wrong", [None, 7, b"hunter2", ("ann",), ("ann", "hunter2", 3), ("ann", b"hunter2"), ["ann", "hunter2"]], ids=str)
def test_an_answer_of_another_form_is_an_error_that_does_not_show_it(guarded, name, wrong):
    with Client(url(guarded), credentials=lambda: wrong, connect_timeout=PATIENCE) as client:
        with pytest.raises(DeniedError, match=r"must give a password, a tuple \(user, password\) or Credentials") as caught:
            client.lock(name).acquire()
    assert "hunter2" not in str(caught.value) and isinstance(caught.value.__cause__, TypeError)


def test_a_wrong_password_is_asked_for_once_more_and_shown_nowhere(guarded, name):
    calls, seen = [], []

    def credentials():
        calls.append(1)
        return "ann", "hunter2hunter2"

    with Client(url(guarded), credentials=credentials, connect_timeout=PATIENCE, on_event=seen.append) as client:
        with pytest.raises(DeniedError, match="`credentials` gave") as caught:
            client.lock(name).acquire()
        until(lambda: seen)
    assert len(calls) == 2 and caught.value.__cause__ is None
    assert "hunter2" not in f"{caught.value} {caught.value.servers} {seen} {client!r}"


def test_a_callable_that_blocks_delays_no_renewal_and_ends_with_the_connect_timeout(guarded, name):
    let_go, calls, renewed, warnings = threading.Event(), [], [], []

    def credentials():
        calls.append(1)
        if len(calls) > 1:
            let_go.wait(PATIENCE)
        return Credentials("the-administrators", expires_in=1)

    def on_event(event):
        if event.kind == "warning":
            warnings.append(event.message)
        elif event.kind in ("renewed", "lost"):
            renewed.append(event.kind)

    with Client(url(guarded), credentials=credentials, on_event=on_event) as client, client.lock(name, ttl=TTL) as held:
        until(lambda: len(calls) == 2)
        del renewed[:]
        until(lambda: len(renewed) >= 2)
        assert held.is_valid() and "lost" not in renewed and len(calls) == 2
        until(lambda: warnings)
        assert warnings == ["`credentials` gave no answer within 1000 ms"]
        let_go.set()
    stuck = threading.Event()
    try:
        with Client(url(guarded), credentials=lambda: stuck.wait(PATIENCE), connect_timeout=0.1, unavailable_after=0.3) as client:
            with pytest.raises(UnavailableError, match="`credentials` gave no answer within 100 ms"):
                client.lock(name).acquire()
    finally:
        stuck.set()


def test_wrong_options_are_refused_without_showing_them():
    for given in ("hunter2", ("ann", "hunter2"), 7):
        with pytest.raises(InvalidArgumentError, match="credentials: must be callable") as caught:
            Client("redis://localhost", credentials=given)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="the option credentials") as caught:
        Client("redis://ann:hunter2@localhost", credentials=lambda: "x")
    assert "hunter2" not in str(caught.value)
    for given in ({"expires_in": -1}, {"expires_in": "soon"}, {"user": 7}):
        with pytest.raises(InvalidArgumentError, match=next(iter(given))):
            Credentials("hunter2", **given)
    with pytest.raises(InvalidArgumentError, match="password"):
        Credentials(b"hunter2")


def test_credentials_are_compared_and_shown_without_the_password():
    token = Credentials("hunter2", user="ann", expires_in=900)
    assert (token.user, token.password, token.expires_in) == ("ann", "hunter2", 900)
    assert token == Credentials("hunter2", user="ann", expires_in=900.0) and token != Credentials("hunter2")
    assert "hunter2" not in repr(token) and "ann" in repr(token)
    assert Credentials("hunter2").expires_in is None


PROGRAM = """
import os, sys, threading
from locktender import Client

def credentials():
    print("asked", flush=True)
    {body}
    return "the-administrators"

client = Client(sys.argv[1], credentials=credentials, connect_timeout=20)
{rest}
"""


def run(server, body="", rest=""):
    command = [sys.executable, "-W", "error", "-c", PROGRAM.format(body=body, rest=rest), url(server)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_asks_for_itself(guarded):
    rest = (
        "client.lock('parent').acquire().release()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    client.check_servers(); client.lock('child').acquire().release(); os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)\n"
    )
    finished = run(guarded, rest=rest)
    assert (finished.stdout.split(), finished.stderr) == (["asked", "asked", "7"], "")


@pytest.mark.parametrize("rest", ["held = client.lock('a').acquire()", "threading.Thread(target=client.lock('a').acquire, daemon=True).start()"])
def test_the_interpreter_ends_while_it_is_asked(guarded, rest):
    body = "threading.main_thread().join()" if "Thread(" in rest else ""
    finished = run(guarded, body, f"{rest}\n" + ("import time\nwhile threading.active_count() < 4: time.sleep(0.01)\n" if body else ""))
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "asked\n", "")


RECIPES = {name: text for name, text in Page("docs/servers.md").recipes().items() if name.endswith("-python")}


def test_the_recipe_of_a_file_runs_as_it_stands_in_the_page(guarded, name, tmp_path):
    file = tmp_path / "password"
    file.write_text("an old one\n")
    made: dict = {}
    exec(RECIPES["file-python"].replace("/run/secrets/redis", str(file)).replace("db.example", f"127.0.0.1:{guarded.port}"), made)
    with made["client"] as client:
        with pytest.raises(DeniedError):
            client.lock(name).acquire()
        file.write_text("the-administrators\n")
        until(lambda: client.check_servers()[0].failure is None)
        client.lock(name).acquire().release()


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_the_other_recipes_are_python(recipe):
    compile(recipe, "docs/servers.md", "exec")
