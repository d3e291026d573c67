"""Reads where and how a redis-py client connects, from its connection pool.

Known by the names of classes, not by importing redis: valkey-py, a fork, has the same ones.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .errors import InvalidArgumentError

_TLS_FILES = {"ssl_ca_certs": "tls_ca", "ssl_certfile": "tls_cert", "ssl_keyfile": "tls_key"}
_TLS_UNKNOWN = ("ssl_ca_path", "ssl_ca_data", "ssl_password", "ssl_ciphers")


def settings(redis: Any) -> tuple[str, dict[str, Any]]:
    """The URL of what the client (or the pool) connects to, and the options of ``Client`` it amounts to."""
    classes = _classes(type(redis))
    if any(name.endswith("Cluster") for name in classes):
        return _cluster(redis)
    if "Sentinel" in classes:
        raise _refused(redis, "this asks sentinels for any service; give the client of one, sentinel.master_for(service)")
    pool = getattr(redis, "connection_pool", redis)
    given = getattr(pool, "connection_kwargs", None)
    kind = getattr(pool, "connection_class", None)
    if not isinstance(given, dict) or not isinstance(kind, type):
        raise _refused(redis, "must be a redis-py client, or its connection pool")
    user, password = _credentials(redis, given)
    provided = _provided(given, kind)
    database = int(given.get("db") or 0)
    if "UnixDomainSocketConnection" in _classes(kind):
        query = [f"db={database}"]
        query += [f"{key}={quote(value, safe='')}" for key, value in (("user", user), ("pass", password)) if value]
        return f"unix://{quote(given['path'])}?{'&'.join(query)}", provided
    tls = "SSLConnection" in _classes(kind)
    login = _login(user, password)
    scheme, options = ("rediss", _tls(redis, given)) if tls else ("redis", {})
    if "SentinelConnectionPool" in _classes(type(pool)):
        hosts, for_sentinels, more = _sentinels(redis, pool)
        if tls and more is not None and more != options:
            raise _refused(redis, "its primary and its sentinels have other TLS files, and a client here has one set for both")
        service = quote(str(pool.service_name), safe="")
        return f"{scheme}+sentinel://{login}{hosts}/{service}/{database}?{for_sentinels}", {**options, **(more or {}), **provided}
    return f"{scheme}://{login}{_place(given, 6379)}/{database}", {**options, **provided}


def instead_of(server: Any) -> str | None:
    """What to write instead of giving a client of another library as a server; ``None`` if it isn't one."""
    names = _classes(type(server))
    if any(name.endswith("Cluster") for name in names):
        return "is another library's cluster: write Client.from_redis(cluster), or redis+cluster://host,host"
    if "Sentinel" in names:
        return "is another library's Sentinel: write Client.from_redis(sentinel.master_for(service)), or redis+sentinel://host,host/service"
    if hasattr(server, "connection_pool") or "ConnectionPool" in names:
        return "is another library's client: for its server write Client.from_redis(client), for several give their URLs"
    return None


def _cluster(redis: Any) -> tuple[str, dict[str, Any]]:
    """The same for a client of a cluster. Its nodes are those that it was given; the cluster names the others."""
    manager: Any = getattr(redis, "nodes_manager", None)
    given = getattr(manager, "connection_kwargs", None)
    if not isinstance(given, dict):
        raise _refused(redis, "it has no nodes yet: make it in full before")
    if getattr(manager, "address_remap", None):
        raise _refused(redis, "its function address_remap can't be copied: give Client the URL redis+cluster://host and the option address_map")
    nodes = getattr(redis, "startup_nodes", None) or manager.startup_nodes.values()
    hosts = dict.fromkeys(_place({"host": node.host, "port": node.port}, 6379) for node in nodes)
    if not hosts:
        raise _refused(redis, "it has no nodes")
    tls = given.get("ssl") or "SSLConnection" in _classes(given.get("connection_class", object))
    login = _login(*_credentials(redis, given))
    options = _tls(redis, given) if tls else {}
    return f"{'rediss' if tls else 'redis'}+cluster://{login}{','.join(hosts)}", {**options, **_provided(given, type(redis))}


def _sentinels(redis: Any, pool: Any) -> tuple[str, str, dict[str, Any] | None]:
    """The hosts of the sentinels, the part of a URL that is for them, and the TLS files if they speak TLS."""
    manager = pool.sentinel_manager
    if not pool.is_master:
        raise _refused(redis, "this is for replicas, and locks are on the primary: give sentinel.master_for(service)")
    if getattr(manager, "_force_master_ip", None):
        raise _refused(redis, "its force_master_ip has no counterpart: the sentinels have to announce an address that leads there")
    pools = [each.connection_pool for each in manager.sentinels]
    if not pools:
        raise _refused(redis, "it has no sentinels")
    first = pools[0]
    if _changes(first.connection_kwargs):
        raise _refused(redis, "the credential provider of its sentinels can't be followed: their password is a part of the URL")
    user, password = _credentials(redis, first.connection_kwargs)
    tls = "SSLConnection" in _classes(first.connection_class)
    query = f"sentinel_tls={'yes' if tls else 'no'}"
    if user:
        query += f"&sentinel_user={quote(user, safe='')}"
    if user or password:
        query += f"&sentinel_password={quote(password, safe='')}"
    hosts = ",".join(dict.fromkeys(_place(each.connection_kwargs, 26379) for each in pools))
    return hosts, query, _tls(redis, first.connection_kwargs) if tls else None


def _login(user: str, password: str) -> str:
    return f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""


def _place(given: dict[str, Any], port: int) -> str:
    host = str(given.get("host") or "localhost")
    return f"{f'[{host}]' if ':' in host else host}:{int(given.get('port') or port)}"


def _credentials(redis: Any, given: dict[str, Any]) -> tuple[str, str]:
    if _changes(given):
        return "", ""
    provider = given.get("credential_provider")
    if provider is None:
        return _text(given.get("username")), _text(given.get("password"))
    return _pair(provider.get_credentials())


def _changes(given: dict[str, Any]) -> bool:
    """Whether a provider gives credentials that may change."""
    provider = given.get("credential_provider")
    return provider is not None and type(provider).__name__ != "UsernamePasswordCredentialProvider"


def _provided(given: dict[str, Any], kind: type) -> dict[str, Any]:
    """The option of ``Client`` for the provider of a client, if it has one. Under asyncio only the other method may work."""
    if not _changes(given):
        return {}
    provider = given["credential_provider"]
    if ".asyncio." not in kind.__module__ or not hasattr(provider, "get_credentials_async"):
        return {"credentials": lambda: _pair(provider.get_credentials())}

    async def credentials() -> tuple[str, str]:
        return _pair(await provider.get_credentials_async())

    return {"credentials": credentials}


def _pair(found: Any) -> tuple[str, str]:
    """The user and the password of a provider's answer."""
    parts = [_text(part) for part in found]
    return ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _tls(redis: Any, given: dict[str, Any]) -> dict[str, Any]:
    # An enum, a number or a text, depending on the version: CERT_NONE is 0.
    checked = given.get("ssl_cert_reqs", "required")
    if checked is None or checked == 0 or str(checked).lower().endswith("none"):
        raise _refused(redis, "it doesn't check certificates (ssl_cert_reqs), and locktender always does")
    for option in _TLS_UNKNOWN:
        if given.get(option) is not None:
            raise _refused(redis, f"its option {option} has no counterpart; tls_ca, tls_cert and tls_key are files")
    return {ours: given[theirs] for theirs, ours in _TLS_FILES.items() if given.get(theirs) is not None}


def _classes(kind: type) -> list[str]:
    return [each.__name__ for each in kind.__mro__]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")


def _refused(redis: Any, why: str) -> InvalidArgumentError:
    # Its type only: what it prints like may have a password in it.
    return InvalidArgumentError(f"redis: {why}, got {type(redis).__module__}.{type(redis).__qualname__}")
