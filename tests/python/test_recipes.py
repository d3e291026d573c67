"""The recipes of docs/guarantees.md, unchanged: a resource refuses the writes of an older holder."""

import io
import itertools
import sqlite3
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from locktender import Client
from support.page import Page
from support.server import RealServer

RECIPES = Page("docs/guarantees.md").recipes()


def test_every_recipe_has_a_test() -> None:
    assert set(RECIPES) == {
        "sql-schema",
        "sql-write",
        "sql-first-write",
        "sql-claim",
        "sql-python",
        "redis-write",
        "redis-claim",
        "object-store",
    }


class Fences(NamedTuple):
    """The fences of two holders, one after the other."""

    older: int
    newer: int


@pytest.fixture
def fences(server: RealServer, name: str) -> Fences:
    """Two holds of one lock: the first lost its key, as a paused holder does, and the second got it."""
    with Client(server.url) as client:
        paused = client.lock(name, renew=False).acquire()
        server.command("DEL", name)
        with client.lock(name).acquire() as successor:
            fences = Fences(paused.fence, successor.fence)
            assert paused.release().outcome == "taken"
    assert fences.older < fences.newer
    return fences


# SQL


class Orders:
    """A table with the recipes' statements."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute(RECIPES["sql-schema"])
        python: dict[str, Any] = {}
        exec(RECIPES["sql-python"], python)
        self.execute: Callable[..., None] = python["execute"]
        self.stale: type[Exception] = python["StaleFence"]

    def do(self, recipe: str, **values: object) -> None:
        self.execute(self.db, RECIPES[recipe], id="42", **values)

    def refuses(self, recipe: str, **values: object) -> bool:
        try:
            self.do(recipe, **values)
        except self.stale:
            return True
        return False

    def row(self) -> tuple[str, int]:
        row: tuple[str, int] = self.db.execute("SELECT state, fence FROM orders WHERE id = '42'").fetchone()
        return row


@pytest.fixture
def orders() -> Iterator[Orders]:
    orders = Orders()
    yield orders
    orders.db.close()


def test_sql_refuses_a_late_write(orders: Orders, fences: Fences) -> None:
    orders.do("sql-first-write", state="new", fence=fences.older)
    orders.do("sql-write", state="paid", fence=fences.newer)
    assert orders.refuses("sql-write", state="late", fence=fences.older)
    assert orders.row() == ("paid", fences.newer)


def test_sql_lets_one_holder_write_more_than_once(orders: Orders, fences: Fences) -> None:
    orders.do("sql-first-write", state="new", fence=fences.newer)
    orders.do("sql-write", state="paid", fence=fences.newer)
    orders.do("sql-first-write", state="sent", fence=fences.newer)
    assert orders.row() == ("sent", fences.newer)


def test_sql_refuses_a_late_first_write(orders: Orders, fences: Fences) -> None:
    orders.do("sql-first-write", state="paid", fence=fences.newer)
    assert orders.refuses("sql-first-write", state="late", fence=fences.older)
    assert orders.row() == ("paid", fences.newer)


def test_sql_refuses_a_write_behind_a_claim(orders: Orders, fences: Fences) -> None:
    orders.do("sql-first-write", state="new", fence=fences.older)
    orders.do("sql-claim", fence=fences.newer)
    assert orders.refuses("sql-write", state="late", fence=fences.older)
    assert orders.refuses("sql-claim", fence=fences.older)
    assert orders.row() == ("new", fences.newer)


# Redis


class Data:
    """A value with its fence on the server, changed by the recipes' scripts."""

    def __init__(self, server: RealServer, name: str) -> None:
        self._server = server
        self._keys = (f"{{{name}}}:data", f"{{{name}}}:data:fence")

    def do(self, recipe: str, *arguments: str | int) -> bool:
        done: int = self._server.command("EVAL", RECIPES[recipe], 2, *self._keys, *arguments)
        return done == 1

    def read(self) -> list[str | None]:
        read: list[str | None] = self._server.command("MGET", *self._keys)
        return read


@pytest.fixture
def data(server: RealServer, name: str) -> Data:
    return Data(server, name)


def test_redis_refuses_a_late_write(data: Data, fences: Fences) -> None:
    assert data.do("redis-write", fences.older, "new")
    assert data.do("redis-write", fences.newer, "paid")
    assert not data.do("redis-write", fences.older, "late")
    assert data.read() == ["paid", str(fences.newer)]


def test_redis_lets_one_holder_write_more_than_once(data: Data, fences: Fences) -> None:
    assert data.do("redis-write", fences.newer, "paid")
    assert data.do("redis-write", fences.newer, "sent")
    assert data.read() == ["sent", str(fences.newer)]


def test_redis_refuses_a_write_behind_a_claim(data: Data, fences: Fences) -> None:
    assert data.do("redis-claim", fences.newer)
    assert not data.do("redis-write", fences.older, "late")
    assert not data.do("redis-claim", fences.older)
    assert data.read() == [None, str(fences.newer)]


def test_redis_tells_the_largest_fences_apart(data: Data) -> None:
    largest = 2**53 - 1
    assert data.do("redis-write", largest, "paid")
    assert not data.do("redis-write", largest - 1, "late")
    assert data.read() == ["paid", str(largest)]


# Object store


class RefusedError(Exception):
    """The part of botocore's ClientError that the recipe looks at."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


class Bucket:
    """An object store with conditional writes whose ETag is a hash of the content alone."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.between: Iterator[Callable[[], None]] = iter(())

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        if Key not in self.objects:
            raise RefusedError("NoSuchKey")
        body = self.objects[Key]
        return {"Body": io.BytesIO(body), "ETag": str(hash(body))}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, IfMatch: str | None = None, IfNoneMatch: str | None = None) -> None:  # noqa: N803
        assert (IfMatch is None) != (IfNoneMatch is None), "every write is conditional"
        for interrupt in itertools.islice(self.between, 1):
            interrupt()
        if IfNoneMatch == "*" and Key in self.objects:
            raise RefusedError("PreconditionFailed")
        if IfMatch and Key not in self.objects:
            raise RefusedError("NoSuchKey")
        if IfMatch and str(hash(self.objects[Key])) != IfMatch:
            raise RefusedError("PreconditionFailed")
        self.objects[Key] = Body


class Store:
    """The recipe, on such a bucket."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        botocore = types.ModuleType("botocore.exceptions")
        botocore.ClientError = RefusedError  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "botocore", types.ModuleType("botocore"))
        monkeypatch.setitem(sys.modules, "botocore.exceptions", botocore)
        python: dict[str, Any] = {}
        exec(RECIPES["object-store"], python)
        self.bucket = Bucket()
        self.stale: type[Exception] = python["StaleFence"]
        self._write: Callable[..., None] = python["write"]
        self._read: Callable[..., tuple[int, bytes, str]] = python["read"]

    def write(self, data: bytes, fence: int) -> None:
        self._write(self.bucket, "bucket", "orders/42", data, fence)

    def read(self) -> tuple[int, bytes]:
        fence, data, _ = self._read(self.bucket, "bucket", "orders/42")
        return fence, data


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


def test_object_store_refuses_a_late_write(store: Store, fences: Fences) -> None:
    store.write(b"new", fences.older)
    store.write(b"paid\nin full", fences.newer)
    with pytest.raises(store.stale):
        store.write(b"late", fences.older)
    assert store.read() == (fences.newer, b"paid\nin full")


@pytest.mark.parametrize("before", [None, b"same"], ids=["first write", "same content"])
def test_object_store_refuses_a_write_that_another_overtook(store: Store, fences: Fences, before: bytes | None) -> None:
    if before is not None:
        store.write(before, fences.older)
    store.bucket.between = iter([lambda: store.write(b"same", fences.newer)])
    with pytest.raises(store.stale):
        store.write(b"late", fences.older)
    assert store.read() == (fences.newer, b"same")
