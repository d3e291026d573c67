"""Clients made of redis-py's."""

import asyncio
import inspect
import ssl
from contextlib import ExitStack, closing

import pytest
import redis
import redis.asyncio
from locktender import Client, DeniedError, InvalidArgumentError, _redis_py, configure
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.credentials import CredentialProvider, UsernamePasswordCredentialProvider
from redis.sentinel import Sentinel
from support.checkout import certificate
from support.cluster import Cluster
from support.observe import until
from support.sentinel import Watched
from support.server import RealServer, owner_of


def holds(ours: Client, theirs: redis.Redis, name: str) -> bool:
    """Whether a lock of `ours` is a key of `theirs`."""
    with ours, ours.lock(name) as held:
        return owner_of(theirs.get(name).decode()) == held.owner


@pytest.mark.parametrize("flavour", [redis.Redis, redis.asyncio.Redis])
def test_address_credentials_and_database(servers, name, flavour):
    server = servers(password="se@cret/:%")
    for database in (0, 3):
        theirs = redis.Redis("127.0.0.1", server.port, database, password="se@cret/:%")
        given = flavour(host="127.0.0.1", port=server.port, db=database, password="se@cret/:%")
        assert holds(Client.from_redis(given), theirs, name)
        theirs.close()


def test_a_user_of_an_acl(servers, name):
    server = servers()
    server.command("ACL", "SETUSER", "wörker", "on", ">p w", "~*", "&*", "+@all")
    for login in (
        {"username": "wörker", "password": "p w"},
        {"credential_provider": UsernamePasswordCredentialProvider("wörker", "p w")},
    ):
        with redis.Redis(port=server.port, **login) as theirs:
            assert holds(Client.from_redis(theirs), theirs, name)
            theirs.ping()
            assert "wörker" in {each["user"] for each in theirs.client_list()}


@pytest.mark.parametrize("flavour", [redis, redis.asyncio])
def test_unix_sockets_and_pools(servers, name, flavour):
    server = servers(password="p&w")
    path = server.unix_url.removeprefix("unix://").partition("?")[0]
    pools = [
        flavour.ConnectionPool.from_url(f"unix://:p%26w@{path}?db=2"),
        flavour.BlockingConnectionPool(connection_class=flavour.UnixDomainSocketConnection, path=path, db=2, password="p&w"),
    ]
    with redis.Redis(unix_socket_path=path, db=2, password="p&w") as theirs:
        for pool in pools:
            assert holds(Client.from_redis(pool), theirs, name)
            assert holds(Client.from_redis(flavour.Redis(connection_pool=pool)), theirs, name)


@pytest.mark.parametrize("flavour", [redis.Redis, redis.asyncio.Redis])
def test_tls(servers, name, flavour):
    server = servers(tls="server", mutual=True)
    files = {
        "ssl_ca_certs": str(certificate("ca.pem")),
        "ssl_certfile": str(certificate("client.pem")),
        "ssl_keyfile": str(certificate("client.key")),
    }
    port = int(server.url.rpartition(":")[2])
    theirs = flavour(host="127.0.0.1", port=port, ssl=True, **files)
    with Client.from_redis(theirs) as client, client.lock(name) as held:
        assert held.is_valid()
    for checks in (None, "none", ssl.CERT_NONE):
        with pytest.raises(InvalidArgumentError, match="ssl_cert_reqs"):
            Client.from_redis(flavour(port=port, ssl=True, ssl_cert_reqs=checks, ssl_check_hostname=False))
    with pytest.raises(InvalidArgumentError, match="ssl_ca_data"):
        Client.from_redis(flavour(port=port, ssl=True, ssl_ca_data="-----BEGIN"))


def test_options_are_those_of_a_client(server: RealServer, name):
    theirs = redis.Redis.from_url(server.url)
    with Client.from_redis(theirs, prefix="of-redis:", ttl=4) as client, client.lock(name) as held:
        assert owner_of(theirs.get(f"of-redis:{name}").decode()) == held.owner
        assert held.remaining() <= 4
    with pytest.raises(InvalidArgumentError, match="tll"):
        Client.from_redis(theirs, tll=4)
    theirs.close()


def test_help_shows_the_same_options_everywhere():
    ours, copied, default = (list(inspect.signature(each).parameters) for each in (Client, Client.from_redis, configure))
    assert ours[1:] == copied[1:] == default[1:]


def test_nothing_but_the_settings_is_shared(server: RealServer, name):
    async def main():
        theirs = redis.asyncio.Redis.from_url(server.url)
        async with Client.from_redis(theirs) as client:
            await theirs.aclose()
            async with client.lock(name) as held:
                assert held.is_valid()

    asyncio.run(main())


@pytest.mark.parametrize("flavour", [Sentinel, AsyncSentinel])
def test_a_service_of_sentinel_with_its_credentials_and_database(servers, name, flavour):
    node = servers(password="se@cret/:%")
    watch = [f"sentinel monitor main 127.0.0.1 {node.port} 1", "sentinel auth-pass main se@cret/:%"]
    sentinel = servers(sentinel=True, password="o+ther&", config=watch)
    theirs = redis.Redis("127.0.0.1", node.port, 3, password="se@cret/:%")
    hosts = [("127.0.0.1", sentinel.port), ("127.0.0.1", 1)]
    for login in ({"password": "o+ther&"}, {"username": "default", "password": "o+ther&"}):
        manager = flavour(hosts, sentinel_kwargs=login, password="se@cret/:%")
        assert holds(Client.from_redis(manager.master_for("main", db=3)), theirs, name)
    with pytest.raises(DeniedError, match="sentinel_password"):
        Client.from_redis(flavour(hosts[:1], password="se@cret/:%").master_for("main")).lock(name).acquire()
    theirs.close()


@pytest.mark.parametrize("flavour", [Sentinel, AsyncSentinel])
def test_a_failover_of_sentinel_is_followed(servers, name, flavour):
    watched = Watched(servers, password="secret", sentinel_password="other")
    manager = flavour(watched.hosts, sentinel_kwargs={"password": "other"}, password="secret")
    with Client.from_redis(manager.master_for("main")) as client:
        held = client.lock(name, ttl=60).acquire()
        until(lambda: watched.replica.holder(name) == held.owner)
        watched.fail_over()
        held.extend(60)
        assert watched.replica.holder(name) == held.owner


@pytest.mark.parametrize("flavour", [Sentinel, AsyncSentinel])
def test_tls_of_a_service_of_sentinel(flavour):
    files = {"ssl_ca_certs": str(certificate("ca.pem"))}
    hosts = [("s1.invalid", 1), ("::1", 2)]

    def settings(sentinels, **options):
        return _redis_py.settings(flavour(hosts, sentinel_kwargs=sentinels, **options).master_for("a b"))

    both = {"ssl": True, **files}
    place = "s1.invalid:1,[::1]:2/a%20b/0?sentinel_tls="
    assert settings({}) == (f"redis+sentinel://{place}no", {})
    assert settings({}, **both) == (f"rediss+sentinel://{place}no", {"tls_ca": files["ssl_ca_certs"]})
    assert settings(both) == (f"redis+sentinel://{place}yes", {"tls_ca": files["ssl_ca_certs"]})
    assert settings(both, **both) == (f"rediss+sentinel://{place}yes", {"tls_ca": files["ssl_ca_certs"]})
    with pytest.raises(InvalidArgumentError, match="other TLS files"):
        settings({"ssl": True}, **both)


def test_sentinels_without_a_service_and_replicas_are_refused_clearly():
    sentinels = [("127.0.0.1", 1)]
    for sentinel in (Sentinel(sentinels), AsyncSentinel(sentinels)):
        for given, why in ((sentinel, r"sentinel.master_for\(service\)"), (sentinel.slave_for("main"), "this is for replicas")):
            with pytest.raises(InvalidArgumentError, match=why):
                Client.from_redis(given)
    for flavour in (Sentinel, AsyncSentinel):
        with pytest.raises(InvalidArgumentError, match="it has no sentinels"):
            Client.from_redis(flavour([]).master_for("main"))


@pytest.fixture(scope="module")
def cluster():
    with ExitStack() as stack:
        yield Cluster(lambda **options: stack.enter_context(RealServer(**options)), password="se@cret/:%")


def test_a_cluster_with_its_credentials(cluster: Cluster, name):
    host, port = cluster.hosts[0]
    login = {"password": "se@cret/:%"}
    nodes = [redis.cluster.ClusterNode(*place) for place in cluster.hosts]
    with closing(redis.RedisCluster(host=host, port=port, **login)) as theirs:
        others = [redis.RedisCluster(startup_nodes=nodes, **login), redis.RedisCluster.from_url(f"redis://:se%40cret%2F%3A%25@{host}:{port}")]
        for given in (theirs, *others, redis.asyncio.RedisCluster(host=host, port=port, **login)):
            for key in range(6):
                assert holds(Client.from_redis(given), theirs, f"{name}:{key}")
        for given in others:
            given.close()


def test_a_credential_provider_of_a_cluster_is_followed(cluster: Cluster, name):
    host, port = cluster.hosts[0]
    given = redis.asyncio.RedisCluster(host=host, port=port, credential_provider=RotatingAsync("old", "se@cret/:%", user=""))
    with Client.from_redis(given) as client, client.lock(name) as held:
        assert owner_of(cluster.command(name, "GET", name)) == held.owner


def test_the_url_and_the_options_of_a_cluster():
    files = {"ssl_ca_certs": str(certificate("ca.pem"))}
    given = redis.asyncio.RedisCluster(host="a.invalid", port=1, ssl=True, username="u", password="p@", **files)
    assert _redis_py.settings(given) == ("rediss+cluster://u:p%40@a.invalid:1", {"tls_ca": files["ssl_ca_certs"]})
    nodes = [redis.asyncio.cluster.ClusterNode("::1", 7000), redis.asyncio.cluster.ClusterNode("b.invalid", 6379)]
    assert _redis_py.settings(redis.asyncio.RedisCluster(startup_nodes=nodes)) == ("redis+cluster://[::1]:7000,b.invalid:6379", {})


def test_what_of_a_cluster_cannot_be_copied_is_refused():
    unfinished = redis.RedisCluster.__new__(redis.RedisCluster)  # a real one connects at once
    mapped = redis.asyncio.RedisCluster(host="127.0.0.1", port=1, password="secret", address_remap=lambda place: place)
    unchecked = redis.asyncio.RedisCluster(host="127.0.0.1", port=1, password="secret", ssl=True, ssl_cert_reqs="none")
    for given, why in ((unfinished, "no nodes yet"), (mapped, "address_map"), (unchecked, "ssl_cert_reqs")):
        with pytest.raises(InvalidArgumentError, match=why) as caught:
            Client.from_redis(given)
        assert "secret" not in str(caught.value)


class Rotating(CredentialProvider):
    """Gives the passwords of a list, one after the other, and then the last one again."""

    def __init__(self, *passwords, user="ann"):
        self.user, self.passwords = user, list(passwords)

    def get_credentials(self):
        password = self.passwords.pop(0) if len(self.passwords) > 1 else self.passwords[0]
        return (self.user, password) if self.user else (password,)


class RotatingAsync(Rotating):
    def get_credentials(self):
        raise AssertionError("under asyncio the other one is asked")

    async def get_credentials_async(self):
        return super().get_credentials()


@pytest.mark.parametrize("user", ["ann", ""])
@pytest.mark.parametrize(("flavour", "provider"), [(redis, Rotating), (redis.asyncio, RotatingAsync)])
def test_a_credential_provider_is_followed(servers, name, flavour, provider, user):
    server = servers(users={"ann": ("new", "~* &* +@all")}, password="new")
    r = flavour.Redis(port=server.port, credential_provider=provider("old", "new", user=user))
    with Client.from_redis(r) as client, client.lock(name) as held:
        assert server.holder(name) == held.owner


def test_a_credential_provider_of_sentinels_is_refused():
    sentinel = redis.sentinel.Sentinel([("127.0.0.1", 1)], sentinel_kwargs={"credential_provider": Rotating("old")})
    with pytest.raises(InvalidArgumentError, match="credential provider of its sentinels"):
        Client.from_redis(sentinel.master_for("main"))


def test_what_is_no_client_is_refused_without_showing_it():
    for given in ("redis://:secret@localhost", 7, None, object()):
        with pytest.raises(InvalidArgumentError, match="must be a redis-py client") as caught:
            Client.from_redis(given)
        assert "secret" not in str(caught.value)


def test_redis_is_not_imported():
    import subprocess
    import sys

    program = "import sys, locktender; assert not {'redis', 'asyncio'} & set(sys.modules), sorted(sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis, redis.ConnectionPool, redis.asyncio.ConnectionPool])
def test_a_redis_client_in_place_of_a_url_names_from_redis(kind):
    for given in (kind(), [kind()], ["redis://localhost", kind()]):
        with pytest.raises(InvalidArgumentError, match=r"write Client.from_redis\(client\)"):
            Client(given)
        with pytest.raises(InvalidArgumentError, match=r"write Client.from_redis\(client\)"):
            configure(given)


def test_a_cluster_or_sentinel_in_place_of_a_url_is_refused_clearly():
    cluster = type("RedisCluster", (), {})()
    for given, why in ((Sentinel([]), r"Client.from_redis\(sentinel.master_for\(service\)\)"), (cluster, r"Client.from_redis\(cluster\)")):
        with pytest.raises(InvalidArgumentError, match=why):
            Client(given)
