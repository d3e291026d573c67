"""A FastAPI service with one payment at a time for each order: `uvicorn fastapi_orders:app`, or run this file for two requests.

A request that has waited for 5 s gets 409. If no server answers, it gets 503. Who hangs up is not charged.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request
from locktender import AcquireTimeoutError, Client, UnavailableError


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Client() as client:  # LOCKTENDER_URL; one client for the whole process
        app.state.locks = client
        yield


app = FastAPI(lifespan=lifespan)


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancels its body if the client closes the connection. FastAPI itself would continue."""
    body = asyncio.current_task()
    assert body is not None

    async def watch() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(0.1)
        body.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not watching.done():
            raise  # another cancellation
        raise HTTPException(499, "the client hung up") from None
    finally:
        watching.cancel()


@app.post("/orders/{order}/pay")
async def pay(order: int, request: Request) -> dict[str, int]:
    try:
        # Who hangs up cancels the wait, or the payment. A lost lock cancels the payment.
        async with while_connected(request), request.app.state.locks.lock(f"example:order:{order}", wait=5) as hold:
            await charge(order)
            return {"order": order, "fence": hold.fence}
    except AcquireTimeoutError as busy:
        raise HTTPException(409, "this order is being paid", {"Retry-After": "1"}) from busy
    except UnavailableError as down:
        raise HTTPException(503, "no lock server answers") from down


async def charge(order: int) -> None:
    await asyncio.sleep(0.1)  # stands for the payment; the database refuses older fences


if __name__ == "__main__":
    from fastapi.testclient import TestClient

    with TestClient(app) as service, ThreadPoolExecutor() as threads:
        for answer in threads.map(lambda _: service.post("/orders/42/pay"), range(2)):
            print(answer.status_code, answer.json())
