"""Holds: extension, release, loss and hand-over; the end of a body."""

import pickle
import threading
import time
from datetime import timedelta

import pytest
from locktender import Client, InvalidArgumentError, LockLostError, NotHeldError, UnavailableError
from support.observe import PATIENCE, until
from support.server import RealServer


def test_it_is_renewed(client, name):
    with client.lock(name, ttl=2) as held:
        until(lambda: held.remaining() < 1.5)
        until(lambda: held.remaining() > 1.5)
        time.sleep(2)
        held.check()


def test_without_renewal_it_expires(client, server: RealServer, name):
    held = client.lock(name, ttl=0.2, renew=False).acquire()
    loss = held.wait_lost(PATIENCE)
    assert loss is not None and (loss.reason, loss.rival) == ("expired", None)
    assert not held.is_valid() and held.remaining() == 0
    until(lambda: server.command("EXISTS", name) == 0)  # validity ends a little before the key
    assert held.release().outcome == "expired"


def test_extend(each_client, name):
    with each_client.lock(name) as held:
        held.extend(200)
        assert 196 < held.remaining() <= 200
        held.extend(50)
        assert held.remaining() > 196, "an extension never shortens"
        held.extend(timedelta(seconds=300))
        assert 295 < held.remaining() <= 300
        held.extend(by=100)
        assert 392 < held.remaining() <= 400


def test_extend_without_a_ttl_takes_the_locks_own(each_client, name):
    with each_client.lock(name, ttl=30, renew=False) as held:
        until(lambda: held.remaining() < 29)
        began = time.monotonic()
        held.extend()
        # All of the ttl, less the allowance for drift, counted from the call.
        assert held.remaining() + (time.monotonic() - began) > 29.5


def test_extend_takes_one_amount(client, name):
    with client.lock(name) as held, pytest.raises(InvalidArgumentError, match="not both"):
        held.extend(5, by=2)


def test_max_hold_ends_it(client, name):
    with pytest.raises(LockLostError) as caught, client.lock(name, max_hold=0.3) as held:
        loss = held.wait_lost(PATIENCE)
        assert loss is not None and loss.reason == "max_hold"
    assert caught.value.reason == "max_hold"


def test_a_second_release_is_refused(each_client, name):
    held = each_client.lock(name).acquire()
    assert repr(held.release()) == "Release(outcome='released', rival=None, rival_fence=None, overrun=0.0, kept=0.0)"
    with pytest.raises(NotHeldError) as caught:
        held.release()
    assert (caught.value.code, caught.value.lock_name) == ("NOT_HELD", name)
    with pytest.raises(NotHeldError):
        held.extend()
    with pytest.raises(NotHeldError):
        held.check()


def test_f22_an_expired_handle_never_deletes_the_next_holders_key(client, server: RealServer, name):
    first = client.lock(name, ttl=0.2, renew=False).acquire()
    with client.lock(name) as second:
        released = []
        thread = threading.Thread(target=lambda: released.append(first.release()))
        thread.start()
        thread.join(PATIENCE)
        assert (released[0].outcome, released[0].rival) == ("taken", second.owner)
        assert released[0].overrun > 0
        assert server.holder(name) == second.owner
        second.check()


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


def test_f03_a_deleted_key_is_a_loss_and_is_never_made_again(client, server: RealServer, name):
    with pytest.raises(LockLostError) as caught, client.lock(name, ttl=2.5) as held:
        server.command("DEL", name)
        loss = held.wait_lost(PATIENCE)
        assert loss is not None and loss.reason == "missing"
        assert not held.is_valid()
        with pytest.raises(LockLostError):
            held.extend()
        with pytest.raises(LockLostError):
            held.check()
    assert caught.value.reason == "missing"
    assert server.command("EXISTS", name) == 0


def test_f03_an_overwritten_key_is_a_loss_and_survives(client, server: RealServer, name):
    with pytest.raises(LockLostError) as caught, client.lock(name, ttl=2.5) as held:
        server.command("SET", name, "rival")
        loss = held.wait_lost(PATIENCE)
        assert loss is not None and (loss.reason, loss.rival) == ("taken", "rival")
    assert (caught.value.reason, caught.value.rival) == ("taken", "rival")
    assert server.command("GET", name) == "rival"


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


def test_hand_over(each_client, name):
    held = each_client.lock(name, ttl=70).acquire()
    ticket = held.hand_over()
    assert not held.is_valid()
    with pytest.raises(NotHeldError):
        held.release()
    assert each_client.lock(name).try_acquire() is None, "it stays taken"
    with each_client.adopt(ticket, wait=0) as adopted:
        assert adopted.name == name and adopted.fence > held.fence and adopted.owner != held.owner
        assert 68 < adopted.remaining() <= 70, "the ttl is that of the lock"
        with pytest.raises(LockLostError, match="has ended, or was adopted before") as caught:
            each_client.adopt(ticket)
        assert (caught.value.reason, caught.value.rival) == ("ended", adopted.owner)
        with pytest.raises(TimeoutError):
            each_client.adopt(ticket, or_acquire=True, wait=0)
    with pytest.raises(InvalidArgumentError, match="^or_acquire: "):
        each_client.adopt(ticket, or_acquire=1)
    with each_client.adopt(ticket, or_acquire=True, wait=0) as anew:
        assert anew.fence > adopted.fence
    with pytest.raises(InvalidArgumentError):
        each_client.adopt("nonsense")


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


def test_leaving_a_body_after_a_release_does_nothing(each_client, name):
    with each_client.lock(name) as held:
        held.release()
        with each_client.lock(name, wait=0) as next_one:
            pass
        assert next_one.fence > held.fence
    with each_client.lock(name) as held:
        ticket = held.hand_over()
    with each_client.adopt(ticket, wait=0):
        pass


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
    with each_client.lock(name) as held:
        assert repr(held) == f'<locktender.Held "{name}" fence={held.fence} valid>'
    assert repr(held).endswith("not valid>")
    assert repr(each_client.lock(name)) == f'<locktender.Lock "{name}">'
