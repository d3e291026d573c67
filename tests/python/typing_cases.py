"""Typing cases: users' code for `mypy --strict` (see test_types.py). It never runs."""

import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from locktender import (
    AsyncHold,
    Client,
    Credentials,
    LockEvent,
    Hold,
    Lock,
    LockInfo,
    LockLostError,
    Loss,
    TryOutcome,
    Release,
    UnavailableError,
    configure,
    lock,
)
from locktender.testing import Clock, ScriptedServer
from typing_extensions import assert_type

client = Client("redis://localhost", ttl=timedelta(seconds=10), wait=math.inf, tls_ca=Path("ca.pem"), on_event=print)
Client(["redis://a", "redis://b", ScriptedServer("acquire: busy")])
Client(credentials=lambda: "token")
Client(credentials=lambda: ("ann", "token"))


def token(server: str) -> Credentials:
    return Credentials(server, user="ann", expires_in=timedelta(minutes=15))


async def token_async() -> Credentials:
    return Credentials("token", expires_in=900)


Client(credentials=token, tls_name="db.example", address_map={"10.0.0.1:6379": "localhost:7001"})
Client(credentials=token_async)
configure("redis://localhost", prefix="p:", app="billing")


def blocking() -> None:
    with client, client.lock("orders:42", ttl=10, wait=5.5, renew=False, max_hold=60) as held:
        assert_type(held, Hold)
        assert_type(held.fence, int)
        assert_type(held.remaining(), float)
        assert_type(held.wait_lost(1), Loss | None)
        assert_type(held.release(), Release)
        assert_type(held.hand_over(), str)
        held.extend(5)
        held.extend(by=timedelta(seconds=1))
    if maybe := client.lock("nightly").try_acquire():
        with maybe:
            pass
    assert_type(client.lock("a"), Lock)
    assert_type(client.lock("a").inspect(), LockInfo | None)
    assert_type(client.adopt("ticket", ttl=5, or_acquire=True), Hold)


async def awaiting() -> None:
    async with client, client.lock("orders:42", on_lost="continue") as held:
        assert_type(held, AsyncHold)
        assert_type(await held.release(), Release)
        assert_type(await held.wait_lost(), Loss | None)
    assert_type(await client.lock("a").acquire_async(), AsyncHold)
    assert_type(await client.lock("a").try_acquire_async(), AsyncHold | None)
    async with await client.adopt_async("ticket") as adopted:
        assert_type(adopted, AsyncHold)


@lock("user:{user_id}", wait=2)
def charge(user_id: int, *, amount: float = 0.0) -> str:
    return f"{user_id}: {amount}"


def name_of(user_id: int) -> str:
    return f"user:{user_id}"


@lock(name_of)
async def charge_async(user_id: int) -> str:
    return str(user_id)


@client.lock("nightly").skip_if_busy
def nightly(day: int) -> str:
    return str(day)


@client.lock("nightly").skip_if_busy
async def nightly_async(day: int) -> str:
    return str(day)


@client.lock("nightly").try_run
def tried(day: int) -> str:
    return str(day)


@client.lock("nightly").try_run
async def tried_async(day: int) -> str:
    return str(day)


async def skipping() -> None:
    assert_type(tried(day=7), TryOutcome[str])
    assert_type((await tried_async(7)).result, str | None)
    assert_type(nightly(day=7), str | None)
    assert_type(await nightly_async(7), str | None)
    nightly("seven")  # type: ignore[arg-type]


def copied(redis: object) -> None:
    assert_type(Client.from_redis(redis, ttl=5), Client)
    Client.from_redis(redis, tll=5)  # type: ignore[call-arg]


def decorated() -> None:
    assert_type(charge(7, amount=1.0), str)
    taking: Callable[[int], Awaitable[str]] = charge_async
    assert taking is charge_async
    charge("seven")  # type: ignore[arg-type]
    charge(user=7)  # type: ignore[call-arg]


def refused() -> None:
    client.lock("a", tll=5)  # type: ignore[call-arg]
    client.lock("a", ttl="5")  # type: ignore[arg-type]
    client.lock(7)  # type: ignore[arg-type]
    client.lock("a", on_lost="explode")  # type: ignore[arg-type]


def testing() -> None:
    with Clock() as clock:
        clock.advance(30)
        clock.advance(timedelta(hours=1))
        clock.advance("30")  # type: ignore[arg-type]


def watching(event: LockEvent) -> None:
    if event.kind == "lost":
        assert_type(event.reason, str | None)


def failing() -> None:
    try:
        blocking()
    except LockLostError as lost:
        assert_type(lost.next_fence, int | None)
        assert_type(lost.overrun, float)
        assert_type(lost.next_owner, str | None)
    except UnavailableError as unavailable:
        assert_type(unavailable.servers[0].kind, str)
