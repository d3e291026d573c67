"""Clients: servers, options, closing, and the default client of the module."""

import gc
import math
import threading
import weakref

import pytest
from locktender import (
    AcquireTimeoutError,
    Client,
    ClosedError,
    DeniedError,
    InvalidArgumentError,
    KeyConflictError,
    LockLostError,
    UnavailableError,
)
from support.checkout import certificate
from support.observe import PATIENCE, until
from support.script import run
from support.server import RealServer, free_port


def test_a_client_is_lazy():
    Client(f"redis://127.0.0.1:{free_port()}").lock("a", ttl=1)


def test_every_kind_of_url(servers, name):
    server = servers(password="secret")
    for url in (server.url, server.url + "/1", server.unix_url):
        with Client(url) as client, client.lock(name) as held:
            assert held.is_valid()


def test_tls(servers, name):
    server = servers(tls="server", mutual=True)
    options = {"tls_ca": certificate("ca.pem"), "tls_cert": certificate("client.pem"), "tls_key": certificate("client.key")}
    with Client(server.url, **options) as client, client.lock(name) as held:
        assert held.is_valid()
    del options["tls_ca"]
    with Client(server.url, connect_timeout=PATIENCE, response_timeout=PATIENCE, **options) as client:
        with pytest.raises(UnavailableError) as caught:
            client.lock(name, wait=0).acquire()
        assert caught.value.servers[0].kind == "tls"


def test_one_name_counts_for_the_certificates_of_all(servers, name):
    server = servers(tls="elsewhere")
    trusting = {"tls_ca": certificate("ca.pem"), "connect_timeout": PATIENCE, "response_timeout": PATIENCE}
    with Client(server.url, tls_name="elsewhere.invalid", **trusting) as client, client.lock(name) as held:
        assert held.is_valid()
    with Client(server.url, **trusting) as client, pytest.raises(UnavailableError, match="not valid for name"):
        client.lock(name, wait=0).acquire()


def test_a_node_is_reached_where_the_map_says(servers, name):
    node = servers()
    sentinel = servers(sentinel=True, config=(f"sentinel monitor main 127.0.0.2 {node.port} 1",))
    url = f"redis+sentinel://127.0.0.1:{sentinel.port}/main"
    with Client(url, address_map={f"127.0.0.2:{node.port}": f"127.0.0.1:{node.port}"}) as client, client.lock(name) as held:
        assert node.holder(name) == held.owner
    for wrong in ("a:1=b:1", {"a:1": 1}, {"a": "b:1"}):
        with pytest.raises(InvalidArgumentError, match="address_map"):
            Client(url, address_map=wrong)


def test_several_servers_are_a_quorum(servers, name):
    three = [servers() for _ in range(3)]
    urls = [server.url for server in three]
    # Whatever form the list has: a new server doesn't vote until it is trusted, and the error says so.
    for given in (urls, tuple(urls), ",".join(urls)):
        with Client(given, response_timeout=PATIENCE) as client, pytest.raises(UnavailableError) as caught:
            client.lock(name, wait=0).acquire()
        assert "quarantine" in {each.kind for each in caught.value.servers}


def test_prefix_and_app_are_on_the_server(server: RealServer, name):
    with Client(server.url, prefix="tests:", app="billing") as client, client.lock(name) as held:
        assert server.holder(f"tests:{name}") == held.owner
        info = client.lock(name).inspect()
        assert info is not None and info.fields is not None
        assert (info.fields.app, info.owner) == ("billing", held.owner)


def test_a_client_has_defaults_for_its_locks(server: RealServer, name):
    with Client(server.url, ttl=30, wait=0, response_timeout=PATIENCE) as client:
        lock = client.lock(name)
        with lock as held:
            assert 28 < held.remaining() <= 30
            with pytest.raises(AcquireTimeoutError):
                lock.acquire()
            with pytest.raises(AcquireTimeoutError):
                client.lock(name, wait=None).acquire()  # what is not given is the client's
        with client.lock(name, ttl=300, wait=math.inf) as held:
            assert 295 < held.remaining() <= 300


def test_wrong_password_is_denied(servers, name):
    server = servers(password="secret")
    with Client(f"redis://:wrong@127.0.0.1:{server.port}") as client, pytest.raises(DeniedError) as caught:
        client.lock(name).acquire()
    assert caught.value.servers[0].kind == "denied"
    assert "wrong@" not in str(caught.value)


def test_key_of_another_type_is_left_alone(client, server: RealServer, name):
    server.command("LPUSH", name, "x")
    with pytest.raises(KeyConflictError):
        client.lock(name).acquire()
    assert server.command("LRANGE", name, 0, -1) == ["x"]


def test_a_closed_client_refuses(server: RealServer, name):
    client = Client(server.url)
    lock = client.lock(name)
    held = lock.acquire()
    client.close()
    client.close()
    assert not held.is_valid()
    assert server.command("EXISTS", name) == 0
    with pytest.raises(ClosedError):
        lock.acquire()
    with pytest.raises(LockLostError) as caught:
        held.check()
    assert caught.value.reason == "closed"
    assert "closed" in repr(client)


def test_close_ends_a_blocked_acquire(server: RealServer, name):
    client = Client(server.url)
    with Client(server.url) as other, other.lock(name):
        errors = []

        def wait():
            try:
                client.lock(name).acquire()
            except ClosedError as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: server.line(name))
        client.close()
        thread.join(PATIENCE)
        assert len(errors) == 1


def test_a_dropped_client_is_collected():
    client = Client("memory://dropped", on_event=lambda event: client)
    gone = weakref.ref(client)
    del client
    gc.collect()
    assert gone() is None


def test_no_server_at_all_names_the_choices_at_the_first_operation(monkeypatch, name):
    monkeypatch.delenv("LOCKTENDER_URL", raising=False)
    client = Client()
    made = client.lock(name, wait=0)
    for operation in (made.acquire, made.inspect, client.check_servers):
        with pytest.raises(InvalidArgumentError, match="LOCKTENDER_URL.*memory://"):
            operation()
    monkeypatch.setenv("LOCKTENDER_URL", f"memory://{name}")
    with made as held, Client(f"memory://{name}") as other:
        assert other.lock(name).inspect().owner == held.owner


def test_a_report_shows_its_fields():
    (report,) = Client("memory://reported").check_servers()
    assert repr(report).startswith("ServerReport(server='memory://reported', failure=None, ")


def test_the_environment_names_the_server(server: RealServer, name):
    program = """
        import sys
        from locktender import Client, lock
        with lock(sys.argv[1]) as held, Client() as client:
            print(client.lock(sys.argv[1]).inspect().owner == held.owner)
    """
    assert run(program, name, env={"LOCKTENDER_URL": server.url}) == "True\n"


def test_the_default_client_is_made_when_it_is_needed(server: RealServer, name):
    program = """
        import os, sys
        from locktender import InvalidArgumentError, configure, lock
        os.environ.pop("LOCKTENDER_URL", None)
        made = lock(sys.argv[1], wait=0)
        try:
            made.acquire()
        except InvalidArgumentError as error:
            print("LOCKTENDER_URL" in str(error))
        configure(sys.argv[2], app="configured")
        with made as held:
            print(held.owner.startswith("app=configured "))
        configure("memory://elsewhere")
        with made as held:
            print(held.owner.startswith("app="))
    """
    assert run(program, name, server.url) == "True\nTrue\nFalse\n"


def test_configure_refuses_at_once(monkeypatch):
    import locktender

    with pytest.raises(InvalidArgumentError):
        locktender.configure("nonsense://host")


def test_one_version():
    from importlib.metadata import version

    import locktender

    assert locktender.__version__ == version("locktender")
