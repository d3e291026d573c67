"""Errors: classes, fields and pickles; and every argument that is refused."""

import math
import pickle
from datetime import timedelta
from fractions import Fraction
from itertools import product

import locktender
import pytest
from locktender import Client, InvalidArgumentError, LockError, errors
from locktender.testing import ScriptedServer

CLASSES = [
    ("ACQUIRE_TIMEOUT", errors.AcquireTimeoutError, TimeoutError),
    ("LOCK_LOST", errors.LockLostError, Exception),
    ("NOT_HELD", errors.NotHeldError, Exception),
    ("UNAVAILABLE", errors.UnavailableError, ConnectionError),
    ("DENIED", errors.DeniedError, PermissionError),
    ("KEY_CONFLICT", errors.KeyConflictError, Exception),
    ("INVALID_ARGUMENT", errors.InvalidArgumentError, ValueError),
    ("CLOSED", errors.ClosedError, RuntimeError),
    ("DEADLOCK", errors.DeadlockError, RuntimeError),
    ("FORKED", errors.ForkedError, RuntimeError),
    ("INTERNAL", errors.InternalError, Exception),
]


@pytest.mark.parametrize(("code", "kind", "base"), CLASSES, ids=[code for code, _, _ in CLASSES])
def test_every_code_has_a_class(code, kind, base):
    error = kind("one sentence", lock_name="orders")
    assert isinstance(error, LockError) and isinstance(error, base)
    assert (error.code, error.lock_name, str(error), error.args) == (code, "orders", "one sentence", ("one sentence",))
    assert getattr(locktender, kind.__name__) is kind
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, again.lock_name, str(again)) == (kind, code, "orders", "one sentence")


def test_fields_survive_a_pickle(name):
    for script, kind in (
        ("acquire: busy owner=somebody ttl=500", errors.AcquireTimeoutError),
        ("acquire: busy owner=somebody ttl=none", errors.AcquireTimeoutError),
        ("acquire: fail denied", errors.DeniedError),
        ("always any: fail refused", errors.UnavailableError),
        ("acquire: conflict type=list", errors.KeyConflictError),
    ):
        with Client(ScriptedServer(script), unavailable_after=0.1) as client, pytest.raises(kind) as caught:
            client.lock(name, wait=0).acquire()
        error = caught.value
        again = pickle.loads(pickle.dumps(error))
        assert vars(again) == vars(error) and error.lock_name == name and str(again) == str(error)


def test_servers_are_named_one_by_one(name):
    with Client(ScriptedServer("always any: fail refused"), unavailable_after=0.1) as client:
        with pytest.raises(errors.UnavailableError) as caught:
            client.lock(name).acquire()
    [server] = caught.value.servers
    assert (server.server, server.kind) == ("scripted://test", "refused") and server.message
    assert repr(server).startswith("ServerFailure(server='scripted://test', kind='refused'")
    assert server == pickle.loads(pickle.dumps(server)) and len({server, server}) == 1


NOT_SECONDS = [math.nan, -math.inf, -1, -0.001, True, "1", b"1", [], 10**400, Fraction(1, 2), timedelta(seconds=-1), 1e300]
TOO_SHORT = [0, 0.001]


@pytest.mark.parametrize(("option", "value"), [*product(["ttl", "wait", "max_hold"], NOT_SECONDS), ("ttl", math.inf)], ids=repr)
def test_times_that_are_none_are_refused(option, value):
    client = Client("memory://arguments")
    for refusing in (client.lock, locktender.lock):
        with pytest.raises(InvalidArgumentError, match=f"^{option}: ") as caught:
            refusing("a", **{option: value})
        assert "given: " in str(caught.value)
    with pytest.raises(InvalidArgumentError, match=f"^{option}: "):
        Client("memory://arguments", **{option: value})


@pytest.mark.parametrize("value", NOT_SECONDS, ids=repr)
def test_times_of_a_client_and_of_a_hold_are_checked_too(value):
    for option in ("connect_timeout", "response_timeout", "unavailable_after", "max_ttl"):
        with pytest.raises(InvalidArgumentError, match=f"^{option}: "):
            Client("memory://arguments", **{option: value})
    with Client("memory://arguments").lock("a") as held:
        for call, option in ((held.extend, "ttl"), (held.wait_lost, "timeout")):
            with pytest.raises(InvalidArgumentError, match=f"^{option}: "):
                call(value)
        with pytest.raises(InvalidArgumentError, match="^by: "):
            held.extend(by=value)


@pytest.mark.parametrize("value", TOO_SHORT)
@pytest.mark.parametrize("option", ["ttl", "max_hold"])
def test_times_too_short_to_be_kept_are_refused(option, value):
    with pytest.raises(InvalidArgumentError, match=f"^{option}: "):
        Client("memory://arguments").lock("a", **{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("renew", 1),
        ("renew", "yes"),
        ("on_lost", "explode"),
        ("on_lost", True),
        ("prefix", 7),
        ("prefix", "\ud800"),
        ("app", b"billing"),
        ("app", "x" * 1000),
        ("tls_ca", 7),
        ("tls_cert", "only-one.pem"),
        ("on_event", "not callable"),
        ("tll", 5),
        ("prefetch", None),
        ("\ud800", 1),
    ],
    ids=ascii,
)
def test_options_that_are_wrong_are_named(option, value):
    with pytest.raises(InvalidArgumentError) as caught:
        Client("memory://arguments", **{option: value})
    shown = option.encode("utf-8", "replace").decode()
    assert str(caught.value).startswith(f"{shown}: ") or option == "\ud800"
    assert "given: " in str(caught.value)


def test_a_typo_is_named_everywhere():
    client = Client("memory://arguments")
    for call in (client.lock, client.adopt, client.adopt_async, locktender.lock):
        with pytest.raises(InvalidArgumentError, match=r"^tll: there is no option of this name; did you mean ttl\? \(given: 5\)"):
            call("a", tll=5)
    with pytest.raises(InvalidArgumentError, match="^prefix: "):
        client.lock("a", prefix="x")


@pytest.mark.parametrize("value", [None, 7, b"bytes", 1.5, ["a"], "\ud800"], ids=ascii)
def test_names_that_are_no_text_are_refused(value):
    with pytest.raises(InvalidArgumentError, match="^name: "):
        Client("memory://arguments").lock(value)


@pytest.mark.parametrize("value", ["", "x" * 1025, "a\0b", "a:~lt:b", "{a}:~lt:b", "{}\0"], ids=lambda value: ascii(value)[:20])
def test_names_that_cannot_be_a_locks_are_refused_at_once(value):
    for make in (Client("memory://arguments").lock, locktender.lock):
        with pytest.raises(InvalidArgumentError, match="^name"):
            make(value)


def test_the_prefix_counts_for_a_name():
    with pytest.raises(InvalidArgumentError, match="^name"):
        Client("memory://arguments", prefix="a:~lt").lock(":b")


@pytest.mark.parametrize("value", ["a}", "}a{", "{a}{b}", "{}"])
def test_braces_that_cannot_be_a_locks_are_refused_by_its_operations(value):
    """Not before: a decorator would make another name of them."""
    lock = Client("memory://arguments").lock(value)
    for operation in (lock.acquire, lock.try_acquire, lock.inspect):
        with pytest.raises(InvalidArgumentError, match="^name"):
            operation()


def test_a_ttl_that_the_quorum_refuses_is_refused_at_once():
    with pytest.raises(InvalidArgumentError, match="^ttl"):
        Client(["memory://a", "memory://b", "memory://c"], ttl=5, max_ttl=5).lock("a", ttl=6)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "localhost",
        "redis:/localhost",
        "nonsense://localhost",
        "memory://",
        "redis://localhost:port",
        [],
        (),
        ["redis://a", 7],
        ["redis://a", "redis://a"],
        7,
        b"redis://localhost",
    ],
    ids=repr,
)
def test_urls_that_are_wrong_are_refused(value):
    with pytest.raises(InvalidArgumentError, match="url"):
        Client(value)


def test_a_url_that_is_wrong_does_not_show_its_password():
    for value in ("redis://user:geheim@host:port", b"redis://:geheim@host", ["nonsense://:geheim@host"]):
        with pytest.raises(InvalidArgumentError) as caught:
            Client(value)
        assert "geheim" not in str(caught.value)


def test_times_may_be_any_kind_of_number():
    client = Client("memory://arguments")
    for ttl in (30, 30.0, timedelta(seconds=30)):
        with client.lock("numbers", ttl=ttl) as held:
            assert 28 < held.remaining() <= 30
    with client.lock("numbers", wait=0, max_hold=timedelta(hours=1)), client.lock("other", wait=math.inf, max_hold=math.inf):
        pass
