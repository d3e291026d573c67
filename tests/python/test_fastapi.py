"""The FastAPI example: what a customer who hangs up is charged, and what becomes of the lock."""

import asyncio
import importlib.util
from types import ModuleType
from typing import Any

import pytest
from locktender import Client
from support.checkout import ROOT
from support.observe import PATIENCE
from support.server import RealServer


@pytest.fixture
def example(server: RealServer, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("LOCKTENDER_URL", server.url)
    found = importlib.util.spec_from_file_location("fastapi_orders", ROOT / "examples/python/fastapi_orders.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class Customer:
    """A request that an ASGI server passes on, and the end of its connection."""

    def __init__(self, app: Any, path: str) -> None:
        self._hung_up = asyncio.Event()
        self._unread = [{"type": "http.request", "body": b"", "more_body": False}]
        self._said: list[dict[str, Any]] = []
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"}
        scope |= {"path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"", "headers": []}
        self._answer = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._unread:
            return self._unread.pop()
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self._said.append(message)

    def hang_up(self) -> None:
        self._hung_up.set()

    async def status(self) -> int:
        await asyncio.wait_for(self._answer, PATIENCE)
        return self._said[0]["status"]


def test_who_hangs_up_while_waiting_is_not_charged(server, example, monkeypatch):
    charged: list[int] = []

    async def charge(order: int) -> None:
        charged.append(order)

    async def main() -> None:
        async with example.lifespan(example.app), Client(server.url) as other:
            lock = other.lock("example:order:7")
            async with lock:
                customer = Customer(example.app, "/orders/7/pay")
                while not (info := await lock.inspect_async()) or not info.waiters:
                    await asyncio.sleep(0.005)
                customer.hang_up()
                assert await customer.status() == 499
            assert not charged
            assert await Customer(example.app, "/orders/7/pay").status() == 200

    monkeypatch.setattr(example, "charge", charge)
    asyncio.run(main())
    assert charged == [7]


def test_who_hangs_up_while_paying_calls_the_payment_off_and_frees_the_lock(server, example, monkeypatch):
    paying, ends = asyncio.Event(), []

    async def charge(order: int) -> None:
        paying.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("called off")
            raise

    async def main() -> None:
        async with example.lifespan(example.app), Client(server.url) as other:
            customer = Customer(example.app, "/orders/8/pay")
            await asyncio.wait_for(paying.wait(), PATIENCE)
            customer.hang_up()
            assert await customer.status() == 499
            assert await other.lock("example:order:8").inspect_async() is None

    monkeypatch.setattr(example, "charge", charge)
    asyncio.run(main())
    assert ends == ["called off"]
