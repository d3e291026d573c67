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
        raise _refused(redis, "a Redis Cluster isn't supported yet; name one server")
    pool = getattr(redis, "connection_pool", redis)
    if {"Sentinel", "SentinelConnectionPool"} & {*classes, *_classes(type(pool))}:
        raise _refused(redis, "Sentinel isn't supported yet; name one server")
    given = getattr(pool, "connection_kwargs", None)
    kind = getattr(pool, "connection_class", None)
    if not isinstance(given, dict) or not isinstance(kind, type):
        raise _refused(redis, "must be a redis-py client, or its connection pool")
    user, password = _credentials(redis, given)
    database = int(given.get("db") or 0)
    if "UnixDomainSocketConnection" in _classes(kind):
        query = [f"db={database}"]
        query += [f"{key}={quote(value, safe='')}" for key, value in (("user", user), ("pass", password)) if value]
        return f"unix://{quote(given['path'])}?{'&'.join(query)}", {}
    tls = "SSLConnection" in _classes(kind)
    host = str(given.get("host") or "localhost")
    place = f"[{host}]" if ":" in host else host
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""
    url = f"{'rediss' if tls else 'redis'}://{login}{place}:{int(given.get('port') or 6379)}/{database}"
    return url, _tls(redis, given) if tls else {}


def instead_of(server: Any) -> str | None:
    """What to write instead of giving a client of another library as a server; ``None`` if it isn't one."""
    names = _classes(type(server))
    if any(name.endswith("Cluster") for name in names):
        return "a Redis Cluster isn't supported yet; name one server by its URL"
    if "Sentinel" in names:
        return "Sentinel isn't supported yet; name one server by its URL"
    if hasattr(server, "connection_pool") or "ConnectionPool" in names:
        return "is another library's client: for its server write Client.from_redis(client), for several give their URLs"
    return None


def _credentials(redis: Any, given: dict[str, Any]) -> tuple[str, str]:
    provider = given.get("credential_provider")
    if provider is None:
        return _text(given.get("username")), _text(given.get("password"))
    if type(provider).__name__ != "UsernamePasswordCredentialProvider":
        raise _refused(redis, "its credential provider can't be followed: passwords that change need a client for each")
    found = [_text(part) for part in provider.get_credentials()]
    return ("", found[0]) if len(found) == 1 else (found[0], found[1])


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
