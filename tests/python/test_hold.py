"""Holds: what the contract can't say of extension, release, loss and hand-over; the end of a body."""

import pickle
import threading
import time
from datetime import timedelta

import pytest
from locktender import Client, InvalidArgumentError, LockLostError, UnavailableError
from support.observe import PATIENCE, until
from support.server import RealServer


def test_an_extension_takes_a_timedelta(each_client, name):
    with each_client.lock(name) as held:
        held.extend(timedelta(seconds=300))
        assert 295 < held.remaining() <= 300
        held.extend(by=timedelta(seconds=100))
        assert 390 < held.remaining() <= 400


def test_extend_takes_one_amount(client, name):
    with client.lock(name) as held, pytest.raises(InvalidArgumentError, match="not both"):
        held.extend(5, by=2)


def test_handles_move_between_threads(each_client, name):
    held = each_client.lock(name).acquire()
    results = []

    def finish():
        held.extend(20)
        results.append(held.release().outcome)

    thread = threading.Thread(target=finish)
    thread.start()
    thread.join(PATIENCE)
    assert results == ["released"]


def test_f09_a_killed_server_is_a_loss_and_no_crash(servers, name):
    server = servers()
    client = Client(server.url, response_timeout=0.2)
    held = client.lock(name, ttl=0.8).acquire()
    server.kill()
    loss = held.wait_lost(PATIENCE)
    assert loss is not None and loss.reason == "expired"
    client.close()


def test_waiting_for_a_loss_ends_with_the_timeout_and_with_the_release(each_client, name):
    held = each_client.lock(name).acquire()
    began = time.monotonic()
    assert held.wait_lost(0.1) is None
    assert held.wait_lost(0) is None
    assert 0.1 <= time.monotonic() - began < 1
    losses = []
    thread = threading.Thread(target=lambda: losses.append(held.wait_lost()))
    thread.start()
    held.release()
    thread.join(PATIENCE)
    assert losses == [None]


def test_or_acquire_is_true_or_false(client, name):
    ticket = client.lock(name).acquire().hand_over()
    with pytest.raises(InvalidArgumentError, match="^or_acquire: "):
        client.adopt(ticket, or_acquire=1)


def test_adopt_takes_options(each_client, name):
    ticket = each_client.lock(name).acquire().hand_over()
    with each_client.adopt(ticket, ttl=300) as adopted:
        assert 295 < adopted.remaining() <= 300


def test_leaving_a_body_releases(each_client, name):
    for error in (None, ValueError(), KeyboardInterrupt(), GeneratorExit()):
        try:
            with each_client.lock(name, wait=0) as held:
                if error:
                    raise error
        except BaseException as raised:
            assert raised is error
        assert not held.is_valid()
    assert each_client.lock(name).inspect() is None


def test_the_error_of_a_body_wins_and_carries_the_locks(client, server: RealServer, name, caplog):
    body_error = ValueError("the user's")
    with pytest.raises(ValueError) as caught, client.lock(name, ttl=2.5) as held:
        server.command("DEL", name)
        held.wait_lost(PATIENCE)
        raise body_error
    assert caught.value is body_error
    assert isinstance(caught.value.lock_error, LockLostError) and caught.value.lock_error.reason == "missing"
    if hasattr(body_error, "__notes__"):
        assert body_error.__notes__ == [f"locktender: {caught.value.lock_error}"]
    assert any("a body failed" in record.message for record in caplog.records)


def test_f26_a_body_fails_and_so_does_the_release(servers, name):
    server = servers()
    with Client(server.url, response_timeout=0.2) as client:
        with pytest.raises(ZeroDivisionError), client.lock(name, ttl=0.5):
            server.kill()
            1 / 0  # noqa: B018


def test_an_unknown_release_is_unavailable_and_can_be_retried(servers, proxies, name):
    server = servers()
    proxy = proxies(server)
    with Client(proxy.url, response_timeout=1, unavailable_after=2) as client:
        held = client.lock(name, ttl=600).acquire()
        proxy.black_hole()
        with pytest.raises(UnavailableError) as caught:
            held.release()
        assert caught.value.lock_name == name and isinstance(caught.value, ConnectionError)
        proxy.restore()
        assert held.release().outcome == "released"
        assert server.command("EXISTS", name) == 0


def test_leaving_a_body_with_an_unknown_release_raises_nothing(servers, proxies, name):
    server = servers()
    proxy = proxies(server)
    with Client(proxy.url, response_timeout=0.5) as client:
        with client.lock(name, ttl=600):
            proxy.black_hole()
        proxy.restore()
        until(lambda: server.command("EXISTS", name) == 0)


def test_a_hold_refuses_to_be_pickled(each_client, name):
    with each_client.lock(name) as held, pytest.raises(TypeError, match="hand_over"):
        pickle.dumps(held)


def test_repr(each_client, name):
    expected = "Release(outcome='released', next_owner=None, next_fence=None, overrun=0.0, kept=0.0)"
    assert repr(each_client.lock(name).acquire().release()) == expected
    with each_client.lock(name) as held:
        assert repr(held) == f'<locktender.Hold "{name}" fence={held.fence} valid>'
    assert repr(held).endswith("not valid>")
    assert repr(each_client.lock(name)) == f'<locktender.Lock "{name}">'
