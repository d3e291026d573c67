"""The fixtures: they do what they say."""

import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis
from support.checkout import Binary, binaries, certificate
from support.cluster import SLOTS, Cluster
from support.observe import PATIENCE, until
from support.proxy import Proxy
from support.server import RealServer


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def ask(connection: socket.socket, request: str) -> bytes:
    """One short reply; empty when the connection was closed instead."""
    try:
        connection.sendall(request.encode() + b"\r\n")
        return connection.recv(1024)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("version", binaries(), ids=lambda each: each.name)
def test_every_version_starts(servers, version: Binary):
    server = servers(version.name)
    assert f"{version.kind}_version:{version.version}" in server.command("INFO", "server")
    with connect(server.port) as connection:
        assert ask(connection, "PING") == b"+PONG\r\n"


def test_killed_and_restarted(servers):
    server = servers()
    server.command("SET", "a", "1")
    server.kill()
    with pytest.raises(ConnectionRefusedError):
        connect(server.port)
    server.restart_empty()
    assert server.command("GET", "a") is None


def test_persistent(servers):
    server = servers(persistent=True)
    assert server.command("SET", "a", "1") == "OK"
    server.restart()
    assert server.command("GET", "a") == "1"
    server.restart_empty()
    assert server.command("GET", "a") is None


def test_paused_and_resumed(servers):
    server = servers()
    with connect(server.port) as connection:
        server.pause()
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            ask(connection, "PING")
        server.resume()
        connection.settimeout(PATIENCE)
        assert connection.recv(1024) == b"+PONG\r\n"


def test_password_and_users(servers):
    server = servers(password="secret", users={"reader": ("other", "~* +get")})
    assert ":secret@" in server.url
    assert server.command("SET", "a", "1") == "OK"
    with connect(server.port) as connection:
        assert ask(connection, "GET a").startswith(b"-NOAUTH")
        assert ask(connection, "AUTH reader other") == b"+OK\r\n"
        assert ask(connection, "GET a") == b"$1\r\n1\r\n"
        assert ask(connection, "SET a 2").startswith(b"-NOPERM")


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate("ca.pem"))


def test_tls(servers):
    server = servers(tls="server", password="secret")
    assert server.url.startswith("rediss://:secret@")
    with trusting().wrap_socket(connect(server.port), server_hostname="localhost") as connection:
        assert ask(connection, "AUTH secret") == b"+OK\r\n"


@pytest.mark.parametrize("name", ["elsewhere", "expired"])
def test_tls_with_a_wrong_certificate(servers, name):
    server = servers(tls=name)
    with connect(server.port) as plain, pytest.raises(ssl.SSLCertVerificationError):
        trusting().wrap_socket(plain, server_hostname="localhost")


def test_mutual_tls(servers):
    server = servers(tls="server", mutual=True)
    context = trusting()
    with context.wrap_socket(connect(server.port), server_hostname="localhost") as connection:
        assert ask(connection, "PING") == b""
    context.load_cert_chain(certificate("client.pem"), certificate("client.key"))
    with context.wrap_socket(connect(server.port), server_hostname="localhost") as connection:
        assert ask(connection, "PING") == b"+PONG\r\n"


def test_a_closed_server_leaves_nothing():
    with RealServer() as server:
        assert server.socket.exists()
    assert not server.directory.exists()
    with pytest.raises(ConnectionRefusedError):
        connect(server.port)


def test_a_server_does_not_outlive_its_killed_test():
    program = "from support.server import RealServer as Server; import time; server = Server(); server.pause();"
    program += "print(server.pid, server.directory, flush=True); time.sleep(60)"
    command = [sys.executable, "-c", program]
    test = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    assert test.stdout is not None
    pid, directory = test.stdout.readline().split()
    test.kill()
    test.communicate()
    until(lambda: not Path(directory).exists() and not runs(int(pid)))


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_proxy_counts(proxy: Proxy):
    with connect(proxy.port) as connection:
        assert ask(connection, "PING") and ask(connection, "PING")
        assert (proxy.connections(), proxy.open_connections()) == (1, 1)
        assert (proxy.client_reads(), proxy.client_bytes()) == (2, 12)


def test_proxy_latency(proxy: Proxy):
    with connect(proxy.port) as connection:
        proxy.latency(0.06, 0.04)
        began = time.monotonic()
        assert ask(connection, "PING")
        assert 0.1 <= time.monotonic() - began < 1


def test_proxy_cut_refuse_and_accept(proxy: Proxy):
    with connect(proxy.port) as connection:
        assert ask(connection, "PING")
        proxy.cut()
        assert ask(connection, "PING") == b""
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy.port)
    proxy.accept()
    with connect(proxy.port) as connection:
        assert ask(connection, "PING")


def test_proxy_black_hole(server: RealServer, proxy: Proxy, name: str):
    with connect(proxy.port) as connection:
        proxy.black_hole()
        connection.sendall(f"SET {name} 1\r\n".encode())
        until(proxy.client_reads)
        assert server.command("GET", name) is None
        proxy.restore()
        assert connection.recv(1024) == b"+OK\r\n"


def test_proxy_holds_answers_but_no_requests(server: RealServer, proxy: Proxy, name: str):
    with connect(proxy.port) as connection:
        proxy.hold_answers()
        connection.sendall(f"SET {name} 1\r\n".encode())
        until(lambda: server.command("GET", name) == "1")
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.recv(1024)
        connection.settimeout(PATIENCE)
        proxy.let_answers_go()
        assert connection.recv(1024) == b"+OK\r\n"


def test_proxy_cuts_before_and_after_apply(server: RealServer, proxy: Proxy, name: str):
    proxy.cut_before_apply(needle="set")
    with connect(proxy.port) as connection:
        assert ask(connection, "PING")
        assert ask(connection, f"SET {name} 1") == b""
    assert server.command("GET", name) is None
    proxy.cut_after_apply(2, needle="set")
    with connect(proxy.port) as connection:
        assert ask(connection, f"SET {name} 1") == b""
    assert server.command("GET", name) == "1"
    assert proxy.faults_left() == 1


def test_proxy_before_a_killed_server(servers, proxies):
    server = servers()
    proxy = proxies(server)
    server.kill()
    with connect(proxy.port) as connection:
        assert ask(connection, "PING") == b""


def test_errors_of_raw_commands_are_raised(server: RealServer):
    with pytest.raises(redis.ResponseError):
        server.command("NONSENSE")


def test_a_cluster_shares_the_slots(servers):
    cluster = Cluster(servers, password="secret")
    assert cluster.url.startswith("redis+cluster://:secret@127.0.0.1:")
    assert [cluster.primary(slot) for slot in (0, SLOTS // 2, SLOTS - 1)] == cluster.nodes
    assert cluster.command("a", "SET", "a", "1") == "OK"
    elsewhere = next(node for node in cluster.nodes if node is not cluster.at("a"))
    with pytest.raises(redis.exceptions.MovedError):
        elsewhere.command("GET", "a")


def test_a_slot_of_a_cluster_moves(servers):
    cluster = Cluster(servers)
    cluster.fill("full", 1_000)
    slot = cluster.slot("full")
    source, target = cluster.primary(slot), next(node for node in cluster.nodes if node is not cluster.at("full"))
    cluster.begin_move(slot, target)
    assert cluster.move_keys(slot, target, 400) == 400
    with pytest.raises(redis.exceptions.AskError):
        source.command("GET", "full")
    while cluster.move_keys(slot, target, 400):
        pass
    cluster.finish_move(slot, target)
    assert cluster.primary(slot) is target
    assert target.command("CLUSTER", "COUNTKEYSINSLOT", slot) == 1_000
    if cluster.moves_at_once:
        cluster.move_at_once(slot, source)
        assert source.command("CLUSTER", "COUNTKEYSINSLOT", slot) == 1_000


def test_a_cluster_fails_over(servers):
    cluster = Cluster(servers, replicas=1)
    primary = cluster.at("a")
    promoted = cluster.fail_over(primary)
    assert cluster.at("a") is promoted is not primary
    assert cluster.command("a", "SET", "a", "1") == "OK"
