"""Publish readings of a sensor, each confirmed once it is stored: python publisher.py RENDEZVOUS-POINT [COUNT]

Environment: HERALD_URL (default http://127.0.0.1:8000), HERALD_TOKEN.
"""

import asyncio
import os
import sys

from herald import Client


async def main(rp: str, count: int) -> None:
    async with Client(
        os.environ.get("HERALD_URL", "http://127.0.0.1:8000"), token=os.environ["HERALD_TOKEN"]
    ) as client:
        for number in range(count):
            data = {"number": number, "celsius": 20.5}
            confirmation = await client.publish(rp, data, type="org.example.temperature", subject="roof")
            print("stored at offset", confirmation.offset, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3))
