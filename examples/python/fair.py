"""A fair lock, whose waiters are served in the order in which they came, across all processes."""

import asyncio

from locktender import Client


async def customer(client: Client, number: int) -> None:
    async with client.lock("example:counter", fair=True):
        print(f"customer {number} is served")


async def main() -> None:
    async with Client() as client:
        counter = client.lock("example:counter", fair=True)
        hold = await counter.acquire_async()
        customers = []
        for number in range(1, 4):
            customers.append(asyncio.create_task(customer(client, number)))
            while (info := await counter.inspect_async()) is None or info.waiters < number:
                await asyncio.sleep(0.01)  # let each customer take a place before the next one comes
        print("in line:", *info.queue, sep="\n  ")
        await hold.release()
        await asyncio.gather(*customers)


asyncio.run(main())
