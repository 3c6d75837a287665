"""A worker that processes every event once it is published, also those published while it was stopped.

    python worker.py RENDEZVOUS-POINT ID-FILE

The place is kept by the domain, in a durable subscription whose id is kept in the file. An event that cannot be processed is
tried three times and then put aside, so that it does not hold back the ones behind it. Environment: HERALD_URL (default
http://127.0.0.1:8000), HERALD_TOKEN.
"""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from herald import Client, Received, work


async def process(item: Received) -> None:
    """Do the work; whatever it raises is tried again."""
    if item.data == "poison":
        raise ValueError("this order cannot be read")
    print("processed", item.id, item.data, flush=True)


async def put_aside(item: Received, error: Exception) -> None:
    """Keep what could not be processed for a person; or publish it to a rendezvous point for such events."""
    print("put aside", item.id, error, flush=True)


async def subscription_id(client: Client, rp: str, file: Path) -> str:
    """Return the id of the worker's subscription, which the first start makes."""
    if not file.exists():
        file.write_text((await client.subscriptions.create(rp, from_="earliest")).id)
    return file.read_text()


async def main(rp: str, file: Path) -> None:
    url, token = os.environ.get("HERALD_URL", "http://127.0.0.1:8000"), os.environ["HERALD_TOKEN"]
    async with Client(url, token=token) as client:
        async with client.attach(await subscription_id(client, rp, file)) as items:
            await work(items, process, max_deliveries=3, delay_s=0.2, on_dead=put_aside)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
