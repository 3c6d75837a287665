"""Read a rendezvous point, and continue where this program stopped: python subscriber.py RENDEZVOUS-POINT STATE-FILE

The place is kept in the state file. Stop the program with Ctrl-C and start it again: no event is missed, and none is
repeated. Environment: HERALD_URL (default http://127.0.0.1:8000), HERALD_TOKEN.
"""

import asyncio
import os
import sys
from contextlib import suppress

from herald import Client, Disconnected, Gap


def lost(loss: Disconnected) -> None:
    print(f"connection lost ({loss.code}); next attempt in {loss.retry_in_s:.1f} s", file=sys.stderr, flush=True)


async def main(rp: str, state: str) -> None:
    url, token = os.environ.get("HERALD_URL", "http://127.0.0.1:8000"), os.environ["HERALD_TOKEN"]
    async with Client(url, token=token, on_disconnect=lost) as client:
        async for item in client.subscribe(rp, from_="earliest", state=state):
            if isinstance(item, Gap):
                print("not in the history any more:", item, file=sys.stderr, flush=True)
            else:
                print(item.offset, item.event.type, item.data, flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], sys.argv[2]))
